/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Everything that comes out of the client becomes one line of text, and a transcript names these
 * lines in their order: nothing can come out that is not looked at.
 */
#include "tests/qmp/script-private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SHOWN 300 /* of a line that is not the one expected */

static const char *plain(struct json_object *object)
{
	return json_object_to_json_string_ext(object, JSON_C_TO_STRING_NOSLASHESCAPE);
}

static void check_text(struct run *r, const char *text)
{
	if (!text[0])
		run_fail(r, "an empty text for people");
	for (const char *c = text; *c; c++)
		if (*c < ' ' || *c > '~')
			run_fail(r, "byte 0x%02x in '%s'", (unsigned)(unsigned char)*c, text);
}

void on_event(void *userdata, struct qmp *q, const struct qmp_event *event)
{
	struct run *r = userdata;

	check_text(r, event->name);
	if (strlen(event->name) > 63)
		run_fail(r, "a name of %zu bytes", strlen(event->name));
	run_log(r, "event %s %lld%s%s", event->name, (long long)event->time_us,
		event->data ? " " : "", event->data ? plain(event->data) : "");
}

void on_state(void *userdata, struct qmp *q, enum qmp_state state)
{
	struct run *r = userdata;

	if (state != qmp_state_of(q))
		run_fail(r, "told of %s while %s", qmp_state_name(state),
			qmp_state_name(qmp_state_of(q)));
	if (state != QMP_BROKEN) {
		run_log(r, "state %s", qmp_state_name(state));
		return;
	}
	check_text(r, qmp_last_error(q)->text);
	run_log(r, "state broken %s", qmp_result_name(qmp_last_error(q)->code));
}

void on_reply(void *userdata, struct qmp *q, int result, struct json_object *ret,
	const struct qmp_error *err)
{
	struct label *l = userdata;
	struct run *r = l->run;

	l->ended++;
	if ((err != NULL) != (result != 0) || (result != 0 && ret))
		run_fail(r, "reply %c: result %d, %s error, %s return", l->name, result,
			err ? "an" : "no", ret ? "a" : "no");
	if (!err) {
		run_log(r, "reply %c ok %s", l->name, plain(ret));
		return;
	}
	check_text(r, err->text);
	if (err->code != result)
		run_fail(r, "reply %c: result %d with error %d", l->name, result, err->code);
	if (result == QMP_E_REMOTE)
		run_log(r, "reply %c error-reply %s: %s", l->name, err->class_name, err->text);
	else
		run_log(r, "reply %c %s", l->name, qmp_result_name(result));
}

/* Lengths, too, since expected bytes may be NUL; cut so that a long one can be read. */
static void check_same(struct run *r, const char *got, const struct peer_text *want)
{
	size_t at = 0;

	if (strlen(got) == want->len && memcmp(got, want->bytes, want->len) == 0)
		return;
	while (at < want->len && got[at] == want->bytes[at])
		at++;
	at = at > 40 ? at - 40 : 0;
	run_fail(r, "got  '%s%.*s'\n#   want '%s%.*s'", at ? "..." : "", SHOWN, got + at,
		at ? "..." : "", SHOWN, want->bytes + at);
}

static void expect_next(struct run *r, struct lines *lines, const char *what)
{
	struct peer_text want = {0};

	if (strcmp(what, "nothing") == 0) {
		if (lines->taken < lines->n)
			run_fail(r, "not expected: %.300s", lines->line[lines->taken]);
		return;
	}
	if (lines->taken == lines->n) {
		run_fail(r, "did not come: %.300s", what);
		return;
	}
	run_expand(r, what, &want);
	check_same(r, lines->line[lines->taken++], &want);
	free(want.bytes);
}

static void expect_counter(struct run *r, const char *what)
{
	struct qmp_counters c = qmp_counters_of(r->q);
	char line[160];

	snprintf(line, sizeof(line), "events=%llu replies=%llu strays=%llu breaks=%llu",
		(unsigned long long)c.events, (unsigned long long)c.replies,
		(unsigned long long)c.strays, (unsigned long long)c.breaks);
	if (strcmp(line, what) != 0)
		run_fail(r, "counted %s", line);
}

static void expect_deadline(struct run *r, const char *what)
{
	uint64_t deadline = qmp_deadline_ns(r->q);

	if (strcmp(what, "never") == 0) {
		if (deadline != QMP_NEVER)
			run_fail(r, "a deadline in %llu ns",
				(unsigned long long)(deadline - r->now_ns));
		return;
	}
	if (deadline != r->now_ns + run_duration(r, what))
		run_fail(r, "the deadline is %lld ns from now", (long long)(deadline - r->now_ns));
}

static void expect_version(struct run *r, const char *what)
{
	struct json_object *version = qmp_greeting_version(r->q);

	if (strcmp(version ? plain(version) : "none", what) != 0)
		run_fail(r, "version is %s", version ? plain(version) : "none");
}

void run_expect(struct run *r, const char *what)
{
	size_t len = strcspn(what, " ");
	const char *args = what + len + (what[len] == ' ');

	if (r->how == SCRIPT_HANGUP)
		return;
	if (strncmp(what, "sent ", 5) == 0)
		expect_next(r, &r->sent, args);
	else if (strncmp(what, "deadline ", 9) == 0)
		expect_deadline(r, args);
	else if (strncmp(what, "counters ", 9) == 0)
		expect_counter(r, args);
	else if (strncmp(what, "version ", 8) == 0)
		expect_version(r, args);
	else if (strcmp(what, "oob yes") == 0 || strcmp(what, "oob no") == 0) {
		if (qmp_has_oob(r->q) != (what[4] == 'y'))
			run_fail(r, "out of band: not %s", args);
	} else {
		expect_next(r, &r->log, what);
	}
}
