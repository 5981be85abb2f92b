/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "smp.h"
#include "apic.h"
#include "memory.h"
#include "timer.h"
#include "vcpu.h"

enum {
	INIT_US = 2000,
	STARTUP_US = 1000,
	/* A crowded host may take long to run a new vCPU for the first time. */
	STARTUP_TRIES = 10000,
	/* A second start-up is only for an AP that missed the first one, and harmless to others. */
	STARTUP_AGAIN_EVERY = 50,
};

union vcpu_slot vcpu_slots[GUEST_VCPUS_MAX];

/* boot.S finds an AP's stack by it. */
extern uint8_t boot_vcpu_of_apic_id[256];
uint8_t boot_vcpu_of_apic_id[256];

extern const char trampoline_start[], trampoline_end[];

static bool is_started(uint32_t vcpu)
{
	return __atomic_load_n(&vcpu_get(vcpu)->started, __ATOMIC_ACQUIRE);
}

int smp_start(const struct platform *platform, struct text *messages)
{
	uint32_t v, try;

	memset(boot_vcpu_of_apic_id, BOOT_NO_VCPU, sizeof(boot_vcpu_of_apic_id));
	for (v = 1; v < platform->vcpus; v++)
		boot_vcpu_of_apic_id[platform->apic_ids[v]] = (uint8_t)v;
	memcpy((void *)(uintptr_t)BOOT_TRAMPOLINE, trampoline_start,
		(size_t)(trampoline_end - trampoline_start));

	for (v = 1; v < platform->vcpus; v++)
		apic_send_init(platform->apic_ids[v]);
	if (platform->vcpus > 1)
		timer_sleep_us(INIT_US);

	for (try = 0; try < STARTUP_TRIES; try++) {
		uint32_t missing = 0;

		for (v = 1; v < platform->vcpus; v++) {
			if (is_started(v))
				continue;
			missing++;
			if (try % STARTUP_AGAIN_EVERY == 0)
				apic_send_startup(platform->apic_ids[v], BOOT_TRAMPOLINE);
		}
		if (missing == 0)
			return 0;
		timer_sleep_us(STARTUP_US);
	}

	for (v = 1; is_started(v); v++)
		continue;
	text_add(messages, GUEST_PREFIX "error: vCPU ");
	text_add_number(messages, v);
	text_add(messages, " with APIC ID ");
	text_add_number(messages, platform->apic_ids[v]);
	text_add(messages, " did not start within 10 s\n");
	return SMP_E_NOT_STARTED;
}

void smp_wake(const struct platform *platform)
{
	uint32_t v;

	for (v = 1; v < platform->vcpus; v++)
		timer_wake(platform->apic_ids[v]);
}
