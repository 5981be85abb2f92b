/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Taking values out of a reply that may have any shape. Private to libqmp.
 *
 * All functions return 0, QMP_E_SHAPE (the error names the command and the way to the value) or
 * -ENOMEM, and write *ret on 0 only.
 */
#pragma once

#include "qmp/queries.h"

#define _cleanup_(f) __attribute__((cleanup(f)))
#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

/* The kernel gives no larger ids (PID_MAX_LIMIT). */
#define PARSE_TID_MAX 4194304u

/* Where in a reply we are, from the inside out. The chain is made into text for an error only. */
struct parse_at {
	const struct parse_at *up; /* NULL: the reply itself */
	const char *name;          /* the command, or a key; NULL: an item */
	size_t item;               /* counts from 0 */
	struct qmp_error *err;
};

static inline struct parse_at parse_top(const char *command, struct qmp_error *err)
{
	return (struct parse_at){.name = command, .err = err};
}

static inline struct parse_at parse_below(const struct parse_at *up, const char *key)
{
	return (struct parse_at){.up = up, .name = key, .err = up->err};
}

/* Sets the error "COMMAND: item N: KEY: ..." and returns QMP_E_SHAPE. */
int qmp_take_wrong(const struct parse_at *at, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* Members of @object. A key that is missing is wrong (MUST) or leaves *ret as it is (MAY). */
enum parse_need {
	PARSE_MUST,
	PARSE_MAY,
};
int qmp_take_is_object(const struct parse_at *at, struct json_object *value);
int qmp_take_object(const struct parse_at *at, struct json_object *object, const char *key,
	enum parse_need need, struct json_object **ret);
int qmp_take_text(const struct parse_at *at, struct json_object *object, const char *key,
	enum parse_need need, char *buf, size_t size);
int qmp_take_bool(const struct parse_at *at, struct json_object *object, const char *key,
	enum parse_need need, bool *ret);
int qmp_take_u64(const struct parse_at *at, struct json_object *object, const char *key,
	enum parse_need need, uint64_t max, uint64_t *ret);
int qmp_take_uint(const struct parse_at *at, struct json_object *object, const char *key,
	enum parse_need need, unsigned max, unsigned *ret);
/* Not negative. */
int qmp_take_int(const struct parse_at *at, struct json_object *object, const char *key,
	enum parse_need need, int *ret);
/* Of memory, up to INT64_MAX. */
int qmp_take_bytes(const struct parse_at *at, struct json_object *object, const char *key,
	enum parse_need need, uint64_t *ret);
/* A host thread; must be there. */
int qmp_take_tid(
	const struct parse_at *at, struct json_object *object, const char *key, pid_t *ret);
/* "node-id", "core-id", ...; -1 for what is missing. */
int qmp_take_props(const struct parse_at *at, struct json_object *object, enum parse_need need,
	struct qmp_cpu_props *ret);

/* A value that was taken out already. */
int qmp_take_value_u64(
	const struct parse_at *at, struct json_object *value, uint64_t max, uint64_t *ret);

/* A member that is an array of at most QMP_ITEMS_MAX items; must be there. */
int qmp_take_list(const struct parse_at *at, struct json_object *object, const char *key,
	struct json_object **ret);

/*
 * Reads one item of an array into a zeroed struct, which is cleared by the caller whatever comes of
 * it. PARSE_SKIP: the item is none of ours, and the struct was left as it was.
 */
#define PARSE_SKIP QMP_RESULTS
typedef int (*parse_item_fn)(const struct parse_at *at, struct json_object *item, void *ret_item);
struct parse_items {
	size_t item_bytes;
	parse_item_fn read;
	void (*clear)(void *item); /* NULL: items own nothing */
};
/*
 * @array: must be one, of at most QMP_ITEMS_MAX items.
 * @ret_items: a pointer to the items, in memory from malloc().
 */
int qmp_take_items(const struct parse_at *at, struct json_object *array,
	const struct parse_items *how, void *ret_items, size_t *ret_n);

/* Asks and reads; @read is a qmp_parse_X() without its type. */
typedef int (*parse_reply_fn)(struct json_object *reply, void *ret, struct qmp_error *err);
int qmp_take_query(struct qmp *q, const char *command, struct json_object *arguments,
	uint64_t timeout_ns, parse_reply_fn read, void *ret, struct qmp_error *err);

static inline void parse_putp(struct json_object **object)
{
	json_object_put(*object);
}
#define _cleanup_put_ _cleanup_(parse_putp)
