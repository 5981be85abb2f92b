/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Why: the gates a VM passed or did not pass in one decision, with numbers. Whatever is told about
 * a decision is made from this record, never computed a second time.
 */
#pragma once

#include "policy/base.h"

#define REASON_GATES_MAX 16
#define REASON_TEXT_MAX 224

struct gate {
	const char *name; /* static text */
	const char *unit; /* static text, "" for a count */
	int64_t value;
	int64_t threshold;
	bool met;
};

struct reason {
	unsigned n_gates;
	struct gate gate[REASON_GATES_MAX];
	char text[REASON_TEXT_MAX]; /* one sentence: why it is as it is */
};

/* Appends a gate (dropped beyond REASON_GATES_MAX) and returns @met. */
bool reason_gate(struct reason *r, const char *name, const char *unit, int64_t value,
	int64_t threshold, bool met);
void reason_say(struct reason *r, const char *fmt, ...) _printf_(2, 3);
