/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Placing a VM on several nodes: one that is wider than a node, vCPU by vCPU over the closest
 * nodes that suffice; one whose guest has NUMA cells, cell by cell, each with its memory. Used by
 * decide.c only.
 */
#pragma once

#include "policy/candidate.h"

struct spread_space *spread_space_free(struct spread_space *sp);

/*
 * Chooses for the room that is left, as candidate_choose() does: kind is PLAN_SPREAD or PLAN_HOLD;
 * c->vcpu_target is filled if it is not held.
 * @space: made if NULL; kept for the next call.
 * Returns 0 or -ENOMEM.
 */
int spread_choose(
	const struct candidate_room *room, struct spread_space **space, struct candidate_vm *c);

/*
 * The memory that is to come, for c's choice.
 * @ret: room for max(n_cells, n_nodes) pulls. Returns how many; uses up the room they need.
 */
unsigned spread_pulls(
	struct candidate_room *room, const struct candidate_vm *c, struct plan_pull *ret);
