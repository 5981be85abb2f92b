/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * For tests that need code and no transcript: a client, a peer in memory and a list of what was
 * called. What a test wants to happen inside a callback hangs in `act`.
 */
#pragma once

#include "tests/qmp/peer.h"

#define FIXTURE_NOTES 64

struct fixture {
	struct qmp_config config;
	struct qmp *q;
	struct peer peer;
	uint64_t now_ns;
	char note[FIXTURE_NOTES][48]; /* "event STOP", "state broken closed", "reply 1 ok" */
	unsigned n_notes;
	/* Called from within the client's callback, after the note was made; NULL: nothing. */
	void (*act)(struct fixture *f, const char *note);
	void *userdata;
};

struct call {
	struct fixture *f;
	int number;
	unsigned ended;
	int result;
	uint64_t id;
	char wire_id[32]; /* as JSON; "" if the peer has not taken the command yet */
};

void fixture_init(struct fixture *f);
/* Frees the client, if it is still there. */
void fixture_deinit(struct fixture *f);
/* Connects to f->peer and negotiates; the notes are emptied. Aborts if that fails. */
void fixture_ready(struct fixture *f);

/* Said, and heard with the next fixture_process(), all in one read. */
void fixture_say(struct fixture *f, const char *line);
void fixture_say_reply(struct fixture *f, const struct call *call);
void fixture_process(struct fixture *f);
/* The notes, joined by ", ". Valid until the next one; empties them. */
const char *fixture_notes(struct fixture *f);

/* Sends "c<number>". Returns what qmp_execute() does. */
int fixture_execute(struct fixture *f, struct call *call, int number, uint64_t timeout_ns);
void fixture_on_reply(void *userdata, struct qmp *q, int result, struct json_object *ret,
	const struct qmp_error *err);
