/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Theory of operation: bytes are read, cut into messages (frame.c), told apart (message.c) and
 * given to whom they belong. Any callback may disconnect, reconnect or free this connection; so
 * after each of them `generation` is compared, and if it is another one, everything at hand is
 * dropped.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "qmp/client-private.h"
#include "qmp/message.h"

#define READ_BYTES ((size_t)64 << 10)
#define READS_MAX 16u /* in one go: others wait for the loop, too */
#define RETRY_NS (UINT64_C(50) * 1000000)

void qmp_conversation_set_state(struct qmp *q, enum qmp_state state)
{
	static const bool allowed[QMP_STATES][QMP_STATES] = {
		[QMP_DISCONNECTED] = {[QMP_CONNECTING] = true, [QMP_GREETING] = true},
		[QMP_CONNECTING] =
			{[QMP_GREETING] = true, [QMP_BROKEN] = true, [QMP_DISCONNECTED] = true},
		[QMP_GREETING] =
			{[QMP_NEGOTIATING] = true, [QMP_BROKEN] = true, [QMP_DISCONNECTED] = true},
		[QMP_NEGOTIATING] =
			{[QMP_READY] = true, [QMP_BROKEN] = true, [QMP_DISCONNECTED] = true},
		[QMP_READY] = {[QMP_BROKEN] = true, [QMP_DISCONNECTED] = true},
		[QMP_BROKEN] =
			{[QMP_CONNECTING] = true, [QMP_GREETING] = true, [QMP_DISCONNECTED] = true},
	};

	assert(allowed[q->state][state]);
	assert(q->open ==
		(state == QMP_GREETING || state == QMP_NEGOTIATING || state == QMP_READY));
	q->state = state;
}

void qmp_conversation_tell_state(struct qmp *q)
{
	if (q->config.on_state)
		q->config.on_state(q->config.userdata, q, q->state);
}

uint64_t qmp_conversation_after(uint64_t now_ns, uint64_t ns)
{
	return ns < QMP_NEVER - now_ns ? now_ns + ns : QMP_NEVER;
}

void qmp_conversation_close(struct qmp *q)
{
	if (q->open)
		q->transport.close(q->transport.t);
	q->open = false;
	q->generation++;
	qmp_frame_reset(&q->frame);
	q->send.len = 0;
	q->oob = false;
	q->next_try_ns = q->connect_end_ns = q->handshake_end_ns = QMP_NEVER;
	q->message_end_ns = q->reconnect_ns = QMP_NEVER;
}

void qmp_conversation_end_calls(struct qmp *q, int code, const struct qmp_error *err)
{
	const uint64_t end = q->next_id; /* a callback may connect anew and send others */
	struct qmp_error why = *err;
	struct pending_call *oldest;

	while ((oldest = qmp_pending_oldest(&q->pending)) && oldest->id < end) {
		struct pending_call call = *oldest;

		qmp_pending_remove(&q->pending, oldest);
		if (call.fn)
			call.fn(call.userdata, q, code, NULL, &why);
	}
}

void qmp_conversation_break(struct qmp *q, const struct qmp_error *why, uint64_t now_ns)
{
	uint64_t generation;

	if (q->state == QMP_BROKEN || q->state == QMP_DISCONNECTED)
		return;
	q->error = *why;
	q->counters.breaks++;
	qmp_conversation_close(q);
	if (q->path && q->config.reconnect_min_ns) {
		q->reconnect_ns = qmp_conversation_after(now_ns, q->backoff_ns);
		q->backoff_ns = qmp_conversation_after(q->backoff_ns, q->backoff_ns);
		if (q->backoff_ns > q->config.reconnect_max_ns)
			q->backoff_ns = q->config.reconnect_max_ns;
	}
	generation = q->generation;
	qmp_conversation_set_state(q, QMP_BROKEN);
	qmp_conversation_end_calls(q, q->error.code, &q->error);
	if (q->generation == generation)
		qmp_conversation_tell_state(q);
}

void qmp_conversation_try(struct qmp *q, uint64_t now_ns)
{
	struct qmp_transport transport;
	struct qmp_error err;
	int r = qmp_transport_unix(q->path, &transport, &err);

	if (r == 0) {
		qmp_conversation_begin(q, &transport, now_ns);
	} else if (r == QMP_E_BUSY && now_ns < q->connect_end_ns) {
		q->next_try_ns = now_ns + RETRY_NS;
	} else {
		if (r < 0)
			qmp_error_set(&err, QMP_E_IO, "%s: %s", q->path, strerror(-r));
		qmp_conversation_break(q, &err, now_ns);
	}
}

