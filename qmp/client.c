/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Why `inside`: a callback may free the connection that called it. The memory then stays until the
 * last of our own functions on the stack has returned.
 */
#include "qmp/client.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "qmp/client-private.h"
#include "qmp/message.h"

#define SECOND_NS UINT64_C(1000000000)

const char *qmp_state_name(enum qmp_state state)
{
	static const char *const names[QMP_STATES] = {
		"disconnected", "connecting", "greeting", "negotiating", "ready", "broken"};

	return state < QMP_STATES ? names[state] : "unknown";
}

static void fill_defaults(struct qmp_config *c)
{
	if (!c->message_bytes_max)
		c->message_bytes_max = QMP_MESSAGE_BYTES_DEFAULT;
	if (c->message_bytes_max > INT_MAX / 4) /* json-c counts in int */
		c->message_bytes_max = INT_MAX / 4;
	if (!c->depth_max)
		c->depth_max = QMP_DEPTH_DEFAULT;
	if (c->depth_max > FRAME_DEPTH_MAX) /* json-c's parser keeps a level's state for each */
		c->depth_max = FRAME_DEPTH_MAX;
	if (!c->connect_timeout_ns)
		c->connect_timeout_ns = 5 * SECOND_NS;
	if (!c->greeting_timeout_ns)
		c->greeting_timeout_ns = 5 * SECOND_NS;
	if (!c->message_timeout_ns)
		c->message_timeout_ns = 10 * SECOND_NS;
	if (c->reconnect_max_ns < c->reconnect_min_ns)
		c->reconnect_max_ns = c->reconnect_min_ns;
}

static void really_free(struct qmp *q)
{
	qmp_frame_deinit(&q->frame);
	qmp_pending_deinit(&q->pending);
	json_object_put(q->version);
	free(q->send.bytes);
	free(q->path);
	free(q);
}

void qmp_client_hold(struct qmp *q)
{
	q->inside++;
}

void qmp_client_release(struct qmp *q)
{
	if (--q->inside == 0 && q->doomed)
		really_free(q);
}

int qmp_new(const struct qmp_config *config, struct qmp **ret)
{
	struct qmp *q = calloc(1, sizeof(*q));

	if (!q)
		return -ENOMEM;
	if (config)
		q->config = *config;
	fill_defaults(&q->config);
	q->next_id = 1;
	q->backoff_ns = q->config.reconnect_min_ns;
	qmp_conversation_close(q);
	if (qmp_pending_init(&q->pending) < 0 ||
		qmp_frame_init(&q->frame, q->config.message_bytes_max, q->config.depth_max) < 0) {
		really_free(q);
		return -ENOMEM;
	}
	*ret = q;
	return 0;
}

struct qmp *qmp_free(struct qmp *q)
{
	if (!q || q->doomed)
		return NULL;
	qmp_client_hold(q);
	q->config.on_state = NULL; /* who frees it need not be told */
	q->config.on_event = NULL;
	q->doomed = true; /* from here on nobody can connect it again */
	qmp_disconnect(q);
	qmp_client_release(q);
	return NULL;
}

static bool may_connect(const struct qmp *q)
{
	return !q->doomed && (q->state == QMP_DISCONNECTED || q->state == QMP_BROKEN);
}

/* connecting, with the first try. */
static void start(struct qmp *q, uint64_t now_ns)
{
	uint64_t generation;

	qmp_conversation_close(q);
	generation = q->generation;
	q->next_try_ns = now_ns;
	q->connect_end_ns = qmp_conversation_after(now_ns, q->config.connect_timeout_ns);
	qmp_conversation_set_state(q, QMP_CONNECTING);
	qmp_conversation_tell_state(q);
	if (q->generation == generation && q->state == QMP_CONNECTING)
		qmp_conversation_try(q, now_ns);
}

