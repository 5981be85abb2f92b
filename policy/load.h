/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Load tests of the kernel's balancer as pure functions: kernel/sched/fair.c numa_classify(),
 * adjust_numa_imbalance(), load_too_imbalanced().
 */
#pragma once

#include "policy/base.h"

enum node_class {
	NODE_HAS_SPARE,
	NODE_FULLY_BUSY,
	NODE_OVERLOADED,
};

struct node_load {
	unsigned weight;     /* CPUs of the node */
	unsigned nr_running; /* tasks that want to run */
	uint64_t capacity;   /* 1024 per full CPU */
	uint64_t util;
	uint64_t runnable;
};

/* @pct: 112 by default, 100 + (sd.imbalance_pct - 100)/2 with a NUMA domain. */
enum node_class load_classify(unsigned pct, const struct node_load *load);

/* dst_running > imb_numa_nr: imb; else imb <= 2: 0; else imb. */
long load_adjust_imbalance(long imbalance, unsigned dst_running, unsigned imb_numa_nr);

/* Step 4 of sched-numa: may @p move to a destination that has spare capacity? */
bool load_may_move_to_spare(unsigned src_running, unsigned dst_running, unsigned imb_numa_nr);

/*
 * True: refuse. The imbalance *after* the move, scaled by capacity, is larger than before it; equal
 * is allowed. Loads before the move are given with the load that would move.
 * Loads and capacities up to 2^40 do not overflow.
 */
bool load_too_imbalanced(uint64_t src_load, uint64_t dst_load, int64_t moved_load,
	uint64_t src_capacity, uint64_t dst_capacity);
