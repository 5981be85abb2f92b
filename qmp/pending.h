/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The commands that wait for their replies, oldest first. Private to libqmp.
 */
#pragma once

#include "qmp/client.h"

struct pending_call {
	uint64_t id; /* ascending in the order of sending */
	uint64_t deadline_ns;
	qmp_reply_fn fn; /* NULL: ended already (late, cancelled); its reply is to be dropped */
	void *userdata;
};

struct pending {
	unsigned n;
	struct pending_call *call; /* own; QMP_CALLS_MAX of them */
};

/* -ENOMEM */
int qmp_pending_init(struct pending *p);
void qmp_pending_deinit(struct pending *p);
/* QMP_E_FULL, when even what was given up long ago leaves no room. */
int qmp_pending_add(struct pending *p, const struct pending_call *call);
/* NULL: there is none. */
struct pending_call *qmp_pending_find(struct pending *p, uint64_t id);
/* The oldest one, ended ones included: QEMU owes it an answer all the same. NULL: none. */
struct pending_call *qmp_pending_oldest(struct pending *p);
void qmp_pending_remove(struct pending *p, struct pending_call *call);
/* The first one whose deadline has come, or NULL. */
struct pending_call *qmp_pending_late(struct pending *p, uint64_t now_ns);
uint64_t qmp_pending_deadline_ns(const struct pending *p);
