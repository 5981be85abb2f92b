/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Why ids are short strings: QEMU repeats whatever it is given, and a number could come back as
 * another type of number.
 */
#include "qmp/message.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct json_object *member(struct json_object *object, const char *key)
{
	struct json_object *value = NULL;

	if (!json_object_is_type(object, json_type_object))
		return NULL;
	json_object_object_get_ex(object, key, &value);
	return value;
}

/* The string member, cleaned and cut; "" if it is missing or none. */
static void copy_text(struct json_object *object, const char *key, char *buf, size_t size)
{
	struct json_object *value = member(object, key);

	buf[0] = '\0';
	if (!json_object_is_type(value, json_type_string))
		return;
	snprintf(buf, size, "%s", json_object_get_string(value));
	for (char *c = buf; *c; c++)
		if (*c < ' ' || *c > '~')
			*c = '?';
}

static void read_greeting(struct json_object *greeting, struct message *m)
{
	struct json_object *capabilities = member(greeting, "capabilities");

	m->kind = MESSAGE_GREETING;
	m->version = member(greeting, "version");
	if (!json_object_is_type(capabilities, json_type_array))
		return;
	for (size_t i = 0; i < json_object_array_length(capabilities); i++) {
		struct json_object *c = json_object_array_get_idx(capabilities, i);

		if (json_object_is_type(c, json_type_string) &&
			strcmp(json_object_get_string(c), "oob") == 0)
			m->offers_oob = true;
	}
}

static int64_t read_time(struct json_object *timestamp)
{
	struct json_object *s = member(timestamp, "seconds"),
			   *us = member(timestamp, "microseconds");
	int64_t seconds, micros;

	if (!json_object_is_type(s, json_type_int))
		return -1;
	seconds = json_object_get_int64(s);
	micros = json_object_is_type(us, json_type_int) ? json_object_get_int64(us) : 0;
	if (seconds < 0 || seconds > INT64_MAX / 1000000 - 1 || micros < 0 || micros > 999999)
		return -1;
	return seconds * 1000000 + micros;
}

static uint64_t read_id(struct json_object *id)
{
	const char *text;
	char *end;
	unsigned long long v;

	if (!json_object_is_type(id, json_type_string))
		return 0;
	text = json_object_get_string(id);
	if (*text < '1' || *text > '9')
		return 0;
	errno = 0;
	v = strtoull(text, &end, 10);
	return *end || errno ? 0 : v;
}

static void read_error(struct json_object *error, struct message *m)
{
	char desc[192];

	m->kind = MESSAGE_ERROR;
	copy_text(error, "desc", desc, sizeof(desc));
	qmp_error_set(&m->error, QMP_E_REMOTE, "%s", desc[0] ? desc : "an error without a word");
	copy_text(error, "class", m->error.class_name, sizeof(m->error.class_name));
}

void qmp_message_read(struct json_object *object, struct message *ret)
{
	struct message m = {.kind = MESSAGE_UNKNOWN, .time_us = -1};
	struct json_object *value;

	if ((value = member(object, "QMP")) && json_object_is_type(value, json_type_object)) {
		read_greeting(value, &m);
	} else if ((value = member(object, "event"))) {
		copy_text(object, "event", m.name, sizeof(m.name));
		if (m.name[0])
			m.kind = MESSAGE_EVENT;
		m.data = member(object, "data");
		m.time_us = read_time(member(object, "timestamp"));
	} else if ((value = member(object, "error"))) {
		read_error(value, &m);
	} else if (json_object_object_get_ex(object, "return", &m.ret)) {
		m.kind = MESSAGE_RETURN;
	}
	m.has_id = json_object_object_get_ex(object, "id", &value);
	m.id = m.has_id ? read_id(value) : 0;
	*ret = m;
}

char *qmp_message_command(const char *command, struct json_object *arguments, uint64_t id, bool oob)
{
	struct json_object *object = json_object_new_object();
	char number[24], *text = NULL;
	const char *plain;

	if (!object)
		return NULL;
	snprintf(number, sizeof(number), "%llu", (unsigned long long)id);
	json_object_object_add(
		object, oob ? "exec-oob" : "execute", json_object_new_string(command));
	if (arguments)
		json_object_object_add(object, "arguments", json_object_get(arguments));
	json_object_object_add(object, "id", json_object_new_string(number));
	plain = json_object_to_json_string_ext(object, JSON_C_TO_STRING_PLAIN);
	if (plain && asprintf(&text, "%s\r\n", plain) < 0)
		text = NULL;
	json_object_put(object);
	return text;
}
