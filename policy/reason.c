/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Why a record and not log lines: the operator asks hours later, and the answer must be the very
 * numbers that decided.
 */
#include "policy/reason.h"

#include <string.h>

void reason_begin(struct reason *r)
{
	r->n_gates = 0;
	r->why = WHY_NONE;
	r->detail[0] = '\0';
}

bool reason_gate(struct reason *r, const struct gate *gate)
{
	if (r->n_gates < REASON_GATES_MAX)
		r->gate[r->n_gates++] = *gate;
	return gate->met;
}

const struct gate *reason_find(const struct reason *r, const char *name)
{
	for (unsigned i = 0; i < r->n_gates; i++)
		if (strcmp(r->gate[i].name, name) == 0)
			return &r->gate[i];
	return NULL;
}
