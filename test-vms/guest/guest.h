/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "config.h"
#include "layout.h"
#include "platform.h"

#define GUEST_STAGE_WAIT UINT32_MAX /* not all memory is populated yet */
#define GUEST_STAGE_STOP (UINT32_MAX - 1)

/*
 * The root object. vCPU 0 fills all of it before it starts the others; after that `stage` is what
 * changes, and it says everything: the parameters of each stage are in the config.
 */
struct guest {
	struct platform platform;
	struct config config;
	struct layout layout;
	uint32_t stage;
	uint64_t ready_ns;
};

extern struct guest the_guest;

/* Called by boot.S. */
struct hvm_start_info;
void guest_main(const struct hvm_start_info *info) __attribute__((noreturn));
void ap_main(uint32_t index) __attribute__((noreturn));
