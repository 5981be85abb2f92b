/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Why lines are interpreted anew in each run and nothing is compiled: a transcript is short, and
 * the ids that it speaks of are only known while it runs.
 */
#include "tests/qmp/script-private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policy/base.h"

/* One command of the client, its id taken out; @label: whose id it is, NULL for qmp_capabilities.
 */
static void take_sent(struct run *r, const char *line, struct label *label)
{
	struct json_object *command = json_tokener_parse(line), *id = NULL, *name = NULL;

	if (!json_object_is_type(command, json_type_object) ||
		!json_object_object_get_ex(command, "id", &id)) {
		run_fail(r, "the client sent '%s'", line);
		json_object_put(command);
		return;
	}
	if (!label && json_object_object_get_ex(command, "execute", &name) &&
		strcmp(json_object_get_string(name), "qmp_capabilities") == 0)
		label = &r->label[0];
	if (!label) {
		run_fail(r, "the client sent '%s' by itself", line);
	} else {
		free(label->wire_id);
		label->wire_id = strdup(json_object_to_json_string_ext(id, 0));
	}
	json_object_object_del(command, "id");
	lines_add(&r->sent, strdup(json_object_to_json_string_ext(command, 0)));
	json_object_put(command);
}

/* What holds after each call, in every state. */
static void check_promises(struct run *r)
{
	enum qmp_state state = qmp_state_of(r->q);
	bool open = state == QMP_GREETING || state == QMP_NEGOTIATING || state == QMP_READY;

	if (state >= QMP_STATES)
		run_fail(r, "state %d", (int)state);
	if (open != (qmp_fd(r->q) >= 0) || open != (qmp_wanted(r->q) != 0))
		run_fail(r, "%s: fd %d, wants 0x%x", qmp_state_name(state), qmp_fd(r->q),
			(unsigned)qmp_wanted(r->q));
	if (qmp_deadline_ns(r->q) <= r->now_ns)
		run_fail(r, "the loop would spin: its deadline has come already");
	if (state == QMP_BROKEN && !qmp_last_error(r->q)->code)
		run_fail(r, "broken, without a reason");
}

static void process(struct run *r, struct label *label)
{
	char *line;
	int result = peer_process(&r->peer, r->q, r->now_ns);

	if (result != 0)
		run_fail(r, "qmp_process() returned %d", result);
	check_promises(r);
	while ((line = peer_next_line(&r->peer))) {
		take_sent(r, line, label);
		free(line);
	}
}

/* Keeps an independent word on whether the peer is in the middle of a message. */
static void follow(struct run *r, const char *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		char c = bytes[i];

		if (r->escaped)
			r->escaped = false;
		else if (r->in_string && c == '\\')
			r->escaped = true;
		else if (c == '"')
			r->in_string = !r->in_string;
		else if (!r->in_string && (c == '{' || c == '['))
			r->depth++;
		else if (!r->in_string && (c == '}' || c == ']'))
			r->depth--;
	}
}

static void arrive(struct run *r, const char *bytes, size_t len)
{
	if (!len)
		return;
	follow(r, bytes, len);
	peer_say(&r->peer, bytes, len);
	process(r, NULL);
}

static void hang_up(struct run *r)
{
	bool open = qmp_fd(r->q) >= 0;
	int code, want = r->depth ? QMP_E_TRUNCATED : QMP_E_CLOSED;

	r->peer.hung_up = true;
	process(r, NULL);
	code = qmp_last_error(r->q)->code;
	if (open && (qmp_state_of(r->q) != QMP_BROKEN || code != want))
		run_fail(r, "after the end: %s, %s", qmp_state_name(qmp_state_of(r->q)),
			qmp_result_name(code));
}

/* What the peer has said so far comes to the client. */
static void deliver(struct run *r)
{
	const char *bytes = r->queued.bytes;
	size_t len = r->queued.len, first = len;

	if ((r->how == SCRIPT_CUT || r->how == SCRIPT_HANGUP) && r->at >= r->offset &&
		r->at - r->offset < len)
		first = r->at - r->offset;
	r->queued.len = 0;
	r->offset += len;
	if (r->how == SCRIPT_BYTES) {
		for (size_t i = 0; i < len; i++)
			arrive(r, bytes + i, 1);
		return;
	}
	arrive(r, bytes, first);
	if (first == len || r->how != SCRIPT_HANGUP) {
		arrive(r, bytes + first, len - first);
		return;
	}
	hang_up(r);
	r->stopped = true;
}

static void connect_peer(struct run *r)
{
	struct qmp_transport t = peer_transport(&r->peer);

	peer_reset(&r->peer);
	r->sent.taken = r->sent.n;
	r->depth = 0;
	r->in_string = r->escaped = false;
	if (!r->q && qmp_new(&r->config, &r->q) < 0)
		abort();
	if (qmp_connect_transport(r->q, &t, r->now_ns) != 0)
		run_fail(r, "not connected");
	process(r, NULL);
}

static void execute(struct run *r, const char *args)
{
	struct label *l = run_label(r, args[0]);
	char name[64], word[64];
	struct json_object *arguments = NULL;
	uint64_t timeout_ns = 0;
	unsigned flags = 0;
	int n = 0, used, result;

	if (sscanf(args + 1, " %63s%n", name, &n) != 1)
		run_fail(r, "execute what?");
	for (args += 1 + n; sscanf(args, " %63s%n", word, &used) == 1; args += used) {
		if (strcmp(word, "oob") == 0)
			flags |= QMP_OOB;
		else if (strncmp(word, "timeout=", 8) == 0)
			timeout_ns = run_duration(r, word + 8);
		else if (word[0] == '{')
			break;
		else
			run_fail(r, "'%s'?", word);
	}
	if (strchr(args, '{'))
		arguments = json_tokener_parse(strchr(args, '{'));
	result = qmp_execute(
		r->q, name, arguments, timeout_ns, r->now_ns, flags, on_reply, l, &l->id);
	json_object_put(arguments);
	l->sent = result == 0;
	if (result != 0)
		run_log(r, "execute %c %s", l->name, qmp_result_name(result));
	else
		process(r, l);
}

