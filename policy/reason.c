/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Why a record and not log lines: the operator asks hours later, and the answer must be the very
 * numbers that decided.
 */
#include "policy/reason.h"

#include <stdarg.h>
#include <stdio.h>

bool reason_gate(struct reason *r, const char *name, const char *unit, int64_t value,
	int64_t threshold, bool met)
{
	if (r->n_gates < REASON_GATES_MAX)
		r->gate[r->n_gates++] = (struct gate){
			.name = name,
			.unit = unit,
			.value = value,
			.threshold = threshold,
			.met = met,
		};
	return met;
}

void reason_say(struct reason *r, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(r->text, sizeof(r->text), fmt, ap);
	va_end(ap);
}
