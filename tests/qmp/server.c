/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Why in this process: who does what when is then a matter of lines, not of luck. */
#include "tests/qmp/server.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

void server_init(struct server *s)
{
	*s = (struct server){.listener = -1, .accepted = -1};
	snprintf(s->dir, sizeof(s->dir), "/tmp/numaherd-qmp-XXXXXX");
	if (!mkdtemp(s->dir))
		abort();
	snprintf(s->path, sizeof(s->path), "%s/qmp", s->dir);
}

void server_deinit(struct server *s)
{
	DIR *dir = opendir(s->dir);
	struct dirent *entry;

	server_empty(s);
	server_hang_up(s);
	if (s->listener >= 0)
		close(s->listener);
	while (dir && (entry = readdir(dir)))
		unlinkat(dirfd(dir), entry->d_name, 0);
	if (dir)
		closedir(dir);
	rmdir(s->dir);
}

const char *server_path(const struct server *s, char *buf, const char *name)
{
	snprintf(buf, 256, "%s/%s", s->dir, name);
	return buf;
}

void server_address(struct sockaddr_un *address, const char *path)
{
	*address = (struct sockaddr_un){.sun_family = AF_UNIX};
	snprintf(address->sun_path, sizeof(address->sun_path), "%s", path);
}

void server_listen(struct server *s, int backlog)
{
	struct sockaddr_un address;

	server_address(&address, s->path);
	s->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (bind(s->listener, (struct sockaddr *)&address, sizeof(address)) < 0 ||
		listen(s->listener, backlog) < 0)
		abort();
}

bool server_fill(struct server *s)
{
	struct sockaddr_un address;

	server_address(&address, s->path);
	while (s->n_fillers < sizeof(s->filler) / sizeof(s->filler[0])) {
		int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

		if (fd < 0)
			abort();
		if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
			close(fd);
			return errno == EAGAIN;
		}
		s->filler[s->n_fillers++] = fd;
	}
	return false;
}

void server_empty(struct server *s)
{
	while (s->n_fillers) {
		close(accept4(s->listener, NULL, NULL, SOCK_CLOEXEC));
		close(s->filler[--s->n_fillers]);
	}
}

void server_accept(struct server *s)
{
	s->accepted = accept4(s->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (s->accepted < 0)
		abort();
}

void server_hang_up(struct server *s)
{
	if (s->accepted >= 0)
		close(s->accepted);
	s->accepted = -1;
}

void server_say(struct server *s, const char *text)
{
	size_t len = strlen(text);

	if (send(s->accepted, text, len, MSG_NOSIGNAL) != (ssize_t)len)
		abort();
}

const char *server_heard(struct server *s)
{
	ssize_t n = recv(s->accepted, s->heard, sizeof(s->heard) - 1, 0);

	s->heard[n > 0 ? n : 0] = '\0';
	return s->heard;
}

unsigned server_lines(struct server *s)
{
	unsigned lines = 0;
	ssize_t n;

	while ((n = recv(s->accepted, s->heard, sizeof(s->heard), 0)) > 0)
		for (ssize_t i = 0; i < n; i++)
			lines += s->heard[i] == '\n';
	return lines;
}

void server_handshake(struct server *s, struct qmp *q, uint64_t now_ns)
{
	if (qmp_connect(q, s->path, now_ns) != 0)
		abort();
	server_accept(s);
	server_say(s, "{\"QMP\": {}}");
	qmp_process(q, POLLIN, now_ns);
	if (!strstr(server_heard(s), "qmp_capabilities"))
		abort();
	server_say(s, "{\"return\": {}}");
	qmp_process(q, POLLIN, now_ns);
	if (qmp_state_of(q) != QMP_READY)
		abort();
}

void server_on_reply(void *userdata, struct qmp *q, int result, struct json_object *ret,
	const struct qmp_error *err)
{
	*(int *)userdata = result;
}
