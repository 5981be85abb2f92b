/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * numaherdctl: the verbs, and what they share.
 */
#pragma once

#include <json-c/json.h>
#include <stdio.h>

#include "policy/base.h"

enum ctl_exit {
	CTL_OK = 0,
	CTL_ERROR = 1,
	CTL_USAGE = 2,
	CTL_NO_DAEMON = 3,
	CTL_NO_VM = 4,
	CTL_DRIFT = 5,
};

struct ctl {
	const char *socket;
	bool json;
	bool color; /* decided: terminal, NO_COLOR, --color */
	bool no_legend;
	const char
		*from; /* a file with a status reply instead of the daemon (tests, bug reports) */
};

/* Fetches a status reply; prints to stderr and returns an exit code other than 0 on failure. */
enum ctl_exit ctl_get_status(const struct ctl *ctl, struct json_object **ret);

/* status.c: prints a status reply as tables. @vm: only this VM, by name or UUID; NULL: all. */
enum ctl_exit status_print(
	const struct ctl *ctl, struct json_object *status, const char *vm, FILE *out);

/* json.c: values out of a reply; missing ones are @fallback. Paths are one key deep. */
int64_t get_int(struct json_object *o, const char *key, int64_t fallback);
bool get_bool(struct json_object *o, const char *key);
const char *get_text(struct json_object *o, const char *key);
/* A member object or array, or NULL. */
struct json_object *get_member(struct json_object *o, const char *key);
bool get_known(struct json_object *o, const char *key);
