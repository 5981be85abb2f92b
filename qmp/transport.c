/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Two transports: a stream socket, and a monitor that takes whole commands. The second one answers
 * the greeting itself, so that the client need not know that there is none.
 */
#include "qmp/transport.h"

#include <errno.h>
#include <fcntl.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "qmp/client.h"
#include "qmp/frame.h"

#define CALL_BYTES_MAX ((size_t)16 << 20) /* of a command or of replies that wait */

/* Sockets: the fd is the state. */

static int fd_of(void *t)
{
	return (int)(intptr_t)t;
}

static ssize_t socket_read(void *t, void *buf, size_t size)
{
	ssize_t n;

	do {
		n = recv(fd_of(t), buf, size, 0);
	} while (n < 0 && errno == EINTR);
	return n < 0 ? (errno == EWOULDBLOCK ? -EAGAIN : -errno) : n;
}

static ssize_t socket_write(void *t, const void *buf, size_t size)
{
	ssize_t n;

	do {
		n = send(fd_of(t), buf, size, MSG_NOSIGNAL);
	} while (n < 0 && errno == EINTR);
	return n < 0 ? (errno == EWOULDBLOCK ? -EAGAIN : -errno) : n;
}

static void socket_close(void *t)
{
	close(fd_of(t));
}

static void make_socket_transport(int fd, struct qmp_transport *ret)
{
	*ret = (struct qmp_transport){
		.fd = fd_of,
		.read = socket_read,
		.write = socket_write,
		.close = socket_close,
		.t = (void *)(intptr_t)fd,
	};
}

int qmp_transport_fd(int fd, struct qmp_transport *ret, struct qmp_error *err)
{
	int type = 0, flags;
	socklen_t len = sizeof(type);

	if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) < 0 || type != SOCK_STREAM)
		return qmp_error_set(err, QMP_E_NOT_SOCKET, "fd %d is no stream socket", fd);
	flags = fcntl(fd, F_GETFL);
	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0)
		return qmp_error_set(err, QMP_E_IO, "fd %d: %s", fd, strerror(errno));
	make_socket_transport(fd, ret);
	return 0;
}

/* Why connect() to @path failed. */
static int connect_condition(const char *path, int error, struct qmp_error *err)
{
	struct stat st;

	switch (error) {
	case ENOENT:
	case ENOTDIR:
		return qmp_error_set(err, QMP_E_NOT_FOUND, "%s: no such socket", path);
	case EACCES:
	case EPERM:
		return qmp_error_set(err, QMP_E_PERM, "%s: permission denied", path);
	case EAGAIN:
		return qmp_error_set(
			err, QMP_E_BUSY, "%s: busy, others wait for this monitor already", path);
	case EPROTOTYPE:
		return qmp_error_set(err, QMP_E_NOT_SOCKET, "%s: not a stream socket", path);
	case ECONNREFUSED: /* also what connecting to a plain file says */
		if (stat(path, &st) == 0 && !S_ISSOCK(st.st_mode))
			return qmp_error_set(err, QMP_E_NOT_SOCKET, "%s: not a socket", path);
		return qmp_error_set(
			err, QMP_E_REFUSED, "%s: nobody listens there, its QEMU has ended", path);
	default:
		return qmp_error_set(err, QMP_E_IO, "%s: %s", path, strerror(error));
	}
}

int qmp_transport_unix(const char *path, struct qmp_transport *ret, struct qmp_error *err)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	size_t len = strlen(path);
	int fd, r;

	if (!len) /* the kernel takes that for something else */
		return qmp_error_set(err, QMP_E_NOT_FOUND, "a socket without a name");
	if (len >= sizeof(address.sun_path))
		return qmp_error_set(err, QMP_E_PATH_TOO_LONG,
			"%.64s...: %zu bytes, a socket's path has at most %zu", path, len,
			sizeof(address.sun_path) - 1);
	memcpy(address.sun_path, path, len + 1);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	do {
		r = connect(fd, (struct sockaddr *)&address, sizeof(address));
	} while (r < 0 && errno == EINTR);
	if (r < 0) {
		r = connect_condition(path, errno, err);
		close(fd);
		return r;
	}
	make_socket_transport(fd, ret);
	return 0;
}

/* A monitor that takes whole commands. */

struct text {
	char *bytes; /* own */
	size_t len;
};

struct calls {
	qmp_call_fn call;
	void *userdata;
	int event; /* readable while there are replies */
	struct text command, replies;
	size_t taken; /* of replies */
	int failed;   /* what a call failed of: there is no other, since the command is gone */
};

static int text_add(struct text *t, const char *bytes, size_t len)
{
	char *grown;

	if (len > CALL_BYTES_MAX - t->len)
		return -EMSGSIZE;
	grown = realloc(t->bytes, t->len + len + 1);
	if (!grown)
		return -ENOMEM;
	t->bytes = grown;
	memcpy(t->bytes + t->len, bytes, len);
	t->len += len;
	t->bytes[t->len] = '\0';
	return 0;
}

static int add_reply(struct calls *c, const char *text)
{
	const uint64_t one = 1;
	int r = text_add(&c->replies, text, strlen(text));

	if (r == 0)
		r = text_add(&c->replies, "\r\n", 2);
	if (r == 0 && write(c->event, &one, sizeof(one)) < 0 && errno != EAGAIN)
		r = -errno;
	return r;
}

static int add_reply_object(struct calls *c, struct json_object *reply)
{
	const char *text = json_object_to_json_string_ext(reply, JSON_C_TO_STRING_PLAIN);

	return text ? add_reply(c, text) : -ENOMEM;
}

