/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the control socket shows, as JSON, made from one snapshot and the plan that was made from
 * it.
 *
 * All numbers in base units: bytes, nanoseconds, permille, pages of 4 KiB.
 */
#pragma once

#include <json-c/json.h>

#include "policy/decide.h"
#include "policy/snapshot.h"

#define VIEW_VERSION 1

/* Per VM, what is known outside the snapshot; filled by the caller's function. */
struct view_vm_extra {
	const char *socket; /* of its QMP monitor; NULL: libvirt runs it */
	bool moving;        /* memory is under way */
	uint64_t want_bytes, done_bytes;
	uint64_t moved_pages;
	uint64_t failed_pages[4];         /* busy, no-memory, denied, other */
	const char *move_end;             /* how the last move ended, NULL: none yet */
	const struct vm_history *history; /* NULL: not known yet */
};

struct view_host {
	bool dry_run;
	bool libvirt_used; /* false: the operator said none */
	bool libvirt_connected;
	const char *libvirt_version; /* "" not known */
	const char *libvirt_error;   /* "" none */
	const char *trouble;         /* "" or a sentence: why nothing is decided at all */
	unsigned n_left_out;         /* VMs that could not be described, and QMP sockets */
	const char *left_out;        /* the first of them, and why; "" */
	uint64_t now_ns;             /* same clock as snapshot.time_ns */
	uint64_t started_ns;
	uint64_t tick_ns;
	uint64_t first_decision_ns; /* 0: nothing was done yet */
	uint64_t last_action_ns;
	uint64_t ticks;
	uint64_t cpu_ns; /* of this process */
	unsigned n_warnings;
	const char *const *warning;
	/* counters of the snapshot before, for rates */
	uint64_t hint_faults_per_s, kernel_pages_per_s;
	/* fills *ret for snapshot VM @i */
	void (*extra)(void *userdata, unsigned i, struct view_vm_extra *ret);
	void *userdata;
};

/*
 * @s, @p: NULL before the first tick.
 * Returns a new object (the caller puts it), or NULL: out of memory.
 */
struct json_object *view_status(
	const struct view_host *host, const struct snapshot *s, const struct plan *p);
