/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Why rounding is spelled out: the kernel takes away value/2, so an odd value keeps the larger half
 * and a value of 1 never decays. Undoing it must subtract exactly what was kept.
 */
#include "policy/faults.h"

uint64_t faults_fold(uint64_t old, uint64_t window)
{
	uint64_t kept = old - old / 2, sum;

	return __builtin_add_overflow(kept, window, &sum) ? UINT64_MAX : sum;
}

uint64_t faults_undo_decay(uint64_t previous, uint64_t value, uint64_t passes, bool *ret_inexact)
{
	uint64_t kept = previous;

	if (passes == 0)
		return 0;
	if (passes > 1)
		*ret_inexact = true;
	/* after 64 halvings at most 1 is left */
	for (uint64_t i = 0; i < passes && i < 64; i++)
		kept -= kept / 2;
	return value > kept ? value - kept : 0;
}
