/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One call to the daemon over the control socket, for numaherdctl.
 */
#pragma once

#include <json-c/json.h>

#include "policy/base.h"

enum {
	CLIENT_E_NO_DAEMON = 1, /* nothing listens there */
	CLIENT_E_DENIED,        /* the socket may not be opened by this user */
	CLIENT_E_ERROR,         /* the daemon answered with an error, or not in time, or nonsense */
};

#define CLIENT_REPLY_MAX (64u << 20)
#define CLIENT_TIMEOUT_MS 10000

/*
 * @method: without the interface's name.
 * @parameters: may be NULL; not consumed.
 * @ret: the reply's parameters; the caller puts them.
 * @why: 256 bytes, set on a condition.
 */
int client_call(const char *socket_path, const char *method, struct json_object *parameters,
	struct json_object **ret, char *why);
