/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A UNIX listener in a directory of its own, in this very process. Aborts where the system fails.
 */
#pragma once

#include <sys/un.h>

#include "qmp/client.h"

struct server {
	char dir[64];
	char path[108]; /* where it listens, below dir */
	int listener;   /* -1: none */
	int accepted;   /* -1: none */
	int filler[16]; /* clients that wait to be accepted */
	unsigned n_fillers;
	char heard[1 << 16];
};

void server_init(struct server *s);
/* Removes the directory and what is in it. */
void server_deinit(struct server *s);
/* "DIR/NAME" in @buf, 256 bytes; returned. */
const char *server_path(const struct server *s, char *buf, const char *name);
void server_address(struct sockaddr_un *address, const char *path);
void server_listen(struct server *s, int backlog);
/* Connects until no more would be queued; false if there is no end of it. */
bool server_fill(struct server *s);
/* Accepts and drops those. */
void server_empty(struct server *s);
void server_accept(struct server *s);
void server_hang_up(struct server *s);
void server_say(struct server *s, const char *text);
/* What has come since the last time, cut; never NULL. */
const char *server_heard(struct server *s);
/* How many lines have come since the last time. */
unsigned server_lines(struct server *s);
/* Connects @q and answers until it is ready. */
void server_handshake(struct server *s, struct qmp *q, uint64_t now_ns);
/* Writes the result to the int at @userdata. */
void server_on_reply(void *userdata, struct qmp *q, int result, struct json_object *ret,
	const struct qmp_error *err);
