/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Why: the gates a VM passed or did not pass in one decision, with numbers. Whatever is told about
 * a decision is made from this record (explain.h), never computed a second time.
 */
#pragma once

#include "policy/base.h"

#define REASON_GATES_MAX 16
#define REASON_TEXT_MAX 224

/* What a decision came to. */
enum why {
	WHY_NONE,
	/* hands off */
	WHY_UNREADABLE,
	WHY_OPERATOR_PIN,
	WHY_LEFT_ALONE,
	WHY_PAUSED,
	WHY_BUSY,
	WHY_MOVING,
	/* nothing to choose from */
	WHY_IDLE,
	WHY_UNKNOWN,
	WHY_NO_CPU,
	WHY_TOO_WIDE,
	/* staying */
	WHY_REFUSED, /* by the last gate that is not met */
	WHY_SETTLED,
	WHY_WELL_PLACED,
	WHY_NO_BETTER,
	/* a wish */
	WHY_WATCHING,
	WHY_COOLING,
	WHY_IN_FLIGHT,
	WHY_PARTNER,
	/* done now */
	WHY_READY,
};

struct gate {
	const char *name;   /* static text */
	const char *unit;   /* static text, "" for a count */
	const char *source; /* where the threshold is from; lives as long as the settings */
	int64_t value;
	int64_t threshold;
	int node; /* the node id it was asked of; -1: of none */
	bool met;
};

struct reason {
	unsigned n_gates;
	struct gate gate[REASON_GATES_MAX];
	enum why why;
	char detail[REASON_TEXT_MAX]; /* somebody else's words, for the hands-off ones */
};

/* An empty record. */
void reason_begin(struct reason *r);
/* Appends a gate (dropped beyond REASON_GATES_MAX) and returns @gate->met. */
bool reason_gate(struct reason *r, const struct gate *gate);
/* The first gate of this name, or NULL. */
const struct gate *reason_find(const struct reason *r, const char *name);
