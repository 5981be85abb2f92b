/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Fault statistics: decay of windows, and undoing the kernel's decay of a value read from outside.
 * Integers only; everything is computed aside and returned, so that no reader sees a half (the
 * lesson of the kernel's "do statistics calculation using local variables only", 2014-01-17).
 */
#pragma once

#include "policy/base.h"

enum fault_kind {
	FAULT_SHARED = 0, /* the kernel's order: i = 0 shared, 1 private */
	FAULT_PRIVATE = 1,
	FAULT_KINDS = 2,
};

/* old - old/2 + window: kernel/sched/fair.c task_numa_placement(). Saturates at UINT64_MAX. */
uint64_t faults_fold(uint64_t old, uint64_t window);

/*
 * The window between two readings of a counter that the kernel decays itself.
 * @passes: by how much mm->numa_scan_seq advanced between the two readings.
 *   0: nothing new, returns 0.
 *   1: value - (previous - previous/2), 0 if that is negative (the thread restarted).
 *   more: value less what is left of previous after so many halvings: the faults since then, older
 *   ones among them already decayed by the kernel; *ret_inexact = true (else it is untouched).
 */
uint64_t faults_undo_decay(uint64_t previous, uint64_t value, uint64_t passes, bool *ret_inexact);
