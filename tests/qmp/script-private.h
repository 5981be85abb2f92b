/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Shared by script.c (lines and how bytes arrive) and script-expect.c (what came of it). */
#pragma once

#include "tests/qmp/script.h"

#define SCRIPT_LABELS 36 /* 0 to 9, a to z; 0 is qmp_capabilities */

struct run;

struct label {
	struct run *run;
	char name;
	bool sent;
	unsigned ended;
	uint64_t id;   /* the client's, for qmp_cancel() */
	char *wire_id; /* own; as JSON */
};

struct run {
	const char *name;
	unsigned line;
	enum script_how how;
	size_t at, offset; /* in all that the peer says */
	bool failed, stopped;

	struct qmp_config config;
	struct qmp *q;
	struct peer peer;
	uint64_t now_ns;
	struct peer_text queued; /* said by the peer, not yet delivered */
	struct label label[SCRIPT_LABELS];

	/* what came out, and what was sent: one line each, both taken from the front */
	struct lines {
		char **line; /* own, with what they point to */
		size_t n, taken;
	} log, sent;

	/* where the peer is in its message, by another count than the client's */
	unsigned depth;
	bool in_string, escaped;
};

void run_fail(struct run *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void lines_add(struct lines *lines, char *line);
void lines_clear(struct lines *lines);
void run_log(struct run *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* \xNN, $L and @N<TEXT> replaced. */
void run_expand(struct run *r, const char *text, struct peer_text *ret);
/* "5s", "100ms", "7ns". */
uint64_t run_duration(struct run *r, const char *text);
struct label *run_label(struct run *r, char name);

/* script-expect.c: the client's callbacks, and the verb "expect" */
void on_event(void *userdata, struct qmp *q, const struct qmp_event *event);
void on_state(void *userdata, struct qmp *q, enum qmp_state state);
void on_reply(void *userdata, struct qmp *q, int result, struct json_object *ret,
	const struct qmp_error *err);
void run_expect(struct run *r, const char *what);
