/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The local APIC, through MSRs (x2APIC) where there are any: a KVM host handles a write to an MSR
 * without decoding an instruction, and there are two such writes for each burst of touches.
 */
#include "apic.h"
#include "cpu.h"

enum {
	REGISTER_ID = 0x020,
	REGISTER_TASK_PRIORITY = 0x080,
	REGISTER_EOI = 0x0b0,
	REGISTER_SPURIOUS = 0x0f0,
	REGISTER_COMMAND = 0x300,
	REGISTER_COMMAND_HIGH = 0x310,
	REGISTER_LVT_TIMER = 0x320,
	REGISTER_LVT_LINT0 = 0x350,
	REGISTER_LVT_LINT1 = 0x360,
	REGISTER_LVT_ERROR = 0x370,
	REGISTER_TIMER_INITIAL = 0x380,
	REGISTER_TIMER_CURRENT = 0x390,
	REGISTER_TIMER_DIVIDE = 0x3e0,

	SPURIOUS_ENABLE = 0x100,
	LVT_MASKED = 0x10000,
	COMMAND_FIXED = 0x4000,
	COMMAND_INIT = 0x4500,
	COMMAND_STARTUP = 0x4600,
	COMMAND_PENDING = 0x1000,
	DIVIDE_BY_16 = 0x3,

	MSR_APIC_BASE = 0x1b,
	MSR_X2APIC_FIRST = 0x800,
	BASE_ENABLE = 0x800,
	BASE_X2APIC = 0x400,
	CPUID_X2APIC_BIT = 21,
};

#define MMIO_BASE 0xfee00000u

static bool use_x2apic;

static uint32_t apic_read(uint32_t reg)
{
	if (use_x2apic)
		return (uint32_t)cpu_rdmsr(MSR_X2APIC_FIRST + reg / 16);
	return *(volatile uint32_t *)(uintptr_t)(MMIO_BASE + reg);
}

static void apic_write(uint32_t reg, uint32_t value)
{
	if (use_x2apic)
		cpu_wrmsr(MSR_X2APIC_FIRST + reg / 16, value);
	else
		*(volatile uint32_t *)(uintptr_t)(MMIO_BASE + reg) = value;
}

void apic_init(void)
{
	use_x2apic = cpu_id(1).ecx >> CPUID_X2APIC_BIT & 1;
}

void apic_enable(void)
{
	uint64_t base = cpu_rdmsr(MSR_APIC_BASE) | BASE_ENABLE;

	cpu_wrmsr(MSR_APIC_BASE, base);
	if (use_x2apic)
		cpu_wrmsr(MSR_APIC_BASE, base | BASE_X2APIC);
	apic_write(REGISTER_SPURIOUS, SPURIOUS_ENABLE | APIC_VECTOR_SPURIOUS);
	apic_write(REGISTER_TASK_PRIORITY, 0);
	apic_write(REGISTER_LVT_LINT0, LVT_MASKED);
	apic_write(REGISTER_LVT_LINT1, LVT_MASKED);
	apic_write(REGISTER_LVT_ERROR, LVT_MASKED);
	apic_write(REGISTER_TIMER_DIVIDE, DIVIDE_BY_16);
	apic_write(REGISTER_LVT_TIMER, APIC_VECTOR_TIMER);
}

uint32_t apic_id(void)
{
	uint32_t id = apic_read(REGISTER_ID);

	return use_x2apic ? id : id >> 24;
}

void apic_end_of_interrupt(void)
{
	apic_write(REGISTER_EOI, 0);
}

static void apic_command(uint32_t to_id, uint32_t command)
{
	uint32_t tries = 1000;

	if (use_x2apic) {
		cpu_wrmsr(
			MSR_X2APIC_FIRST + REGISTER_COMMAND / 16, (uint64_t)to_id << 32 | command);
		return;
	}
	/* Emulated APICs deliver at once; the limit is for one that never does. */
	while ((apic_read(REGISTER_COMMAND) & COMMAND_PENDING) != 0 && tries-- > 0)
		cpu_pause();
	apic_write(REGISTER_COMMAND_HIGH, to_id << 24);
	apic_write(REGISTER_COMMAND, command);
}

void apic_send_init(uint32_t to_id)
{
	apic_command(to_id, COMMAND_INIT);
}

void apic_send_startup(uint32_t to_id, uint32_t address)
{
	apic_command(to_id, COMMAND_STARTUP | address >> 12);
}

void apic_send_wake(uint32_t to_id)
{
	apic_command(to_id, COMMAND_FIXED | APIC_VECTOR_WAKE);
}

void apic_timer_start(uint32_t ticks)
{
	apic_write(REGISTER_TIMER_INITIAL, ticks);
}

void apic_timer_silence(bool silent)
{
	apic_write(REGISTER_LVT_TIMER, APIC_VECTOR_TIMER | (silent ? LVT_MASKED : 0));
}

uint32_t apic_timer_left(void)
{
	return apic_read(REGISTER_TIMER_CURRENT);
}
