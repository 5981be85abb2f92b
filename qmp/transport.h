/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a QMP client speaks through: bytes in, bytes out, and an fd to wait on. None of the
 * functions blocks, with the exception that is noted at qmp_transport_calls().
 */
#pragma once

#include <sys/types.h>

#include "qmp/error.h"

struct qmp_transport {
	/* an fd that polls readable when read() has something; >= 0 */
	int (*fd)(void *t);
	/* bytes read, 0 at the end, -EAGAIN if there is nothing now, else a negative errno */
	ssize_t (*read)(void *t, void *buf, size_t size);
	/* bytes taken (may be fewer), -EAGAIN, or a negative errno */
	ssize_t (*write)(void *t, const void *buf, size_t size);
	void (*close)(void *t);
	void *t;
};

/*
 * Connects to a UNIX socket.
 * Returns 0, QMP_E_NOT_FOUND, _NOT_SOCKET, _PATH_TOO_LONG, _PERM, _REFUSED, _BUSY (its backlog is
 * full; it may be tried again), _IO, or a negative errno.
 */
int qmp_transport_unix(const char *path, struct qmp_transport *ret, struct qmp_error *err);

/*
 * Takes over a connected stream socket (on 0 only), which is made non-blocking.
 * Returns 0, QMP_E_NOT_SOCKET, QMP_E_IO or a negative errno.
 */
int qmp_transport_fd(int fd, struct qmp_transport *ret, struct qmp_error *err);

/*
 * For a monitor that is reached by whole commands, such as libvirt's passthrough: the greeting and
 * qmp_capabilities are answered here, every other command is handed to @call without our id, which
 * is put into the reply. There are no events and no out-of-band commands.
 *
 * @call: returns 0 and the reply in *ret_reply (taken over, freed by free()), or QMP_E_CLOSED (the
 * VM is gone), QMP_E_PERM, QMP_E_BUSY, QMP_E_IO or a negative errno; it may block, and write() then
 *   does, too. @command has no newline at its end.
 */
typedef int (*qmp_call_fn)(void *userdata, const char *command, char **ret_reply);
int qmp_transport_calls(qmp_call_fn call, void *userdata, struct qmp_transport *ret);
