/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Why the variants stand side by side: the difference between them is one comparison each, and the
 * tables of the tests show all of them.
 */
#include "policy/rules.h"

enum rules_verdict rules_idle_destination(
	enum rules_variant v, bool may_move, long move_improvement, long best)
{
	bool accept = false;

	switch (v) {
	case RULES_KERNEL_BEFORE_2018:
		accept = may_move || move_improvement > best;
		break;
	case RULES_KERNEL_2018:
	case RULES_KERNEL:
		accept = may_move && move_improvement >= best;
		break;
	case RULES_NUMAHERD:
		/* a VM's move may copy gigabytes: ask of it what the kernel asks of a swap */
		accept = may_move && move_improvement >= RULES_SMALLIMP &&
			 (best == 0 || move_improvement > best + RULES_MARGIN);
		break;
	}
	return accept ? RULES_MOVE : RULES_REJECT;
}

static bool small(long improvement, long best)
{
	return improvement < RULES_SMALLIMP || improvement <= best + RULES_MARGIN;
}

enum rules_verdict rules_running_destination(enum rules_variant v, bool may_move,
	long move_improvement, long improvement, long best, long *ret_improvement)
{
	bool move = may_move && move_improvement > improvement && move_improvement > best;

	if (v == RULES_KERNEL_BEFORE_2018) {
		if (improvement <= best)
			return RULES_REJECT;
		*ret_improvement = move ? move_improvement - 1 : improvement;
		return move ? RULES_MOVE : RULES_SWAP;
	}
	if (v == RULES_NUMAHERD)
		move = move && !small(move_improvement, best);
	if (move) {
		*ret_improvement = move_improvement;
		return RULES_MOVE;
	}
	if (small(improvement, best))
		return RULES_REJECT;
	*ret_improvement = improvement;
	return RULES_SWAP;
}

long rules_preference_term(long improvement, enum rules_preference pref)
{
	switch (pref) {
	case RULES_PREFERS_DST:
		return improvement - improvement / 16;
	case RULES_PREFERS_SRC:
		return improvement + improvement / 8;
	default:
		return improvement;
	}
}

long rules_swap_improvement(
	long own_improvement, long other_at_src, long other_at_dst, bool same_group)
{
	long improvement = own_improvement + other_at_src - other_at_dst;

	return same_group ? improvement - improvement / 16 : improvement;
}
