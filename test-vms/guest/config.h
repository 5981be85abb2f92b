/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum {
	GUEST_VCPUS_MAX = 64,
	GUEST_PHASES_MAX = 32,
	GUEST_STAGES_MAX = GUEST_PHASES_MAX + 1,
};

enum pattern {
	PATTERN_PRIVATE,
	PATTERN_SHARED,
	PATTERN_MIXED,
	PATTERN_IDLE,
	PATTERN_PHASE,
};

/* How vCPUs touch memory during one stage. */
struct touch_params {
	enum pattern pattern;
	/* Nothing is touched and idle_pause_us counts; burst and pause_us wait for a later stage.
	 */
	bool idle;
	uint32_t shared_permille;
	uint32_t write_permille;
	uint32_t burst;
	uint32_t pause_us;
	uint32_t idle_pause_us;
	uint32_t rotate;
};

/* What one vCPU does differently from the others, in all stages. */
struct vcpu_override {
	bool has_burst;
	bool has_pause_us;
	bool has_shared_permille;
	uint32_t burst;
	uint32_t pause_us;
	uint32_t shared_permille;
};

struct stage {
	uint32_t at_ms; /* since ready */
	struct touch_params params;
};

struct config {
	uint32_t private_mib;
	uint32_t shared_mib;
	uint32_t report_ms; /* 0: no periodic reports */
	uint64_t seed;
	/* stages[0] holds from ready on, stages[1] is the first phase of the command line. */
	uint32_t stages_n;
	struct stage stages[GUEST_STAGES_MAX];
	struct vcpu_override overrides[GUEST_VCPUS_MAX];
};
