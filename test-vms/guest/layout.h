/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "config.h"
#include "text.h"

enum {
	LAYOUT_REGIONS_MAX = GUEST_VCPUS_MAX + 1,
	LAYOUT_E_NO_ROOM = 1,
};

#define LAYOUT_MIB ((uint64_t)1 << 20)
#define LAYOUT_ALIGN (2 * LAYOUT_MIB)
#define LAYOUT_START (16 * LAYOUT_MIB)     /* the image, its tables and stacks lie below */
#define LAYOUT_END_MAX ((uint64_t)1 << 32) /* what boot.S maps */

struct region {
	uint64_t start;
	uint64_t bytes;
};

/* Usable guest-physical memory. */
struct ram_range {
	uint64_t start;
	uint64_t bytes;
};

/* regions[v] is private region v, regions[vcpus] is the shared one. */
struct layout {
	uint32_t vcpus;
	uint64_t end;
	struct region regions[LAYOUT_REGIONS_MAX];
};

void layout_place(const struct config *config, uint32_t vcpus, struct layout *ret_layout);

/* Returns 0, or LAYOUT_E_NO_ROOM with an error line in `messages`, if RAM does not hold it all. */
int layout_check(const struct layout *layout, const struct ram_range *ranges, uint32_t ranges_n,
	struct text *messages);

/* Adds the region's name, as in "private3" or "shared". */
void layout_add_name(const struct layout *layout, uint32_t region, struct text *text);
