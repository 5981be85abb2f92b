/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A QMP peer without a process and without a socket: what it has said lies in memory until the
 * client reads it, what the client says is kept. The test decides what poll() would have answered.
 */
#pragma once

#include "qmp/client.h"

struct peer_text {
	char *bytes; /* own; NUL behind them */
	size_t len, size;
};

struct peer {
	struct peer_text said; /* by the peer */
	size_t heard;          /* of it, by the client */
	struct peer_text told; /* by the client; the test may empty it */
	size_t takes;          /* so many bytes more, then the peer is full; SIZE_MAX: all */
	bool hung_up;          /* behind `said` is the end */
	int error;             /* ... or this errno */
	int event;             /* an fd for qmp_fd(), which nobody polls */
	unsigned reads, writes, closed;
};

/* Aborts where memory or fds are short, as all of these do. */
void peer_init(struct peer *p);
void peer_deinit(struct peer *p);
/* As new, for another connection. */
void peer_reset(struct peer *p);
struct qmp_transport peer_transport(struct peer *p);

void peer_say(struct peer *p, const char *bytes, size_t len);
/* What poll() would say. */
short peer_revents(const struct peer *p, short wanted);
/* qmp_process() until the client has heard all, with all that poll() would say. */
int peer_process(struct peer *p, struct qmp *q, uint64_t now_ns);

/* The next whole line the client has told, without its line end; owned by the caller. NULL: none.
 */
char *peer_next_line(struct peer *p);

void peer_text_add(struct peer_text *t, const char *bytes, size_t len);
void peer_text_repeat(struct peer_text *t, const char *bytes, size_t len, size_t times);
