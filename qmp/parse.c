/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Why json-c's own conversions are not used: they make a number of everything, "12abc" included,
 * and what QEMU says is to be what it says or nothing.
 */
#include "qmp/parse.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LEVELS_MAX 8

static size_t print_at(const struct parse_at *at, char *buf, size_t size)
{
	const struct parse_at *chain[LEVELS_MAX];
	size_t n = 0, len = 0;

	for (; at && n < LEVELS_MAX; at = at->up)
		chain[n++] = at;
	while (n-- > 0 && len < size) {
		if (chain[n]->name)
			len += (size_t)snprintf(buf + len, size - len, "%s: ", chain[n]->name);
		else
			len += (size_t)snprintf(
				buf + len, size - len, "item %zu: ", chain[n]->item);
	}
	return len < size ? len : size - 1;
}

int qmp_take_wrong(const struct parse_at *at, const char *fmt, ...)
{
	char text[256];
	size_t len = print_at(at, text, sizeof(text));
	va_list args;

	va_start(args, fmt);
	vsnprintf(text + len, sizeof(text) - len, fmt, args);
	va_end(args);
	return qmp_error_set(at->err, QMP_E_SHAPE, "%s", text);
}

/* The member, or NULL with *ret_result set to what the caller is to return. */
static struct json_object *member(const struct parse_at *at, struct json_object *object,
	const char *key, enum parse_need need, enum json_type type, const char *want,
	int *ret_result)
{
	struct json_object *value = NULL;

	*ret_result = 0;
	if (!json_object_object_get_ex(object, key, &value)) {
		if (need == PARSE_MUST)
			*ret_result = qmp_take_wrong(at, "%s is missing", key);
		return NULL;
	}
	if (json_object_is_type(value, type) && type != json_type_null)
		return value;
	*ret_result = qmp_take_wrong(at, "%s is not %s", key, want);
	return NULL;
}

int qmp_take_is_object(const struct parse_at *at, struct json_object *value)
{
	if (json_object_is_type(value, json_type_object))
		return 0;
	return qmp_take_wrong(at, "not an object");
}

int qmp_take_object(const struct parse_at *at, struct json_object *object, const char *key,
	enum parse_need need, struct json_object **ret)
{
	struct json_object *value;
	int r;

	value = member(at, object, key, need, json_type_object, "an object", &r);
	if (value)
		*ret = value;
	return r;
}

int qmp_take_text(const struct parse_at *at, struct json_object *object, const char *key,
	enum parse_need need, char *buf, size_t size)
{
	struct json_object *value;
	const char *text;
	size_t n;
	int r;

	value = member(at, object, key, need, json_type_string, "a string", &r);
	if (!value)
		return r;
	text = json_object_get_string(value);
	n = (size_t)json_object_get_string_len(value);
	if (n > size - 1)
		n = size - 1;
	for (size_t i = 0; i < n; i++) /* a NUL is a byte like any other */
		buf[i] = text[i] < ' ' || text[i] > '~' ? '?' : text[i];
	buf[n] = '\0';
	return 0;
}

int qmp_take_bool(const struct parse_at *at, struct json_object *object, const char *key,
	enum parse_need need, bool *ret)
{
	struct json_object *value;
	int r;

	value = member(at, object, key, need, json_type_boolean, "true or false", &r);
	if (value)
		*ret = json_object_get_boolean(value);
	return r;
}

/* An integer from @min to @max; json-c cuts what is larger than 64 bits to their greatest. */
static bool number_in(struct json_object *value, uint64_t min, uint64_t max, uint64_t *ret)
{
	uint64_t v;

	if (!json_object_is_type(value, json_type_int) || json_object_get_int64(value) < 0)
		return false;
	v = json_object_get_uint64(value);
	if (v < min || v > max)
		return false;
	*ret = v;
	return true;
}

static int number(const struct parse_at *at, struct json_object *object, const char *key,
	enum parse_need need, uint64_t min, uint64_t max, uint64_t *ret)
{
	struct json_object *value = NULL;

	if (!json_object_object_get_ex(object, key, &value))
		return need == PARSE_MUST ? qmp_take_wrong(at, "%s is missing", key) : 0;
	if (number_in(value, min, max, ret))
		return 0;
	return qmp_take_wrong(at, "%s is not a whole number from %llu to %llu", key,
		(unsigned long long)min, (unsigned long long)max);
}

int qmp_take_u64(const struct parse_at *at, struct json_object *object, const char *key,
	enum parse_need need, uint64_t max, uint64_t *ret)
{
	return number(at, object, key, need, 0, max, ret);
}