int qmp_connect(struct qmp *q, const char *path, uint64_t now_ns)
{
	char *copy;
	int r;

	if (!may_connect(q))
		return -EINVAL;
	copy = strdup(path);
	if (!copy)
		return -ENOMEM;
	free(q->path);
	q->path = copy;
	q->backoff_ns = q->config.reconnect_min_ns;
	qmp_client_hold(q);
	start(q, now_ns);
	r = q->state == QMP_BROKEN ? q->error.code : 0;
	qmp_client_release(q);
	return r;
}

int qmp_connect_transport(struct qmp *q, const struct qmp_transport *transport, uint64_t now_ns)
{
	if (!may_connect(q)) {
		transport->close(transport->t);
		return -EINVAL;
	}
	free(q->path);
	q->path = NULL;
	qmp_client_hold(q);
	qmp_conversation_close(q);
	qmp_conversation_begin(q, transport, now_ns);
	qmp_client_release(q);
	return 0;
}

void qmp_disconnect(struct qmp *q)
{
	struct qmp_error err;
	uint64_t generation;

	if (q->state == QMP_DISCONNECTED)
		return;
	qmp_client_hold(q);
	qmp_conversation_close(q);
	generation = q->generation;
	qmp_conversation_set_state(q, QMP_DISCONNECTED);
	qmp_error_set(&err, QMP_E_CANCELLED, "the connection was ended by its user");
	qmp_conversation_end_calls(q, QMP_E_CANCELLED, &err);
	if (q->generation == generation)
		qmp_conversation_tell_state(q);
	qmp_client_release(q);
}

int qmp_fd(const struct qmp *q)
{
	return q->open ? q->transport.fd(q->transport.t) : -1;
}

short qmp_wanted(const struct qmp *q)
{
	if (!q->open)
		return 0;
	return q->send.len ? POLLIN | POLLOUT : POLLIN;
}

