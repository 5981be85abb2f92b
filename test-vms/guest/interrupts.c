/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Two interrupts matter, the timer and the wake-up from vCPU 0; both only set a flag that
 * timer_sleep_us() waits for. An exception means that the guest itself is wrong: the vCPU notes it
 * and stops, vCPU 0 prints it.
 */
#include "interrupts.h"
#include "apic.h"
#include "cpu.h"
#include "report.h"
#include "vcpu.h"

enum {
	EXCEPTIONS = 32,
	EXCEPTION_NMI = 2,
	GATE_INTERRUPT = 0x8e,
	PIC_DATA_1 = 0x21,
	PIC_DATA_2 = 0xa1,
};

struct gate {
	uint16_t offset_low;
	uint16_t selector;
	uint8_t stack;
	uint8_t type;
	uint16_t offset_middle;
	uint32_t offset_high;
	uint32_t zero;
};

extern const char interrupt_stubs[];

static struct gate gates[256];

/* Called by vectors.S. */
void interrupts_handle(uint64_t vector, uint64_t rip);

static void stop_at(uint8_t vector, uint64_t rip) __attribute__((noreturn));
static void stop_at(uint8_t vector, uint64_t rip)
{
	struct vcpu *self = vcpu_self();

	self->fault_vector = vector;
	self->fault_rip = rip;
	__atomic_store_n(&self->faulted, true, __ATOMIC_RELEASE);
	if (self->index == 0)
		report_fault(self);
	cpu_stop();
}

void interrupts_handle(uint64_t vector, uint64_t rip)
{
	switch (vector) {
	case EXCEPTION_NMI:
		/* From outside (inject-nmi); it changes nothing here. */
	case APIC_VECTOR_SPURIOUS:
		return;
	case APIC_VECTOR_TIMER:
		vcpu_self()->timer_fired = true;
		break;
	case APIC_VECTOR_WAKE:
		vcpu_self()->wake_asked = true;
		break;
	default:
		if (vector < EXCEPTIONS)
			stop_at((uint8_t)vector, rip);
		break;
	}
	apic_end_of_interrupt();
}

void interrupts_init(void)
{
	unsigned int i;

	for (i = 0; i < 256; i++) {
		uintptr_t stub = (uintptr_t)interrupt_stubs + (uintptr_t)i * BOOT_STUB_BYTES;

		gates[i] = (struct gate){
			.offset_low = (uint16_t)stub,
			.selector = BOOT_SELECTOR_CODE64,
			.type = GATE_INTERRUPT,
			.offset_middle = (uint16_t)(stub >> 16),
			.offset_high = (uint32_t)(stub >> 32),
		};
	}
	cpu_out8(PIC_DATA_1, 0xff);
	cpu_out8(PIC_DATA_2, 0xff);
}

void interrupts_enable_table(void)
{
	const struct {
		uint16_t limit;
		uint64_t base;
	} __attribute__((packed)) pointer = {sizeof(gates) - 1, (uintptr_t)gates};

	__asm__ volatile("lidt %0" : : "m"(pointer));
}
