/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a JSON object is as a QMP message: members come in any order, unknown ones are ignored.
 * Private to libqmp.
 */
#pragma once

#include "qmp/client.h"

enum message_kind {
	MESSAGE_GREETING,
	MESSAGE_EVENT,
	MESSAGE_RETURN,
	MESSAGE_ERROR,
	MESSAGE_UNKNOWN, /* JSON, but none of these */
};

/* All pointers are borrowed from the object. */
struct message {
	enum message_kind kind;
	/* greeting */
	struct json_object *version; /* or NULL */
	bool offers_oob;
	/* event */
	char name[64];
	struct json_object *data; /* or NULL */
	int64_t time_us;          /* -1: not known */
	/* replies */
	bool has_id;
	uint64_t id; /* 0: an id that is none of ours */
	struct json_object *ret;
	struct qmp_error error; /* code QMP_E_REMOTE */
};

void qmp_message_read(struct json_object *object, struct message *ret);

/* The text of a command with its "\r\n". The caller frees it; NULL: out of memory. */
char *qmp_message_command(
	const char *command, struct json_object *arguments, uint64_t id, bool oob);
