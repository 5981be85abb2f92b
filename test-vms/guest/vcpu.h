/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "boot.h"
#include "layout.h"
#include "pattern.h"

/*
 * What belongs to one vCPU. Written by its owner, read by vCPU 0 for the reports; wake_asked,
 * which others set, is the exception.
 */
struct vcpu {
	uint32_t index;
	bool started;
	bool populated;
	bool timer_fired;
	bool wake_asked;
	bool faulted;
	uint8_t fault_vector;
	uint64_t fault_rip;
	struct pattern_random random;
	uint64_t counts[LAYOUT_REGIONS_MAX];
};

/* The stack grows down from the end of the slot. */
union vcpu_slot {
	struct vcpu vcpu;
	char room[BOOT_SLOT_BYTES];
} __attribute__((aligned(BOOT_SLOT_BYTES)));

/* A slot lies on pages of its own, so that vCPUs share none by accident. */
extern union vcpu_slot vcpu_slots[GUEST_VCPUS_MAX];

/* The slots are aligned to their size, so any address on the own stack tells the slot. */
static inline struct vcpu *vcpu_self(void)
{
	uintptr_t sp;

	__asm__("movq %%rsp, %0" : "=r"(sp));
	return (struct vcpu *)(sp & ~(uintptr_t)(BOOT_SLOT_BYTES - 1));
}

static inline struct vcpu *vcpu_get(uint32_t index)
{
	return &vcpu_slots[index].vcpu;
}
