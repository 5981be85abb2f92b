/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "cmdline.h"
#include "layout.h"
#include "boot.h"

enum {
	PLATFORM_E_START_INFO = 1,
	PLATFORM_E_TOO_MANY_VCPUS = 2,
	PLATFORM_E_APIC_ID = 3,

	PLATFORM_RAM_MAX = 16,
};

/* What the machine told about itself at the start, copied. */
struct platform {
	char cmdline[CMDLINE_LENGTH_MAX + 2]; /* one more than allowed, so that too long shows */
	struct ram_range ram[PLATFORM_RAM_MAX];
	uint32_t ram_n;
	uint32_t vcpus;
	uint8_t apic_ids[GUEST_VCPUS_MAX]; /* [0] is the vCPU that boots */
};

struct hvm_start_info;

/*
 * Reads the PVH start info, the ACPI MADT and, without ACPI, QEMU's fw_cfg.
 *
 * Returns 0 or one of PLATFORM_E_, with an error line in `messages`.
 */
int platform_read(const struct hvm_start_info *info, uint32_t boot_apic_id,
	struct platform *ret_platform, struct text *messages);
