/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The thresholds: does an improvement pay for a move or a swap? Source: kernel/sched/fair.c
 * task_numa_compare(), and "Avoid task migration for small numa improvement" (2018-08-03).
 */
#pragma once

#include "policy/base.h"

#define RULES_IMPROVEMENT_MAX 1998 /* two weights of 999 */
#define RULES_SMALLIMP 30          /* about 1998 / 64 */
#define RULES_MARGIN (RULES_SMALLIMP / 2)

enum rules_variant {
	RULES_KERNEL_BEFORE_2018,
	RULES_KERNEL_2018,
	RULES_KERNEL,   /* today's */
	RULES_NUMAHERD, /* asks improvement and margin of plain moves too */
};

enum rules_verdict {
	RULES_REJECT,
	RULES_MOVE, /* a plain move */
	RULES_SWAP,
};

/*
 * An idle destination CPU (or, for a VM, a node with room).
 * @best: improvement of the best candidate so far, 0 if none.
 */
enum rules_verdict rules_idle_destination(
	enum rules_variant v, bool may_move, long move_improvement, long best);

/*
 * A destination that is taken: move beside it or swap with it.
 * @improvement: all terms of the swap added, preference terms included.
 * @ret_improvement: the improvement that the verdict stands for (untouched on RULES_REJECT).
 */
enum rules_verdict rules_running_destination(enum rules_variant v, bool may_move,
	long move_improvement, long improvement, long best, long *ret_improvement);

/* Preference of the other task: -1/16 if it prefers where it is (dst), +1/8 if it prefers src. */
enum rules_preference {
	RULES_PREFERS_NONE,
	RULES_PREFERS_DST,
	RULES_PREFERS_SRC
};
long rules_preference_term(long improvement, enum rules_preference pref);

/* Swap terms as in the kernel: the task's own gain plus the other's, with the hysteresis of -1/16
 * inside one group. Weights are those of the other task or group at src and dst. */
long rules_swap_improvement(
	long own_improvement, long other_at_src, long other_at_dst, bool same_group);