int qmp_take_uint(const struct parse_at *at, struct json_object *object, const char *key,
	enum parse_need need, unsigned max, unsigned *ret)
{
	uint64_t v = UINT64_MAX;
	int r = number(at, object, key, need, 0, max, &v);

	if (r == 0 && v != UINT64_MAX)
		*ret = (unsigned)v;
	return r;
}

int qmp_take_int(const struct parse_at *at, struct json_object *object, const char *key,
	enum parse_need need, int *ret)
{
	uint64_t v = UINT64_MAX;
	int r = number(at, object, key, need, 0, INT_MAX, &v);

	if (r == 0 && v != UINT64_MAX)
		*ret = (int)v;
	return r;
}

int qmp_take_bytes(const struct parse_at *at, struct json_object *object, const char *key,
	enum parse_need need, uint64_t *ret)
{
	return number(at, object, key, need, 0, INT64_MAX, ret);
}

int qmp_take_tid(const struct parse_at *at, struct json_object *object, const char *key, pid_t *ret)
{
	uint64_t v = 0;
	int r = number(at, object, key, PARSE_MUST, 1, PARSE_TID_MAX, &v);

	if (r == 0)
		*ret = (pid_t)v;
	return r;
}

int qmp_take_props(const struct parse_at *at, struct json_object *object, enum parse_need need,
	struct qmp_cpu_props *ret)
{
	struct qmp_cpu_props p = {-1, -1, -1, -1, -1, -1};
	const struct {
		const char *key;
		int *value;
	} rows[] = {
		{"node-id", &p.node_id},
		{"socket-id", &p.socket_id},
		{"die-id", &p.die_id},
		{"cluster-id", &p.cluster_id},
		{"core-id", &p.core_id},
		{"thread-id", &p.thread_id},
	};
	struct parse_at here = parse_below(at, "props");
	struct json_object *props = NULL;
	int r = qmp_take_object(at, object, "props", need, &props);

	for (size_t i = 0; r == 0 && props && i < ARRAY_LEN(rows); i++)
		r = qmp_take_int(&here, props, rows[i].key, PARSE_MAY, rows[i].value);
	if (r == 0)
		*ret = p;
	return r;
}

int qmp_take_value_u64(
	const struct parse_at *at, struct json_object *value, uint64_t max, uint64_t *ret)
{
	if (number_in(value, 0, max, ret))
		return 0;
	return qmp_take_wrong(at, "not a whole number from 0 to %llu", (unsigned long long)max);
}

static int check_list(const struct parse_at *at, struct json_object *value)
{
	size_t len;

	if (!json_object_is_type(value, json_type_array))
		return qmp_take_wrong(at, "not a list");
	len = json_object_array_length(value);
	return len > QMP_ITEMS_MAX
		       ? qmp_take_wrong(at, "%zu items, more than %u", len, QMP_ITEMS_MAX)
		       : 0;
}

int qmp_take_list(const struct parse_at *at, struct json_object *object, const char *key,
	struct json_object **ret)
{
	struct parse_at here = parse_below(at, key);
	struct json_object *value;
	int r;

	value = member(at, object, key, PARSE_MUST, json_type_array, "a list", &r);
	if (value)
		r = check_list(&here, value);
	if (r == 0)
		*ret = value;
	return r;
}

static void clear_items(void *items, size_t n, const struct parse_items *how)
{
	for (size_t i = 0; how->clear && i < n; i++)
		how->clear((char *)items + i * how->item_bytes);
	free(items);
}

int qmp_take_items(const struct parse_at *at, struct json_object *array,
	const struct parse_items *how, void *ret_items, size_t *ret_n)
{
	struct parse_at here = {.up = at, .err = at->err};
	size_t len, n = 0;
	char *items;
	int r;

	r = check_list(at, array);
	if (r != 0)
		return r;
	len = json_object_array_length(array);
	items = calloc(len ? len : 1, how->item_bytes);
	if (!items)
		return -ENOMEM;
	for (; r == 0 && here.item < len; here.item++) {
		r = how->read(&here, json_object_array_get_idx(array, here.item),
			items + n * how->item_bytes);
		if (r == PARSE_SKIP)
			r = 0;
		else
			n++;
	}
	if (r != 0) {
		clear_items(items, n, how);
		return r;
	}
	memcpy(ret_items, &items, sizeof(items));
	*ret_n = n;
	return 0;
}

int qmp_take_query(struct qmp *q, const char *command, struct json_object *arguments,
	uint64_t timeout_ns, parse_reply_fn read, void *ret, struct qmp_error *err)
{
	_cleanup_put_ struct json_object *reply = NULL;
	int r = qmp_sync_execute(q, command, arguments, timeout_ns, &reply, err);

	return r == 0 ? read(reply, ret, err) : r;
}
