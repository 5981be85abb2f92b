/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Replies of real QEMUs below samples/, and JSON in a C string, where 'single' quotes will do.
 */
#pragma once

#include <json-c/json.h>

#include "tests/tap.h"

static inline void json_putp(struct json_object **object)
{
	json_object_put(*object);
}
#define JSON __attribute__((cleanup(json_putp))) struct json_object *

static inline struct json_object *json_of(const char *text)
{
	struct json_object *object = json_tokener_parse(text);

	if (!object && strcmp(text, "null") != 0)
		printf("# the test's own JSON is none: %s\n", text);
	return object;
}

/* The whole reply; "qemu-7.2/query-status". */
static inline struct json_object *sample(const char *name)
{
	const char *top = getenv("NUMAHERD_SOURCE_ROOT");
	struct json_object *reply;
	char path[4096];

	snprintf(path, sizeof(path), "%s/tests/qmp/samples/%s.json", top ? top : ".", name);
	reply = json_object_from_file(path);
	if (!reply)
		printf("# cannot read %s\n", path);
	return reply;
}

/* Its member "return", owned by the caller. */
static inline struct json_object *sample_return(const char *name)
{
	JSON reply = sample(name);
	struct json_object *value = NULL;

	json_object_object_get_ex(reply, "return", &value);
	return json_object_get(value);
}