void qmp_conversation_begin(struct qmp *q, const struct qmp_transport *transport, uint64_t now_ns)
{
	q->next_try_ns = q->connect_end_ns = QMP_NEVER;
	q->handshake_end_ns = qmp_conversation_after(now_ns, q->config.greeting_timeout_ns);
	q->transport = *transport;
	q->open = true;
	q->error = (struct qmp_error){0};
	json_object_put(q->version);
	q->version = NULL;
	qmp_conversation_set_state(q, QMP_GREETING);
	qmp_conversation_tell_state(q);
}

int qmp_conversation_send(struct qmp *q, char *text)
{
	size_t len = strlen(text);
	char *grown;

	if (q->send.len + len > QMP_SEND_BYTES_MAX) {
		free(text);
		return QMP_E_FULL;
	}
	if (!q->send.len) {
		free(q->send.bytes);
		q->send.bytes = text;
		q->send.len = len;
		return 0;
	}
	grown = realloc(q->send.bytes, q->send.len + len + 1);
	if (!grown) {
		free(text);
		return -ENOMEM;
	}
	memcpy(grown + q->send.len, text, len + 1);
	free(text);
	q->send.bytes = grown;
	q->send.len += len;
	return 0;
}

int qmp_conversation_flush(struct qmp *q)
{
	size_t done = 0;
	ssize_t n = 0;

	while (done < q->send.len) {
		n = q->transport.write(q->transport.t, q->send.bytes + done, q->send.len - done);
		if (n == 0) /* a transport that takes nothing is one that is full */
			n = -EAGAIN;
		if (n < 0)
			break;
		done += (size_t)n;
	}
	q->send.len -= done;
	if (q->send.len && done)
		memmove(q->send.bytes, q->send.bytes + done, q->send.len);
	return n < 0 ? (int)n : 0;
}

static void protocol_error(struct qmp *q, uint64_t now_ns, const char *what)
{
	struct qmp_error err;

	qmp_error_set(&err, QMP_E_PROTOCOL, "not QMP: %s", what);
	qmp_conversation_break(q, &err, now_ns);
}

/* Answers the greeting. Returns 0 or -ENOMEM. */
static int negotiate(struct qmp *q, const struct message *m)
{
	struct json_object *arguments = NULL, *enable;
	char *text;
	int r;

	q->version = json_object_get(m->version);
	q->oob = m->offers_oob && !q->config.no_oob;
	if (q->oob) {
		arguments = json_object_new_object();
		enable = json_object_new_array();
		json_object_array_add(enable, json_object_new_string("oob"));
		json_object_object_add(arguments, "enable", enable);
	}
	q->negotiation_id = q->next_id++;
	text = qmp_message_command(
		"qmp_capabilities", arguments, q->negotiation_id, /* oob= */ false);
	json_object_put(arguments);
	r = text ? qmp_conversation_send(q, text) : -ENOMEM;
	if (r < 0)
		return r;
	qmp_conversation_flush(q); /* what fails here is seen by the next process() */
	qmp_conversation_set_state(q, QMP_NEGOTIATING);
	qmp_conversation_tell_state(q);
	return 0;
}

static void end_negotiation(struct qmp *q, const struct message *m, uint64_t now_ns)
{
	struct qmp_error err;

	if (m->has_id && m->id != q->negotiation_id) {
		q->counters.strays++;
		return;
	}
	if (m->kind == MESSAGE_ERROR) {
		qmp_error_set(&err, QMP_E_NEGOTIATION, "the peer refused qmp_capabilities: %s: %s",
			m->error.class_name, m->error.text);
		memcpy(err.class_name, m->error.class_name, sizeof(err.class_name));
		qmp_conversation_break(q, &err, now_ns);
		return;
	}
	q->handshake_end_ns = QMP_NEVER;
	q->backoff_ns = q->config.reconnect_min_ns;
	qmp_conversation_set_state(q, QMP_READY);
	qmp_conversation_tell_state(q);
}

