/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The inside of deciding, shared by decide*.c and plan.c.
 */
#pragma once

#include "policy/candidate.h"

/* What the functions of one decision hand on to each other. */
struct deciding {
	const struct snapshot *s;
	const struct settings *set;
	struct history *history;
	struct decide_space *space;
	struct plan *plan;
	struct candidate_room room;
	unsigned moving; /* VMs whose memory is on the way, those of this plan among them */
};

/* plan.c */

/* Room for a plan of this snapshot. -ENOMEM. */
int plan_grow(struct plan *p, const struct snapshot *s);
/* Room for so many more pulls. -ENOMEM. */
int plan_grow_pulls(struct plan *p, size_t more);

/* decide-prepare.c */

/* Weighs all VMs; those that are not to be touched, or go back, are settled. -ENOMEM. */
int decide_prepare(struct deciding *d);
/* Of this VM: to be done now. */
void decide_set_due(struct deciding *d, unsigned vm);