static uint64_t first_of(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

uint64_t qmp_deadline_ns(const struct qmp *q)
{
	uint64_t first = qmp_pending_deadline_ns(&q->pending);

	first = first_of(first, q->next_try_ns);
	first = first_of(first, q->handshake_end_ns);
	first = first_of(first, q->message_end_ns);
	return first_of(first, q->reconnect_ns);
}

/* Ends commands that are late; each callback may change everything. */
static void end_late_calls(struct qmp *q, uint64_t now_ns)
{
	struct pending_call *late;
	struct qmp_error err;

	qmp_error_set(&err, QMP_E_TIMEOUT, "no reply in time");
	while ((late = qmp_pending_late(&q->pending, now_ns))) {
		qmp_reply_fn fn = late->fn;

		late->fn = NULL;
		fn(late->userdata, q, QMP_E_TIMEOUT, NULL, &err);
	}
}

static void look_at_clock(struct qmp *q, uint64_t now_ns)
{
	struct qmp_error err;

	if (q->message_end_ns <= now_ns) {
		qmp_error_set(&err, QMP_E_STALLED, "a message began and did not end in time");
		qmp_conversation_break(q, &err, now_ns);
	} else if (q->handshake_end_ns <= now_ns && q->state == QMP_GREETING) {
		qmp_error_set(&err, QMP_E_NO_GREETING,
			"no greeting came: a monitor takes one client at a time, and another may "
			"hold it");
		qmp_conversation_break(q, &err, now_ns);
	} else if (q->handshake_end_ns <= now_ns) {
		qmp_error_set(&err, QMP_E_NEGOTIATION, "qmp_capabilities was not answered in time");
		qmp_conversation_break(q, &err, now_ns);
	} else if (q->reconnect_ns <= now_ns) {
		start(q, now_ns);
	}
	end_late_calls(q, now_ns);
}

/* Sends what waits; a peer that has gone may have said something before. */
static int send_on(struct qmp *q, uint64_t now_ns)
{
	uint64_t generation = q->generation;
	struct qmp_error err;
	int r = qmp_conversation_flush(q), r2;

	if (r == 0 || r == -EAGAIN)
		return 0;
	r2 = qmp_conversation_receive(q, now_ns);
	if (r2 < 0 || q->generation != generation)
		return r2;
	if (r == -EPIPE || r == -ECONNRESET)
		qmp_error_set(&err, QMP_E_CLOSED, "the peer closed the connection");
	else
		qmp_error_set(&err, QMP_E_IO, "writing to the monitor: %s", strerror(-r));
	qmp_conversation_break(q, &err, now_ns);
	return 0;
}

int qmp_process(struct qmp *q, short revents, uint64_t now_ns)
{
	struct qmp_error err;
	int r = 0;

	if (q->processing) /* from within a callback: the call that is under way goes on anyhow */
		return 0;
	q->processing = true;
	qmp_client_hold(q);
	if (q->state == QMP_CONNECTING && q->next_try_ns <= now_ns)
		qmp_conversation_try(q, now_ns);
	if (q->open && (revents & (POLLIN | POLLHUP | POLLERR)))
		r = qmp_conversation_receive(q, now_ns);
	if (r == 0 && q->open && q->send.len && (revents & (POLLOUT | POLLHUP | POLLERR)))
		r = send_on(q, now_ns);
	if (r < 0) {
		qmp_error_set(&err, QMP_E_IO, "out of memory");
		qmp_conversation_break(q, &err, now_ns);
	}
	look_at_clock(q, now_ns);
	q->processing = false;
	qmp_client_release(q);
	return r;
}

enum qmp_state qmp_state_of(const struct qmp *q)
{
	return q->state;
}

const struct qmp_error *qmp_last_error(const struct qmp *q)
{
	return &q->error;
}

bool qmp_has_oob(const struct qmp *q)
{
	return q->state == QMP_READY && q->oob;
}

struct json_object *qmp_greeting_version(const struct qmp *q)
{
	return q->version;
}

pid_t qmp_peer_pid(const struct qmp *q)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	if (!q->open || getsockopt(qmp_fd(q), SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0)
		return 0;
	return peer.pid;
}

struct qmp_counters qmp_counters_of(const struct qmp *q)
{
	return q->counters;
}

int qmp_execute(struct qmp *q, const char *command, struct json_object *arguments,
	uint64_t timeout_ns, uint64_t now_ns, unsigned flags, qmp_reply_fn fn, void *userdata,
	uint64_t *ret_id)
{
	struct pending_call call = {
		.id = q->next_id,
		.deadline_ns = timeout_ns ? qmp_conversation_after(now_ns, timeout_ns) : QMP_NEVER,
		.fn = fn,
		.userdata = userdata,
	};
	bool waits = q->send.len > 0;
	char *text;
	int r;

	if (q->state != QMP_READY || ((flags & QMP_OOB) && !q->oob))
		return QMP_E_STATE;
	text = qmp_message_command(command, arguments, call.id, flags & QMP_OOB);
	if (!text)
		return -ENOMEM;
	r = qmp_pending_add(&q->pending, &call);
	if (r != 0) {
		free(text);
		return r;
	}
	r = qmp_conversation_send(q, text);
	if (r != 0) {
		qmp_pending_remove(&q->pending, qmp_pending_find(&q->pending, call.id));
		return r;
	}
	q->next_id++;
	if (!waits)
		qmp_conversation_flush(q); /* what fails here is seen by the next process() */
	if (ret_id)
		*ret_id = call.id;
	return 0;
}

bool qmp_cancel(struct qmp *q, uint64_t id)
{
	struct pending_call *call = qmp_pending_find(&q->pending, id);
	struct qmp_error err;
	qmp_reply_fn fn;

	if (!call || !call->fn)
		return false;
	fn = call->fn;
	call->fn = NULL;
	qmp_error_set(&err, QMP_E_CANCELLED, "the command was cancelled by its user");
	qmp_client_hold(q);
	fn(call->userdata, q, QMP_E_CANCELLED, NULL, &err);
	qmp_client_release(q);
	return true;
}
