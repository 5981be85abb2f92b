/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Blocking convenience for programs without an event loop. Uses CLOCK_MONOTONIC and poll(). From
 * within a callback of the same connection these return -EDEADLK. A connection that its callbacks
 * end or free meanwhile gives QMP_E_CANCELLED.
 */
#pragma once

#include "qmp/client.h"

uint64_t qmp_sync_now_ns(void);

/*
 * Connects and waits until it is ready.
 * @config: NULL: defaults.
 * Returns 0, a condition (*err is set), or a negative errno.
 */
int qmp_sync_open(
	const char *path, const struct qmp_config *config, struct qmp **ret, struct qmp_error *err);
/* The same over a transport, which is taken over in any case. */
int qmp_sync_open_transport(const struct qmp_transport *transport, const struct qmp_config *config,
	struct qmp **ret, struct qmp_error *err);

/*
 * Sends one command and waits for its reply. Events are delivered meanwhile.
 * @timeout_ns: 0: no deadline.
 * @ret: the member "return", owned by the caller (json_object_put()); may be NULL.
 */
int qmp_sync_execute(struct qmp *q, const char *command, struct json_object *arguments,
	uint64_t timeout_ns, struct json_object **ret, struct qmp_error *err);

/*
 * Waits for events for at most @timeout_ns (QMP_NEVER: for ever), until the connection breaks (its
 * condition is returned) or until @enough (may be NULL) says so, which is asked after each message.
 */
int qmp_sync_wait(struct qmp *q, uint64_t timeout_ns, bool (*enough)(void *userdata),
	void *userdata, struct qmp_error *err);
