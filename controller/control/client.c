/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Why a deadline: an operator's shell must not hang because a daemon does.
 */
#include "controller/control/client.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "controller/control/frame.h"
#include "controller/control/server.h"

#define WHY_SIZE 256

static void closep(int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

static void reader_clearp(struct frame_reader *r)
{
	frame_reader_clear(r);
}

static int connect_to(const char *path, int *ret_fd, char *why)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd, err;

	if (strlen(path) >= sizeof(addr.sun_path)) {
		snprintf(why, WHY_SIZE, "the socket's path is too long");
		return CLIENT_E_ERROR;
	}
	memcpy(addr.sun_path, path, strlen(path) + 1);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (connect(fd, (struct sockaddr *)&addr, sizeof(addr)) == 0) {
		*ret_fd = fd;
		return 0;
	}
	err = errno;
	close(fd);
	snprintf(why, WHY_SIZE, "%.150s: %s", path, strerror(err));
	return err == EACCES || err == EPERM ? CLIENT_E_DENIED : CLIENT_E_NO_DAEMON;
}

static int send_call(int fd, const char *method, struct json_object *parameters, char *why)
{
	struct json_object *call = json_object_new_object();
	char full[128];
	const char *text;
	size_t len, done = 0;
	ssize_t n = 0;

	snprintf(full, sizeof(full), SERVER_INTERFACE ".%s", method);
	json_object_object_add(call, "method", json_object_new_string(full));
	if (parameters)
		json_object_object_add(call, "parameters", json_object_get(parameters));
	text = json_object_to_json_string_ext(call, JSON_C_TO_STRING_PLAIN);
	len = strlen(text) + 1;
	while (done < len && (n = send(fd, text + done, len - done, MSG_NOSIGNAL)) > 0)
		done += (size_t)n;
	json_object_put(call);
	if (done == len)
		return 0;
	snprintf(why, WHY_SIZE, "sending the call: %s", strerror(errno));
	return CLIENT_E_ERROR;
}

static int receive(int fd, struct frame_reader *in, struct json_object **ret, char *why)
{
	char buf[65536];

	for (;;) {
		struct pollfd p = {.fd = fd, .events = POLLIN};
		int r = frame_reader_next(in, ret);
		ssize_t n;

		if (r != FRAME_E_NONE) {
			if (r > 0)
				snprintf(why, WHY_SIZE, "the daemon's answer is no JSON object");
			return r > 0 ? CLIENT_E_ERROR : r;
		}
		if (poll(&p, 1, CLIENT_TIMEOUT_MS) <= 0) {
			snprintf(why, WHY_SIZE, "the daemon did not answer within %d s",
				CLIENT_TIMEOUT_MS / 1000);
			return CLIENT_E_ERROR;
		}
		n = recv(fd, buf, sizeof(buf), 0);
		if (n <= 0) {
			snprintf(why, WHY_SIZE, "the daemon closed the connection");
			return CLIENT_E_ERROR;
		}
		r = frame_reader_feed(in, buf, (size_t)n);
		if (r != 0) {
			snprintf(why, WHY_SIZE, "the daemon's answer is too long");
			return r > 0 ? CLIENT_E_ERROR : r;
		}
	}
}

int client_call(const char *socket_path, const char *method, struct json_object *parameters,
	struct json_object **ret, char *why)
{
	_cleanup_(closep) int fd = -1;
	_cleanup_(reader_clearp) struct frame_reader in;
	struct json_object *reply = NULL, *error = NULL, *params = NULL;
	int r;

	frame_reader_init(&in, CLIENT_REPLY_MAX);
	r = connect_to(socket_path, &fd, why);
	if (r == 0)
		r = send_call(fd, method, parameters, why);
	if (r == 0)
		r = receive(fd, &in, &reply, why);
	if (r != 0)
		return r;
	if (json_object_object_get_ex(reply, "error", &error)) {
		snprintf(why, WHY_SIZE, "the daemon says: %.200s", json_object_get_string(error));
		json_object_put(reply);
		return CLIENT_E_ERROR;
	}
	json_object_object_get_ex(reply, "parameters", &params);
	*ret = json_object_get(params);
	json_object_put(reply);
	return 0;
}
