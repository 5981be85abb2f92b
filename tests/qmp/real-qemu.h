/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A QEMU of the test's own, with a monitor in a directory of its own, and the client that asks it.
 */
#pragma once

#include "qmp/queries.h"

#define REAL_EVENTS 64

struct real_event {
	char name[64];
	char data[320]; /* as JSON, cut; "" if it had none */
	int64_t time_us;
};

struct real {
	/* set by main() */
	const char *qemu, *accel;
	uint64_t patience_ns; /* with one step of the machine */

	char dir[64];
	char path[96];
	pid_t pid; /* 0: none */
	struct qmp *q;
	struct real_event event[REAL_EVENTS]; /* since the connection was made; the first ones */
	unsigned n_events;
};

bool real_is_kvm(const struct real *r);

/* Starts it with @extra arguments (NULL at their end; may be NULL). Says what is wrong on stdout.
 */
bool real_start(struct real *r, const char *const *extra);
/* Kills it, waits for it, removes its directory; safe when there is none. */
void real_stop(struct real *r);
/* Waits for its end; its exit status, or -1 if it does not end. */
int real_wait(struct real *r);
/* Connects r->q; tries again while it starts. */
bool real_connect(struct real *r);
void real_disconnect(struct real *r);

/* A command with its arguments as JSON ("" for none). *ret as in qmp_sync_execute(). */
int real_ask(struct real *r, const char *command, const char *arguments, struct json_object **ret,
	struct qmp_error *err);
/* The guest writes @value (@size: 'b', 'w' or 'd') to an I/O port. */
bool real_out(struct real *r, char size, unsigned port, unsigned value);
/* Waits for an event of that name whose data have @part in them. NULL: it did not come. */
const struct real_event *real_event(struct real *r, const char *name, const char *part);
/* A thread of QEMU that lives now. */
bool real_is_thread(const struct real *r, pid_t tid);
/* "MAJOR.MINOR.MICRO" as the program itself says it; false if it cannot be run. */
bool real_program_version(const struct real *r, unsigned ret[3]);
