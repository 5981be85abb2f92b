/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Two VMs change places: for when each would be better off where the other is, and neither fits
 * there while the other stays. Used by decide.c only.
 */
#pragma once

#include "policy/candidate.h"

/*
 * Looks for the best pair among the open candidates whose choice is to hold.
 * @n: of @cands; @ret: two indexes, the one with the smaller UUID first.
 * Returns 1 if there is one (both then have their choice set, as candidate_choose() would), 0, or
 * -ENOMEM.
 */
int swap_find(
	const struct candidate_room *room, struct candidate_vm *cands, unsigned n, unsigned ret[2]);
