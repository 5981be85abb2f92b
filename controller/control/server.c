/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Theory of operation: each client has one request in work at a time. A reply that does not fit
 * into the socket buffer waits in the client; until it is gone nothing more is read from that
 * client, so a slow reader costs one reply and harms nobody. One that takes no byte for
 * WRITE_TIMEOUT is closed.
 */
#include "controller/control/server.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "controller/control/frame.h"

#define WRITE_TIMEOUT_USEC (UINT64_C(10) * 1000000)

struct client {
	struct client *next;
	struct server *server;
	int fd;
	bool privileged;
	sd_event_source *io, *timer;
	struct frame_reader in;
	char *out; /* own; the reply that is being written */
	size_t out_len, out_done;
};

struct server {
	sd_event *event;
	sd_event_source *io;
	int fd;
	char *path;
	server_handler handler;
	void *userdata;
	unsigned n_clients;
	struct client *clients;
};

static void client_close(struct client *c)
{
	struct client **p = &c->server->clients;

	while (*p != c)
		p = &(*p)->next;
	*p = c->next;
	c->server->n_clients--;
	sd_event_source_disable_unref(c->io);
	sd_event_source_disable_unref(c->timer);
	close(c->fd);
	frame_reader_clear(&c->in);
	free(c->out);
	free(c);
}

static int on_slow(sd_event_source *source, uint64_t usec, void *userdata)
{
	client_close(userdata);
	return 0;
}

/* Writes what is left of the reply. False: the client is to be closed. */
static bool client_flush(struct client *c)
{
	while (c->out_done < c->out_len) {
		ssize_t n = send(c->fd, c->out + c->out_done, c->out_len - c->out_done,
			MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN) {
			sd_event_source_set_io_events(c->io, EPOLLOUT);
			return sd_event_source_set_time_relative(c->timer, WRITE_TIMEOUT_USEC) >=
				       0 &&
			       sd_event_source_set_enabled(c->timer, SD_EVENT_ONESHOT) >= 0;
		}
		if (n < 0)
			return false;
		c->out_done += (size_t)n;
	}
	free(c->out);
	c->out = NULL;
	c->out_len = c->out_done = 0;
	sd_event_source_set_enabled(c->timer, SD_EVENT_OFF);
	return sd_event_source_set_io_events(c->io, EPOLLIN) >= 0;
}

static bool client_reply(struct client *c, struct json_object *o)
{
	const char *text = json_object_to_json_string_ext(o, JSON_C_TO_STRING_PLAIN);
	bool ok = text && (c->out = strdup(text));

	if (ok)
		c->out_len = strlen(text) + 1; /* with the NUL that ends it */
	json_object_put(o);
	return ok && client_flush(c);
}

static struct json_object *error_reply(const char *interface, const char *name)
{
	struct json_object *o = json_object_new_object();
	char full[128];

	snprintf(full, sizeof(full), "%s.%s", interface, name);
	json_object_object_add(o, "error", json_object_new_string(full));
	json_object_object_add(o, "parameters", json_object_new_object());
	return o;
}

static bool client_call(struct client *c, struct json_object *call)
{
	static const char prefix[] = SERVER_INTERFACE ".";
	struct json_object *method = NULL, *params = NULL, *o, *reply;
	const char *name, *error = NULL;

	json_object_object_get_ex(call, "method", &method);
	json_object_object_get_ex(call, "parameters", &params);
	name = json_object_is_type(method, json_type_string) ? json_object_get_string(method) : "";
	if (strncmp(name, prefix, sizeof(prefix) - 1) != 0)
		return client_reply(c, error_reply("org.varlink.service", "InterfaceNotFound"));
	reply = c->server->handler(
		c->server->userdata, name + sizeof(prefix) - 1, params, c->privileged, &error);
	if (!reply && error && strcmp(error, "MethodNotFound") == 0)
		return client_reply(c, error_reply("org.varlink.service", error));
	if (!reply)
		return client_reply(c, error_reply(SERVER_INTERFACE, error ? error : "Internal"));
	o = json_object_new_object();
	json_object_object_add(o, "parameters", reply);
	return client_reply(c, o);
}