static void give_reply(struct qmp *q, const struct message *m, uint64_t now_ns)
{
	struct pending_call *slot, call;

	if (!m->has_id && m->kind == MESSAGE_RETURN && q->pending.n != 1) {
		protocol_error(q, now_ns, "a reply without an id, and not one command is open");
		return;
	}
	slot = m->has_id ? qmp_pending_find(&q->pending, m->id) : qmp_pending_oldest(&q->pending);
	if (!slot) {
		q->counters.strays++;
		return;
	}
	call = *slot;
	qmp_pending_remove(&q->pending, slot);
	if (!call.fn) {
		q->counters.strays++;
		return;
	}
	q->counters.replies++;
	if (m->kind == MESSAGE_RETURN)
		call.fn(call.userdata, q, 0, m->ret, NULL);
	else
		call.fn(call.userdata, q, QMP_E_REMOTE, NULL, &m->error);
}

static void give_event(struct qmp *q, const struct message *m)
{
	struct qmp_event event = {.name = m->name, .data = m->data, .time_us = m->time_us};

	q->counters.events++;
	if (q->config.on_event)
		q->config.on_event(q->config.userdata, q, &event);
}

static int handle(struct qmp *q, const struct message *m, uint64_t now_ns)
{
	switch (m->kind) {
	case MESSAGE_EVENT:
		give_event(q, m);
		return 0;
	case MESSAGE_GREETING:
		if (q->state == QMP_GREETING)
			return negotiate(q, m);
		protocol_error(q, now_ns, "a second greeting");
		return 0;
	case MESSAGE_RETURN:
	case MESSAGE_ERROR:
		if (q->state == QMP_GREETING)
			protocol_error(q, now_ns, "a reply before the greeting");
		else if (q->state == QMP_NEGOTIATING)
			end_negotiation(q, m, now_ns);
		else
			give_reply(q, m, now_ns);
		return 0;
	default:
		protocol_error(q, now_ns, "an object that is neither greeting nor event nor reply");
		return 0;
	}
}

/* Handles all whole messages that are there. */
static int drain(struct qmp *q, uint64_t now_ns)
{
	uint64_t generation = q->generation;
	struct json_object *object;
	struct qmp_error err;
	struct message m;
	int r;

	for (;;) {
		r = qmp_frame_next(&q->frame, &object, &err);
		if (r < 0)
			return r;
		if (r > 0) {
			qmp_conversation_break(q, &err, now_ns);
			return 0;
		}
		if (!object)
			break;
		q->message_end_ns = QMP_NEVER;
		qmp_message_read(object, &m);
		r = handle(q, &m, now_ns);
		json_object_put(object);
		if (r < 0 || q->generation != generation)
			return r;
	}
	if (!qmp_frame_partial(&q->frame))
		q->message_end_ns = QMP_NEVER;
	else if (q->message_end_ns == QMP_NEVER)
		q->message_end_ns = qmp_conversation_after(now_ns, q->config.message_timeout_ns);
	return 0;
}

static void end_of_stream(struct qmp *q, int error, uint64_t now_ns)
{
	struct qmp_error err;

	if (error && error != ECONNRESET && error != EPIPE)
		qmp_error_set(&err, QMP_E_IO, "reading from the monitor: %s", strerror(error));
	else if (qmp_frame_partial(&q->frame))
		qmp_error_set(&err, QMP_E_TRUNCATED,
			"the peer closed the connection in the middle of a message");
	else
		qmp_error_set(&err, QMP_E_CLOSED, "the peer closed the connection%s",
			q->state == QMP_GREETING ? " without a greeting" : "");
	qmp_conversation_break(q, &err, now_ns);
}

int qmp_conversation_receive(struct qmp *q, uint64_t now_ns)
{
	uint64_t generation = q->generation;

	for (unsigned i = 0; i < READS_MAX; i++) {
		size_t room;
		ssize_t n;
		char *at;
		int r;

		r = qmp_frame_room(&q->frame, &at, &room);
		if (r < 0)
			return r;
		if (room > READ_BYTES)
			room = READ_BYTES;
		n = q->transport.read(q->transport.t, at, room);
		if (n == -EAGAIN)
			return 0;
		if (n <= 0) {
			end_of_stream(q, (int)-n, now_ns);
			return 0;
		}
		qmp_frame_filled(&q->frame, (size_t)n);
		r = drain(q, now_ns);
		if (r < 0 || q->generation != generation || (size_t)n < room)
			return r;
	}
	return 0;
}
