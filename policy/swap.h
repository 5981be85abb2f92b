/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Two VMs change places: for when each would be better off where the other is, and neither fits
 * there while the other stays. Used by decide.c only.
 */
#pragma once

#include "policy/candidate.h"

/* One VM that would go where another is. */
struct swap_half {
	struct candidate_vm *c;
	unsigned from, to;
	long gain;
	bool bring;
};

/*
 * Looks for the best pair among the open candidates whose choice is to hold.
 * @n: of @cands; @ret: two indexes, the one with the smaller UUID first.
 * @half: room for n * n_nodes entries.
 * Returns whether there is one; both then have their choice set, as candidate_choose() would.
 */
bool swap_find(const struct candidate_room *room, struct candidate_vm *cands, unsigned n,
	struct swap_half *half, unsigned ret[2]);