/* An error reply, as QEMU would have sent one. */
static int add_error(struct calls *c, const char *desc, struct json_object *id)
{
	struct json_object *reply = json_object_new_object(), *error = json_object_new_object();
	int r;

	json_object_object_add(error, "class", json_object_new_string("GenericError"));
	json_object_object_add(error, "desc", json_object_new_string(desc));
	json_object_object_add(reply, "error", error);
	json_object_object_add(reply, "id", json_object_get(id));
	r = add_reply_object(c, reply);
	json_object_put(reply);
	return r;
}

static int add_failure(struct calls *c, int result, struct json_object *id)
{
	char desc[80];

	snprintf(desc, sizeof(desc), "the monitor cannot be reached: %s", qmp_result_name(result));
	return add_error(c, desc, id);
}

/* With the limits that a socket's messages have. Returns 0, the frame's conditions, or -ENOMEM. */
static int parse_reply(const char *text, struct json_object **ret, struct qmp_error *err)
{
	struct frame f;
	size_t len = strlen(text), room, done = 0;
	char *at;
	int r;

	*ret = NULL;
	r = qmp_frame_init(&f, QMP_MESSAGE_BYTES_DEFAULT, QMP_DEPTH_DEFAULT);
	while (r == 0 && !*ret && done < len) {
		r = qmp_frame_room(&f, &at, &room);
		if (r < 0)
			break;
		room = room < len - done ? room : len - done;
		memcpy(at, text + done, room);
		qmp_frame_filled(&f, room);
		done += room;
		r = qmp_frame_next(&f, ret, err);
	}
	qmp_frame_deinit(&f);
	if (r == 0 && !*ret)
		r = qmp_error_set(err, QMP_E_SYNTAX, "a reply that is not a whole JSON object");
	return r;
}

static int hand_on(struct calls *c, struct json_object *command, struct json_object *id)
{
	struct json_object *reply;
	struct qmp_error err;
	char *text = NULL;
	int r;

	r = c->call(c->userdata, json_object_to_json_string_ext(command, JSON_C_TO_STRING_PLAIN),
		&text);
	if (r < 0)
		return r;
	if (r == QMP_E_CLOSED)
		return -EPIPE;
	if (r > 0)
		return add_failure(c, r, id);
	r = parse_reply(text, &reply, &err);
	free(text);
	if (r < 0)
		return r;
	if (r > 0) /* the command is answered all the same, and at once */
		return add_error(c, err.text, id);
	json_object_object_add(reply, "id", json_object_get(id));
	r = add_reply_object(c, reply);
	json_object_put(reply);
	return r;
}

/* One whole command of our own client. */
static int run_command(struct calls *c, const char *text)
{
	struct json_object *command = json_tokener_parse(text), *id = NULL, *name = NULL, *reply;
	int r;

	if (!command)
		return -ENOMEM;
	if (json_object_object_get_ex(command, "id", &id))
		json_object_get(id);
	json_object_object_del(command, "id");
	json_object_object_get_ex(command, "execute", &name);
	if (name && strcmp(json_object_get_string(name), "qmp_capabilities") == 0) {
		reply = json_object_new_object();
		json_object_object_add(reply, "return", json_object_new_object());
		json_object_object_add(reply, "id", json_object_get(id));
		r = add_reply_object(c, reply);
		json_object_put(reply);
	} else {
		r = hand_on(c, command, id);
	}
	json_object_put(id);
	json_object_put(command);
	return r;
}

static int calls_fd(void *t)
{
	struct calls *c = t;

	return c->event;
}

static ssize_t calls_write(void *t, const void *buf, size_t size)
{
	struct calls *c = t;
	const char *newline = memchr(buf, '\n', size);
	size_t taken = newline ? (size_t)(newline - (const char *)buf) + 1 : size;
	int r = c->failed;

	if (r == 0)
		r = text_add(&c->command, buf, taken);
	if (r == 0 && newline) {
		while (c->command.len && strchr("\r\n", c->command.bytes[c->command.len - 1]))
			c->command.bytes[--c->command.len] = '\0';
		r = run_command(c, c->command.bytes);
		c->command.len = 0;
	}
	c->failed = r;
	return r < 0 ? r : (ssize_t)taken;
}

static ssize_t calls_read(void *t, void *buf, size_t size)
{
	struct calls *c = t;
	size_t n = c->replies.len - c->taken;
	uint64_t count;

	if (!n)
		return -EAGAIN;
	if (n > size)
		n = size;
	memcpy(buf, c->replies.bytes + c->taken, n);
	c->taken += n;
	if (c->taken == c->replies.len) {
		c->taken = c->replies.len = 0;
		if (read(c->event, &count, sizeof(count)) < 0 && errno != EAGAIN)
			return -errno;
	}
	return (ssize_t)n;
}

static void calls_close(void *t)
{
	struct calls *c = t;

	close(c->event);
	free(c->command.bytes);
	free(c->replies.bytes);
	free(c);
}

int qmp_transport_calls(qmp_call_fn call, void *userdata, struct qmp_transport *ret)
{
	struct calls *c = calloc(1, sizeof(*c));
	int r;

	if (!c)
		return -ENOMEM;
	c->call = call;
	c->userdata = userdata;
	c->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (c->event < 0) {
		r = -errno;
		free(c);
		return r;
	}
	r = add_reply(c, "{\"QMP\": {\"capabilities\": []}}");
	if (r < 0) {
		calls_close(c);
		return r;
	}
	*ret = (struct qmp_transport){
		.fd = calls_fd,
		.read = calls_read,
		.write = calls_write,
		.close = calls_close,
		.t = c,
	};
	return 0;
}
