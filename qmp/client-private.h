/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The inside of a connection, shared by client.c (what callers call) and conversation.c (what goes
 * on with the peer). Private to libqmp.
 */
#pragma once

#include "qmp/client.h"
#include "qmp/frame.h"
#include "qmp/pending.h"

struct qmp {
	struct qmp_config config; /* defaults filled in */
	enum qmp_state state;
	char *path; /* own; NULL: a transport was given */
	bool open;  /* `transport` is there; the columns of client.h's table hang on this */
	struct qmp_transport transport;
	struct frame frame;
	struct {
		char *bytes; /* own */
		size_t len, size;
	} send;
	struct pending pending;
	uint64_t next_id;
	uint64_t negotiation_id;
	bool oob;
	struct json_object *version; /* own */
	struct qmp_error error;
	struct qmp_counters counters;

	/* QMP_NEVER where there is none */
	uint64_t next_try_ns, connect_end_ns; /* connecting */
	uint64_t handshake_end_ns;            /* greeting, negotiating */
	uint64_t message_end_ns;              /* a message has begun */
	uint64_t reconnect_ns;                /* broken */
	uint64_t backoff_ns;

	/* Callbacks may do anything, so whoever has called one looks at these before going on. */
	unsigned inside;     /* our own functions on the stack: it must not be freed yet */
	bool processing;     /* qmp_process() is on the stack */
	uint64_t generation; /* counts connections; another one: what was at hand is gone */
	bool doomed;         /* qmp_free() was called in a callback */
};

/* client.c */

/* Keeps a connection that a callback frees until it is released. */
void qmp_client_hold(struct qmp *q);
void qmp_client_release(struct qmp *q);

/* conversation.c */

/* A time @ns after @now_ns; QMP_NEVER if that is beyond the end of time. */
uint64_t qmp_conversation_after(uint64_t now_ns, uint64_t ns);

/* Asserts that the table in client.h allows it. */
void qmp_conversation_set_state(struct qmp *q, enum qmp_state state);
/* Calls on_state. */
void qmp_conversation_tell_state(struct qmp *q);
/* Goes to `broken` for @why, ends all commands with it. Nothing in `broken` and `disconnected`. */
void qmp_conversation_break(struct qmp *q, const struct qmp_error *why, uint64_t now_ns);
/* connecting: tries the path once. */
void qmp_conversation_try(struct qmp *q, uint64_t now_ns);
/* Goes on with an open transport: greeting. */
void qmp_conversation_begin(struct qmp *q, const struct qmp_transport *transport, uint64_t now_ns);
/* Reads what is there and handles it. Returns 0 or -ENOMEM. */
int qmp_conversation_receive(struct qmp *q, uint64_t now_ns);
/* Writes what waits. Returns 0, -EAGAIN (some of it still waits) or what the transport said. */
int qmp_conversation_flush(struct qmp *q);
/* Ends with @code every command that is open now. */
void qmp_conversation_end_calls(struct qmp *q, int code, const struct qmp_error *err);
/* Closes the transport, forgets what was read and what waited to be sent. */
void qmp_conversation_close(struct qmp *q);
/* Puts a text behind what waits to be sent and takes it over. Returns 0, QMP_E_FULL, -ENOMEM. */
int qmp_conversation_send(struct qmp *q, char *text);
