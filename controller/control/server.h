/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The control socket: Varlink framing on a UNIX stream socket, peers known by SO_PEERCRED.
 */
#pragma once

#include <json-c/json.h>
#include <systemd/sd-event.h>

#include "policy/base.h"

#define SERVER_CLIENTS_MAX 32u
#define SERVER_INTERFACE "org.numaherd.Control"

struct server;
/*
 * Answers one call.
 * @method: without the interface's name, "GetStatus".
 * @privileged: the peer is root.
 * @ret_error: set to a static error name ("PermissionDenied") instead of a reply.
 * Returns the reply's parameters (the server puts them), or NULL with *ret_error set.
 */
typedef struct json_object *(*server_handler)(void *userdata, const char *method,
	struct json_object *parameters, bool privileged, const char **ret_error);

/*
 * Binds @path (a stale socket is replaced, a live one is -EADDRINUSE, anything that is no socket
 * is -EEXIST), mode 0660, making its directory if need be.
 */
int server_new(sd_event *event, const char *path, server_handler handler, void *userdata,
	struct server **ret);
struct server *server_free(struct server *s);
