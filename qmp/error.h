/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What can go wrong with a QMP peer, by name.
 *
 * Return values of all functions of libqmp that return int:
 *
 *   < 0   a negative errno: out of memory (-ENOMEM), or a promise of the caller is broken (-EINVAL)
 *   = 0   done
 *   > 0   one of the conditions below
 *
 * Out-parameters come last and are written on success only, a struct qmp_error on a condition only.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum qmp_result {
	/* reaching the peer */
	QMP_E_NOT_FOUND = 1, /* no such path */
	QMP_E_NOT_SOCKET,    /* the path is no socket */
	QMP_E_PATH_TOO_LONG, /* longer than a UNIX socket's address can be (107 bytes) */
	QMP_E_PERM,          /* permission denied */
	QMP_E_REFUSED,       /* a socket that nobody listens on: QEMU has ended */
	QMP_E_BUSY,          /* others wait for this monitor already */
	/* the conversation */
	QMP_E_NO_GREETING, /* connected, but nothing came: another client has the monitor, or it
			      hangs */
	QMP_E_NEGOTIATION, /* the peer refused qmp_capabilities */
	QMP_E_CLOSED,      /* the peer closed the connection between two messages */
	QMP_E_TRUNCATED,   /* ... in the middle of one */
	QMP_E_STALLED,     /* a message began and did not end in time */
	QMP_E_IO,          /* another error of the transport */
	/* what came */
	QMP_E_SYNTAX,   /* not JSON */
	QMP_E_UTF8,     /* a string that is not UTF-8 */
	QMP_E_TOO_DEEP, /* nested deeper than the limit */
	QMP_E_TOO_BIG,  /* a message longer than the limit */
	QMP_E_TOO_MANY, /* more values in one message than the limit */
	QMP_E_PROTOCOL, /* JSON, but not QMP, or not at this point */
	/* one command; the connection stays */
	QMP_E_REMOTE,    /* an error reply; see qmp_error.class_name */
	QMP_E_TIMEOUT,   /* no reply in time; one that comes later is dropped */
	QMP_E_CANCELLED, /* by qmp_cancel(), qmp_disconnect() or qmp_free() */
	QMP_E_STATE,     /* the connection is not ready */
	QMP_E_FULL,      /* too many open commands, or too much that the peer has not taken */
	QMP_E_SHAPE,     /* a reply, but not of the shape that this query has */
	QMP_RESULTS,
};

/* "not-found", "busy", ...: a stable word, for programs. "ok" for 0; never NULL. */
const char *qmp_result_name(int result);

struct qmp_error {
	int code;            /* enum qmp_result */
	char class_name[64]; /* of an error reply ("CommandNotFound"), else "" */
	char text[256];      /* for people; of what the peer said only printable ASCII is kept */
};

/* Fills *err, if it is not NULL, and returns @code. */
int qmp_error_set(struct qmp_error *err, int code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
