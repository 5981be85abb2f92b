/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A QMP connection, driven by the caller's event loop. It never blocks and never reads a clock: the
 * caller passes `now_ns` (of any clock that does not step) and waits on what qmp_fd(), qmp_wanted()
 * and qmp_deadline_ns() say, which change with every call.
 *
 *   while (...) {
 *           struct pollfd p = {.fd = qmp_fd(q), .events = qmp_wanted(q)};
 *           poll(&p, 1, until(qmp_deadline_ns(q)));
 *           qmp_process(q, p.revents, now());
 *   }
 *
 * QEMU is not trusted: whatever it sends ends in a callback or in the state `broken`, with bounded
 * memory.
 *
 *   state         fd    receives          sends             timers         goes on to
 *   ------------  ----  ----------------  ----------------  -------------  --------------------
 *   disconnected  -     -                 -                 -              connecting, greeting
 *   connecting    -     -                 -                 next try, end  greeting, broken
 *   greeting      open  events, greeting  -                 greeting       negotiating, broken
 *   negotiating   open  events, reply     qmp_capabilities  greeting       ready, broken
 *   ready         open  events, replies   commands          commands       broken
 *   broken        -     -                 -                 reconnect      connecting, greeting
 *
 * From every state qmp_disconnect() leads to disconnected. `connecting` lasts while the socket's
 * backlog is full. `broken` leads on by itself only where the configuration asks for it.
 */
#pragma once

#include <json-c/json.h>

#include "qmp/transport.h"

enum qmp_state {
	QMP_DISCONNECTED,
	QMP_CONNECTING,
	QMP_GREETING,
	QMP_NEGOTIATING,
	QMP_READY,
	QMP_BROKEN,
	QMP_STATES,
};
const char *qmp_state_name(enum qmp_state state);

#define QMP_NEVER UINT64_MAX
#define QMP_MESSAGE_BYTES_DEFAULT ((size_t)4 << 20)
#define QMP_DEPTH_DEFAULT 64u
#define QMP_CALLS_MAX 256u                   /* open commands */
#define QMP_SEND_BYTES_MAX ((size_t)1 << 20) /* that the peer has not taken yet */

struct qmp;

struct qmp_event {
	const char *name;         /* only printable ASCII, at most 63 bytes */
	struct json_object *data; /* NULL if it had none; the callback borrows it */
	int64_t time_us;          /* of the host's wall clock; -1: QEMU could not tell */
};

struct qmp_config {
	/* limits of what is received; 0: the default */
	size_t message_bytes_max;
	unsigned depth_max;
	/* 0: the default */
	uint64_t connect_timeout_ns;  /* for a socket that is busy; 5 s */
	uint64_t greeting_timeout_ns; /* greeting and negotiation together; 5 s */
	uint64_t message_timeout_ns;  /* from the first byte of a message to its last; 10 s */
	/* Reconnecting after a break, for paths only: first after min, then twice as long, up to
	 * max. 0: stay broken. */
	uint64_t reconnect_min_ns;
	uint64_t reconnect_max_ns;
	bool no_oob; /* do not enable out-of-band commands where they are offered */

	/* Callbacks may call everything, qmp_free() of their own connection included. NULL: none.
	 */
	void (*on_event)(void *userdata, struct qmp *q, const struct qmp_event *event);
	void (*on_state)(void *userdata, struct qmp *q, enum qmp_state state);
	void *userdata;
};

/* @config: copied. -ENOMEM. */
int qmp_new(const struct qmp_config *config, struct qmp **ret);
/* Commands that are open end with QMP_E_CANCELLED. Safe on NULL; returns NULL. */
struct qmp *qmp_free(struct qmp *q);

/*
 * disconnected, broken -> connecting, greeting; on a condition: broken (see qmp_last_error()).
 * @path: copied. Returns 0, the conditions of qmp_transport_unix() save QMP_E_BUSY, -ENOMEM, or
 * -EINVAL in another state.
 */
int qmp_connect(struct qmp *q, const char *path, uint64_t now_ns);
/* The same over a transport, which is taken over in any case. Returns 0 or -EINVAL. */
int qmp_connect_transport(struct qmp *q, const struct qmp_transport *transport, uint64_t now_ns);
/* any state -> disconnected; commands that are open end with QMP_E_CANCELLED. */
void qmp_disconnect(struct qmp *q);

/* -1: nothing to poll. Read it anew after each call: reconnecting changes it. */
int qmp_fd(const struct qmp *q);
/* POLLIN, POLLOUT */
short qmp_wanted(const struct qmp *q);
/* When qmp_process() is to be called at the latest; QMP_NEVER. */
uint64_t qmp_deadline_ns(const struct qmp *q);
/*
 * Takes what has come, sends what waits, ends what is late.
 * @revents: poll's, 0 if only time has passed. Reads at most 1 MiB, then others' turn has come;
 * what is left is there at the next poll. Returns 0 (look at qmp_state_of() for the peer's sins) or
 * -ENOMEM (then the state is broken).
 */
int qmp_process(struct qmp *q, short revents, uint64_t now_ns);

enum qmp_state qmp_state_of(const struct qmp *q);
/* Why it broke last; code 0 if it never did. Reset by connecting. */
const struct qmp_error *qmp_last_error(const struct qmp *q);
/* The peer offered out-of-band commands and they are enabled. */
bool qmp_has_oob(const struct qmp *q);
/* "version" of the greeting, borrowed until the next connect; NULL if there was none. */
struct json_object *qmp_greeting_version(const struct qmp *q);
/* Process that listens at the other end, by the kernel's word (SO_PEERCRED); 0 if not known. */
pid_t qmp_peer_pid(const struct qmp *q);

struct qmp_counters {
	uint64_t events;
	uint64_t replies; /* that were given to a command */
	uint64_t strays;  /* to ids that nobody waits for: late, doubled, made up */
	uint64_t breaks;
};
struct qmp_counters qmp_counters_of(const struct qmp *q);

/*
 * @result: 0, QMP_E_REMOTE, _TIMEOUT, _CANCELLED, or what the connection broke of.
 * @ret: the member "return", borrowed; NULL unless @result is 0, and for a return of null.
 * @err: NULL if @result is 0.
 */
typedef void (*qmp_reply_fn)(void *userdata, struct qmp *q, int result, struct json_object *ret,
	const struct qmp_error *err);

/*
 * Sends one command; @fn is called exactly once if 0 is returned, never from within this call.
 * @arguments: an object, borrowed; NULL: none.
 * @timeout_ns: 0: no deadline. @flags: QMP_OOB: out of band, where enabled.
 * @ret_id: for qmp_cancel(); may be NULL.
 * Returns 0, QMP_E_STATE (not ready, or no oob), QMP_E_FULL, or -ENOMEM.
 */
#define QMP_OOB 1u
int qmp_execute(struct qmp *q, const char *command, struct json_object *arguments,
	uint64_t timeout_ns, uint64_t now_ns, unsigned flags, qmp_reply_fn fn, void *userdata,
	uint64_t *ret_id);
/*
 * Ends an open command now with QMP_E_CANCELLED (its callback runs within this call). QEMU is not
 * told, since QMP knows no such word; its reply is dropped. False: no such command is open.
 */
bool qmp_cancel(struct qmp *q, uint64_t id);