/* Handles whole messages as long as no reply waits. False: close. */
static bool client_messages(struct client *c)
{
	while (!c->out) {
		struct json_object *call = NULL;
		int r = frame_reader_next(&c->in, &call);
		bool ok;

		if (r == FRAME_E_NONE)
			return true;
		if (r != 0)
			return false; /* not Varlink: nothing sensible can be said to it */
		ok = client_call(c, call);
		json_object_put(call);
		if (!ok)
			return false;
	}
	return true;
}

static int on_client(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	struct client *c = userdata;
	char buf[4096];
	ssize_t n;
	bool ok;

	if (c->out) {
		ok = !(revents & (EPOLLERR | EPOLLHUP)) && client_flush(c) && client_messages(c);
	} else {
		n = recv(fd, buf, sizeof(buf), MSG_DONTWAIT);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return 0;
		ok = n > 0 && frame_reader_feed(&c->in, buf, (size_t)n) == 0 && client_messages(c);
	}
	if (!ok)
		client_close(c);
	return 0;
}

static void client_new(struct server *s, int fd)
{
	struct client *c = calloc(1, sizeof(*c));
	struct ucred cred = {.uid = (uid_t)-1};
	socklen_t len = sizeof(cred);

	if (!c || s->n_clients >= SERVER_CLIENTS_MAX ||
		getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0) {
		free(c);
		close(fd);
		return;
	}
	c->server = s;
	c->fd = fd;
	c->privileged = cred.uid == 0;
	frame_reader_init(&c->in, FRAME_BYTES_MAX);
	c->next = s->clients;
	s->clients = c;
	s->n_clients++;
	if (sd_event_add_io(s->event, &c->io, fd, EPOLLIN, on_client, c) < 0 ||
		sd_event_add_time_relative(s->event, &c->timer, CLOCK_MONOTONIC, 0, 0, on_slow, c) <
			0 ||
		sd_event_source_set_enabled(c->timer, SD_EVENT_OFF) < 0)
		client_close(c);
}

static int on_connect(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	int client = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (client >= 0)
		client_new(userdata, client);
	return 0;
}

/* Makes way for our socket: a socket nobody listens on is a leftover. */
static int clear_path(const char *path, const struct sockaddr_un *addr)
{
	struct stat st;
	int fd, r;

	if (lstat(path, &st) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISSOCK(st.st_mode))
		return -EEXIST;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	r = connect(fd, (const struct sockaddr *)addr, sizeof(*addr)) == 0 ? -EADDRINUSE : 0;
	close(fd);
	if (r == 0 && unlink(path) < 0)
		r = -errno;
	return r;
}

static int bind_socket(const char *path)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	char dir[sizeof(addr.sun_path)], *slash;
	int fd, r;

	if (strlen(path) >= sizeof(addr.sun_path))
		return -ENAMETOOLONG;
	memcpy(addr.sun_path, path, strlen(path) + 1);
	memcpy(dir, path, strlen(path) + 1);
	slash = strrchr(dir, '/');
	if (slash && slash != dir) {
		*slash = '\0';
		if (mkdir(dir, 0755) < 0 && errno != EEXIST)
			return -errno;
	}
	r = clear_path(path, &addr);
	if (r < 0)
		return r;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	if (bind(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0 || chmod(path, 0660) < 0 ||
		listen(fd, 16) < 0) {
		r = -errno;
		close(fd);
		return r;
	}
	return fd;
}

int server_new(sd_event *event, const char *path, server_handler handler, void *userdata,
	struct server **ret)
{
	struct server *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	s->event = event;
	s->handler = handler;
	s->userdata = userdata;
	s->fd = bind_socket(path);
	r = s->fd < 0 ? s->fd : 0;
	if (r == 0 && !(s->path = strdup(path)))
		r = -ENOMEM;
	if (r == 0)
		r = sd_event_add_io(event, &s->io, s->fd, EPOLLIN, on_connect, s);
	if (r < 0) {
		server_free(s);
		return r;
	}
	*ret = s;
	return 0;
}

struct server *server_free(struct server *s)
{
	if (!s)
		return NULL;
	while (s->clients)
		client_close(s->clients);
	sd_event_source_disable_unref(s->io);
	if (s->fd >= 0)
		close(s->fd);
	if (s->path) {
		unlink(s->path);
		free(s->path);
	}
	free(s);
	return NULL;
}
