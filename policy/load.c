/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Why "not worse than now" and not "balanced": refusing only what makes the imbalance larger lets a
 * VM trade places on a host that was never even.
 */
#include "policy/load.h"

enum node_class load_classify(unsigned pct, const struct node_load *load)
{
	uint64_t cap = load->capacity;

	if (load->nr_running > load->weight &&
		(cap * 100 < load->util * pct || cap * pct < load->runnable * 100))
		return NODE_OVERLOADED;
	if (load->nr_running < load->weight ||
		(cap * 100 > load->util * pct && cap * pct > load->runnable * 100))
		return NODE_HAS_SPARE;
	return NODE_FULLY_BUSY;
}

long load_adjust_imbalance(long imbalance, unsigned dst_running, unsigned imb_numa_nr)
{
	if (dst_running > imb_numa_nr)
		return imbalance;
	return imbalance <= 2 ? 0 : imbalance;
}

bool load_may_move_to_spare(unsigned src_running, unsigned dst_running, unsigned imb_numa_nr)
{
	long imbalance = ((long)dst_running + 1) - ((long)src_running - 1);

	return load_adjust_imbalance(MAX2(imbalance, 0L), dst_running + 1, imb_numa_nr) == 0;
}

/* Products of two 40-bit numbers: two differences that both leave 64 bits must still compare. */
__extension__ typedef unsigned __int128 wide;

static wide difference(uint64_t dst, uint64_t src, uint64_t dst_capacity, uint64_t src_capacity)
{
	wide a = (wide)dst * src_capacity, b = (wide)src * dst_capacity;

	return a > b ? a - b : b - a;
}

bool load_too_imbalanced(uint64_t src_load, uint64_t dst_load, int64_t moved_load,
	uint64_t src_capacity, uint64_t dst_capacity)
{
	uint64_t src_after = src_load - (uint64_t)moved_load;
	uint64_t dst_after = dst_load + (uint64_t)moved_load;

	/* more moves than is there: measured at different times; an empty source is the floor */
	if (moved_load > 0 && (uint64_t)moved_load > src_load)
		src_after = 0;
	if (moved_load < 0 && 0 - (uint64_t)moved_load > dst_load)
		dst_after = 0;
	return difference(dst_after, src_after, dst_capacity, src_capacity) >
	       difference(dst_load, src_load, dst_capacity, src_capacity);
}
