/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Why the fixture knows ids: with one message of the client at hand it reads the id out of it, so
 * that no test says what ids look like.
 */
#include "tests/qmp/fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void note(struct fixture *f, const char *word, const char *what, const char *more)
{
	char *line = f->note[f->n_notes];

	if (f->n_notes == FIXTURE_NOTES)
		abort();
	snprintf(line, sizeof(f->note[0]), "%s %s%s%s", word, what, more[0] ? " " : "", more);
	f->n_notes++;
	if (f->act)
		f->act(f, line);
}

static void on_event(void *userdata, struct qmp *q, const struct qmp_event *event)
{
	note(userdata, "event", event->name, "");
}

static void on_state(void *userdata, struct qmp *q, enum qmp_state state)
{
	note(userdata, "state", qmp_state_name(state),
		state == QMP_BROKEN ? qmp_result_name(qmp_last_error(q)->code) : "");
}

void fixture_on_reply(void *userdata, struct qmp *q, int result, struct json_object *ret,
	const struct qmp_error *err)
{
	struct call *call = userdata;
	char number[16];

	call->ended++;
	call->result = result;
	snprintf(number, sizeof(number), "%d", call->number);
	note(call->f, "reply", number, qmp_result_name(result));
}

void fixture_init(struct fixture *f)
{
	*f = (struct fixture){.now_ns = 1000000000000};
	f->config.on_event = on_event;
	f->config.on_state = on_state;
	f->config.userdata = f;
	peer_init(&f->peer);
}

void fixture_deinit(struct fixture *f)
{
	f->act = NULL;
	f->n_notes = 0;
	f->q = qmp_free(f->q);
	peer_deinit(&f->peer);
}

void fixture_say(struct fixture *f, const char *line)
{
	peer_say(&f->peer, line, strlen(line));
	peer_say(&f->peer, "\r\n", 2);
}

void fixture_say_reply(struct fixture *f, const struct call *call)
{
	char line[96];

	snprintf(line, sizeof(line), "{\"return\": {}, \"id\": %s}", call->wire_id);
	fixture_say(f, line);
}

void fixture_process(struct fixture *f)
{
	if (peer_process(&f->peer, f->q, f->now_ns) != 0)
		abort();
}

/* The id of the command that the client has told last, as JSON; "" if there is none. */
static void last_id(struct fixture *f, char *buf, size_t size)
{
	struct json_object *command, *id = NULL;
	char *line, *last = NULL;

	buf[0] = '\0';
	while ((line = peer_next_line(&f->peer))) {
		free(last);
		last = line;
	}
	command = last ? json_tokener_parse(last) : NULL;
	if (command && json_object_object_get_ex(command, "id", &id))
		snprintf(buf, size, "%s", json_object_to_json_string_ext(id, 0));
	json_object_put(command);
	free(last);
}

void fixture_ready(struct fixture *f)
{
	struct qmp_transport t = peer_transport(&f->peer);
	struct call negotiation = {.f = f};

	if (!f->q && qmp_new(&f->config, &f->q) < 0)
		abort();
	peer_reset(&f->peer);
	if (qmp_connect_transport(f->q, &t, f->now_ns) != 0)
		abort();
	fixture_say(f, "{\"QMP\": {\"version\": {}, \"capabilities\": [\"oob\"]}}");
	fixture_process(f);
	last_id(f, negotiation.wire_id, sizeof(negotiation.wire_id));
	fixture_say_reply(f, &negotiation);
	fixture_process(f);
	if (qmp_state_of(f->q) != QMP_READY)
		abort();
	f->n_notes = 0;
}

int fixture_execute(struct fixture *f, struct call *call, int number, uint64_t timeout_ns)
{
	char name[16];
	int r;

	*call = (struct call){.f = f, .number = number};
	snprintf(name, sizeof(name), "c%d", number);
	r = qmp_execute(
		f->q, name, NULL, timeout_ns, f->now_ns, 0, fixture_on_reply, call, &call->id);
	last_id(f, call->wire_id, sizeof(call->wire_id));
	return r;
}

const char *fixture_notes(struct fixture *f)
{
	static char joined[FIXTURE_NOTES * 52];
	size_t len = 0;

	joined[0] = '\0';
	for (unsigned i = 0; i < f->n_notes; i++)
		len += (size_t)snprintf(
			joined + len, sizeof(joined) - len, "%s%s", i ? ", " : "", f->note[i]);
	f->n_notes = 0;
	return joined;
}