static void fail_with(struct run *r, const char *what)
{
	r->peer.error = strcmp(what, "ECONNRESET") == 0 ? ECONNRESET : EIO;
	process(r, NULL);
}

static void configure(struct run *r, const char *args)
{
	struct qmp_config *c = &r->config;
	char key[32], value[32];
	int used;

	for (; sscanf(args, " %31[a-z_]=%31s%n", key, value, &used) == 2; args += used) {
		if (strcmp(key, "message_bytes_max") == 0)
			c->message_bytes_max = strtoul(value, NULL, 10);
		else if (strcmp(key, "depth_max") == 0)
			c->depth_max = (unsigned)strtoul(value, NULL, 10);
		else if (strcmp(key, "greeting_timeout") == 0)
			c->greeting_timeout_ns = run_duration(r, value);
		else if (strcmp(key, "message_timeout") == 0)
			c->message_timeout_ns = run_duration(r, value);
		else if (strcmp(key, "no_oob") == 0)
			c->no_oob = true;
		else
			run_fail(r, "config %s?", key);
	}
}

static void one_line(struct run *r, char *text);

static void ready(struct run *r, const char *args)
{
	static const char *const lines[] = {
		"connect",
		"expect state greeting",
		"< {\"QMP\": {\"version\": {\"qemu\": {\"micro\": 0, \"minor\": 0, \"major\": 10}, "
		"\"package\": \"\"}, \"capabilities\": []}}",
		"expect state negotiating",
		"expect sent {\"execute\":\"qmp_capabilities\"}",
		"< {\"return\": {}, \"id\": $0}",
		"expect state ready",
	};

	for (size_t i = 0; i < ARRAY_LEN(lines) && !r->stopped; i++) {
		char *copy = strdup(lines[i]);

		one_line(r, copy);
		free(copy);
	}
}

static void advance(struct run *r, const char *args)
{
	r->now_ns += run_duration(r, args);
	process(r, NULL);
}

static void cancel(struct run *r, const char *args)
{
	const struct label *l = run_label(r, args[0]);

	if (!qmp_cancel(r->q, l->id))
		run_log(r, "cancel %c no", l->name);
	check_promises(r);
}

static void one_line(struct run *r, char *text)
{
	char *args = text + strcspn(text, " ");

	if (*args)
		*args++ = '\0';
	if (text[0] == '<') {
		run_expand(r, args, &r->queued);
		if (!text[1])
			peer_text_add(&r->queued, "\r\n", 2);
		return;
	}
	deliver(r);
	if (r->stopped)
		return;
	if (strcmp(text, "expect") == 0)
		run_expect(r, args);
	else if (strcmp(text, ">") == 0)
		execute(r, args);
	else if (strcmp(text, "connect") == 0)
		connect_peer(r);
	else if (strcmp(text, "ready") == 0)
		ready(r, args);
	else if (strcmp(text, "config") == 0)
		configure(r, args);
	else if (strcmp(text, "cancel") == 0)
		cancel(r, args);
	else if (strcmp(text, "disconnect") == 0)
		qmp_disconnect(r->q);
	else if (strcmp(text, "hangup") == 0)
		hang_up(r);
	else if (strcmp(text, "fail") == 0)
		fail_with(r, args);
	else if (strcmp(text, "advance") == 0)
		advance(r, args);
	else
		run_fail(r, "'%s'?", text);
}

/* The client goes; every command has had its end by then, once. */
static void finish(struct run *r)
{
	if (!r->stopped)
		deliver(r);
	if (!r->stopped && r->log.taken < r->log.n)
		run_fail(r, "not expected: %.300s", r->log.line[r->log.taken]);
	r->q = qmp_free(r->q);
	for (size_t i = 0; i < SCRIPT_LABELS; i++) {
		struct label *l = &r->label[i];

		if (l->ended != (l->sent ? 1 : 0))
			run_fail(r, "command %c ended %u times", l->name, l->ended);
		free(l->wire_id);
	}
	peer_deinit(&r->peer);
	free(r->queued.bytes);
	lines_clear(&r->log);
	lines_clear(&r->sent);
}

struct script_result script_run(const char *name, const char *text, enum script_how how, size_t at)
{
	struct run r = {.name = name, .how = how, .at = at, .now_ns = 1000000000000};

	r.config.on_event = on_event;
	r.config.on_state = on_state;
	r.config.userdata = &r;
	peer_init(&r.peer);
	for (size_t i = 0; i < SCRIPT_LABELS; i++)
		r.label[i] = (struct label){
			.run = &r, .name = "0123456789abcdefghijklmnopqrstuvwxyz"[i]};
	while (*text && !r.stopped) {
		size_t len = strcspn(text, "\n");
		char *line = strndup(text, len);

		r.line++;
		if (line && line[0] && line[0] != '#')
			one_line(&r, line);
		free(line);
		text += len + (text[len] == '\n');
	}
	finish(&r);
	return (struct script_result){r.failed, r.offset};
}
