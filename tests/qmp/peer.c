/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Why in memory: a transcript is run once for each of its bytes, and no run waits for anything. */
#include "tests/qmp/peer.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

static void make_room(struct peer_text *t, size_t len)
{
	if (t->len + len + 1 <= t->size)
		return;
	t->size = 2 * (t->len + len + 1);
	t->bytes = realloc(t->bytes, t->size);
	if (!t->bytes)
		abort();
}

void peer_text_add(struct peer_text *t, const char *bytes, size_t len)
{
	make_room(t, len);
	if (len)
		memcpy(t->bytes + t->len, bytes, len);
	t->len += len;
	t->bytes[t->len] = '\0';
}

void peer_text_repeat(struct peer_text *t, const char *bytes, size_t len, size_t times)
{
	make_room(t, len * times);
	if (len == 1)
		memset(t->bytes + t->len, bytes[0], times);
	for (size_t i = 0; len > 1 && i < times; i++)
		memcpy(t->bytes + t->len + i * len, bytes, len);
	t->len += len * times;
	t->bytes[t->len] = '\0';
}

void peer_init(struct peer *p)
{
	*p = (struct peer){.takes = SIZE_MAX, .event = eventfd(0, EFD_CLOEXEC)};
	if (p->event < 0)
		abort();
}

void peer_deinit(struct peer *p)
{
	free(p->said.bytes);
	free(p->told.bytes);
	if (p->event >= 0)
		close(p->event);
	*p = (struct peer){.event = -1};
}

void peer_reset(struct peer *p)
{
	p->said.len = p->told.len = p->heard = 0;
	p->takes = SIZE_MAX;
	p->hung_up = false;
	p->error = 0;
	p->reads = p->writes = p->closed = 0;
}

static int transport_fd(void *t)
{
	struct peer *p = t;

	return p->event;
}

static ssize_t transport_read(void *t, void *buf, size_t size)
{
	struct peer *p = t;
	size_t n = p->said.len - p->heard;

	if (p->closed)
		abort();
	p->reads++;
	if (!n)
		return p->error ? -p->error : p->hung_up ? 0 : -EAGAIN;
	if (n > size)
		n = size;
	memcpy(buf, p->said.bytes + p->heard, n);
	p->heard += n;
	return (ssize_t)n;
}

static ssize_t transport_write(void *t, const void *buf, size_t size)
{
	struct peer *p = t;

	if (p->closed)
		abort();
	p->writes++;
	if (p->error || p->hung_up)
		return p->error ? -p->error : -EPIPE;
	if (!p->takes)
		return -EAGAIN;
	if (size > p->takes)
		size = p->takes;
	if (p->takes != SIZE_MAX)
		p->takes -= size;
	peer_text_add(&p->told, buf, size);
	return (ssize_t)size;
}

static void transport_close(void *t)
{
	struct peer *p = t;

	if (p->closed++)
		abort();
}

struct qmp_transport peer_transport(struct peer *p)
{
	return (struct qmp_transport){
		.fd = transport_fd,
		.read = transport_read,
		.write = transport_write,
		.close = transport_close,
		.t = p,
	};
}

void peer_say(struct peer *p, const char *bytes, size_t len)
{
	/* as long as the client keeps up, it always begins at the same place */
	if (p->heard == p->said.len)
		p->said.len = p->heard = 0;
	peer_text_add(&p->said, bytes, len);
}

short peer_revents(const struct peer *p, short wanted)
{
	short revents = 0;

	if (p->closed)
		return 0;
	if (p->heard < p->said.len || p->hung_up || p->error)
		revents |= POLLIN;
	if (p->takes)
		revents |= POLLOUT;
	revents &= wanted;
	if (p->hung_up || p->error)
		revents |= POLLHUP;
	return revents;
}

int peer_process(struct peer *p, struct qmp *q, uint64_t now_ns)
{
	size_t before;
	int r;

	do {
		before = p->heard;
		r = qmp_process(q, peer_revents(p, qmp_wanted(q)), now_ns);
		/* the end of the stream takes a read of its own */
	} while (r == 0 && !p->closed && (p->heard != before) &&
		 (p->heard < p->said.len || p->hung_up || p->error));
	return r;
}

char *peer_next_line(struct peer *p)
{
	char *end = p->told.len ? memchr(p->told.bytes, '\n', p->told.len) : NULL, *line;
	size_t len;

	if (!end)
		return NULL;
	len = (size_t)(end - p->told.bytes);
	line = strndup(p->told.bytes, len && end[-1] == '\r' ? len - 1 : len);
	if (!line)
		abort();
	p->told.len -= len + 1;
	memmove(p->told.bytes, end + 1, p->told.len + 1);
	return line;
}
