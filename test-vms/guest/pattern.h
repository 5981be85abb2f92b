/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "config.h"

enum {
	PATTERN_PAGE_BYTES = 4096,
	PATTERN_PAGE_WORDS = PATTERN_PAGE_BYTES / 8,
};

/* What one vCPU does in one stage, with its overrides applied. */
struct vcpu_touch {
	uint32_t shared_permille;
	uint32_t write_permille;
	uint32_t burst;
	uint32_t pause_us;
	uint32_t rotate;
};

/* One access: which word of which page, and whether in the shared region. */
struct touch {
	bool shared;
	bool write;
	uint64_t page;
	uint32_t word;
};

struct pattern_random {
	uint64_t state;
};

struct vcpu_touch pattern_vcpu_touch(const struct config *config, uint32_t stage, uint32_t vcpu);

/* Returns the private region that the vCPU touches. */
uint32_t pattern_private_region(uint32_t vcpu, uint32_t rotate, uint32_t vcpus);

/* Returns the stage that holds `ms` after ready. */
uint32_t pattern_stage_at(const struct config *config, uint64_t ms);

void pattern_random_init(struct pattern_random *random, uint64_t seed, uint32_t vcpu);
uint64_t pattern_random_next(struct pattern_random *random);

/* Draws the next touch; the regions' sizes are in pages and below 2^32. */
struct touch pattern_pick(struct pattern_random *random, const struct vcpu_touch *how,
	uint64_t private_pages, uint64_t shared_pages);
