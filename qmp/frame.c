/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Why a scanner of our own in front of json-c: its incremental parser gives no bound on what a
 * message may cost (four megabytes of "[" and "]" become half a gigabyte of arrays), and it cannot
 * say which limit was met. The scanner is not a second parser: it knows brackets, strings and
 * commas, and what it lets pass json-c still judges.
 */
#include "qmp/frame.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FRAME_ROOM_FIRST ((size_t)8 << 10)
#define FRAME_KEPT_MAX ((size_t)256 << 10) /* a larger buffer is given back when it is empty */

int qmp_frame_init(struct frame *f, size_t bytes_max, unsigned depth_max)
{
	*f = (struct frame){.bytes_max = bytes_max, .depth_max = depth_max};
	f->tokener = json_tokener_new_ex((int)depth_max + 1);
	if (!f->tokener)
		return -ENOMEM;
	json_tokener_set_flags(f->tokener, JSON_TOKENER_STRICT);
	return 0;
}

void qmp_frame_deinit(struct frame *f)
{
	free(f->buf);
	if (f->tokener)
		json_tokener_free(f->tokener);
	*f = (struct frame){0};
}

/* An empty buffer that has become large. */
static void give_back(struct frame *f)
{
	if (f->size <= FRAME_KEPT_MAX)
		return;
	free(f->buf);
	f->buf = NULL;
	f->size = 0;
}

static void begin_message(struct frame *f)
{
	f->depth = f->values = f->containers = 0;
	f->in_string = f->escaped = false;
	f->utf8_more = 0;
}

void qmp_frame_reset(struct frame *f)
{
	f->start = f->scanned = f->end = 0;
	give_back(f);
	begin_message(f);
}

int qmp_frame_room(struct frame *f, char **ret_at, size_t *ret_room)
{
	size_t want;
	char *grown;

	if (f->start == f->end) {
		f->start = f->scanned = f->end = 0;
		give_back(f);
	}
	if (f->end == f->size && f->start) {
		memmove(f->buf, f->buf + f->start, f->end - f->start);
		f->scanned -= f->start;
		f->end -= f->start;
		f->start = 0;
	}
	if (f->end == f->size) {
		want = f->size ? 2 * f->size : FRAME_ROOM_FIRST;
		grown = realloc(f->buf, want);
		if (!grown)
			return -ENOMEM;
		f->buf = grown;
		f->size = want;
	}
	*ret_at = f->buf + f->end;
	*ret_room = f->size - f->end;
	return 0;
}

void qmp_frame_filled(struct frame *f, size_t len)
{
	f->end += len;
}

bool qmp_frame_partial(const struct frame *f)
{
	return f->depth > 0;
}

/* Bytes that mean something to the scanner, each a row of one table so that the rest is skipped
 * fast. */
enum {
	PLAIN,
	QUOTE,
	BACKSLASH,
	OPEN,
	CLOSE,
	COMMA,
	CONTROL
};

static const unsigned char kinds[256] = {
	[0 ... 8] = CONTROL,
	[11 ... 12] = CONTROL,
	[14 ... 31] = CONTROL,
	['"'] = QUOTE,
	['\\'] = BACKSLASH,
	['{'] = OPEN,
	['['] = OPEN,
	['}'] = CLOSE,
	[']'] = CLOSE,
	[','] = COMMA,
};

/* The first byte from @at on that is not plain ASCII of a string; @end if there is none. */
static size_t skip_string(const char *buf, size_t at, size_t end)
{
	while (at < end) {
		signed char c = (signed char)buf[at];

		/* below ' ' are control bytes and, as a signed number, all bytes from 0x80 on */
		if (c == '"' || c == '\\' || c < ' ')
			break;
		at++;
	}
	return at;
}

/* The same outside strings. */
static size_t skip_plain(const char *buf, size_t at, size_t end)
{
	while (at < end && kinds[(unsigned char)buf[at]] == PLAIN)
		at++;
	return at;
}

/*
 * One byte of a character beyond ASCII. Why here: json-c lets pass forms that are longer than need
 * be, and those are a way around every test for a character. Bounds as in Unicode 15, table 3-7.
 */
static bool take_utf8(struct frame *f, unsigned char c)
{
	if (f->utf8_more) {
		if (c < f->utf8_low || c > f->utf8_high)
			return false;
		f->utf8_more--;
	} else if (c >= 0xc2 && c <= 0xf4) {
		f->utf8_more = c < 0xe0 ? 1 : c < 0xf0 ? 2 : 3;
	} else {
		return false;
	}
	f->utf8_low = c == 0xe0 ? 0xa0 : c == 0xf0 ? 0x90 : 0x80;
	f->utf8_high = c == 0xed ? 0x9f : c == 0xf4 ? 0x8f : 0xbf;
	return true;
}

/* One byte of a string that is not plain. Returns 0, QMP_E_SYNTAX, QMP_E_UTF8. */
static int take_special(struct frame *f, unsigned char c, struct qmp_error *err)
{
	bool escaped = f->escaped;

	if (c >= 0x80 || f->utf8_more) {
		if (!take_utf8(f, c) || escaped)
			return qmp_error_set(
				err, QMP_E_UTF8, "a message with a string that is not UTF-8");
		return 0;
	}
	if (c < ' ')
		return qmp_error_set(err, QMP_E_SYNTAX, "not JSON: byte 0x%02x inside a string", c);
	/* what follows a backslash ends nothing, be it a quote or another backslash */
	f->escaped = !escaped && c == '\\';
	if (!escaped && c == '"')
		f->in_string = false;
	return 0;
}

/* Inside a string at f->scanned. Returns 0, QMP_E_SYNTAX, QMP_E_UTF8. */
static int scan_string(struct frame *f, struct qmp_error *err)
{
	int r = 0;

	while (r == 0 && f->in_string) {
		if (!f->escaped && !f->utf8_more)
			f->scanned = skip_string(f->buf, f->scanned, f->stop);
		if (f->scanned == f->stop)
			return 0;
		r = take_special(f, (unsigned char)f->buf[f->scanned++], err);
	}
	return r;
}

static int open_container(struct frame *f, bool is_list, struct qmp_error *err)
{
	if (f->depth == f->depth_max)
		return qmp_error_set(err, QMP_E_TOO_DEEP, "a message nested deeper than %u levels",
			f->depth_max);
	if (++f->containers > FRAME_CONTAINERS_MAX)
		return qmp_error_set(err, QMP_E_TOO_MANY,
			"a message of more than %u objects and lists", FRAME_CONTAINERS_MAX);
	if (is_list)
		f->lists[f->depth / 8] |= (unsigned char)(1u << (f->depth % 8));
	else
		f->lists[f->depth / 8] &= (unsigned char)~(1u << (f->depth % 8));
	f->depth++;
	return 0;
}

static int close_container(struct frame *f, bool is_list, struct qmp_error *err)
{
	f->depth--;
	if ((f->lists[f->depth / 8] >> (f->depth % 8) & 1) == is_list)
		return 0;
	return qmp_error_set(err, QMP_E_SYNTAX, "not JSON: brackets do not match");
}

/*
 * Goes on at f->scanned, inside a message and outside strings, up to its end (f->depth is 0 then)
 * or to what there is.
 */
static int scan_message(struct frame *f, struct qmp_error *err)
{
	while (f->scanned < f->stop) {
		unsigned char c, kind;
		int r = 0;

		if (f->in_string) {
			r = scan_string(f, err);
			if (r != 0)
				return r;
			continue;
		}
		f->scanned = skip_plain(f->buf, f->scanned, f->stop);
		if (f->scanned == f->stop)
			return 0;
		c = (unsigned char)f->buf[f->scanned++];
		kind = kinds[c];
		if (kind == QUOTE)
			f->in_string = true;
		else if (kind == OPEN)
			r = open_container(f, c == '[', err);
		else if (kind == CLOSE)
			r = close_container(f, c == ']', err);
		else if (kind == COMMA && ++f->values > FRAME_VALUES_MAX)
			r = qmp_error_set(err, QMP_E_TOO_MANY, "a message of more than %u values",
				FRAME_VALUES_MAX);
		else if (kind == BACKSLASH || kind == CONTROL)
			r = qmp_error_set(
				err, QMP_E_SYNTAX, "not JSON: byte 0x%02x outside a string", c);
		if (r != 0 || !f->depth)
			return r;
	}
	return 0;
}

/* Skips white space up to the '{' of the next message. */
static int find_message(struct frame *f, struct qmp_error *err)
{
	while (f->start < f->end && strchr(" \t\r\n", f->buf[f->start]) && f->buf[f->start])
		f->start++;
	f->scanned = f->start;
	if (f->start == f->end)
		return 0;
	if (f->buf[f->start] != '{')
		return qmp_error_set(err, QMP_E_SYNTAX,
			"not a QMP message: it begins with byte 0x%02x, not with '{'",
			(unsigned)(unsigned char)f->buf[f->start]);
	begin_message(f);
	f->scanned++;
	return open_container(f, false, err);
}

static int parse(struct frame *f, struct json_object **ret, struct qmp_error *err)
{
	size_t len = f->scanned - f->start;
	struct json_object *object;
	enum json_tokener_error e;

	json_tokener_reset(f->tokener);
	object = json_tokener_parse_ex(f->tokener, f->buf + f->start, (int)len);
	e = json_tokener_get_error(f->tokener);
	if (e == json_tokener_success && json_object_is_type(object, json_type_object)) {
		f->start = f->scanned;
		*ret = object;
		return 0;
	}
	json_object_put(object);
	if (e == json_tokener_error_depth)
		return qmp_error_set(err, QMP_E_TOO_DEEP, "a message nested deeper than %u levels",
			f->depth_max);
	return qmp_error_set(err, QMP_E_SYNTAX, "not JSON: %s at byte %zu of a message of %zu",
		e == json_tokener_continue ? "brackets do not match" : json_tokener_error_desc(e),
		json_tokener_get_parse_end(f->tokener), len);
}

int qmp_frame_next(struct frame *f, struct json_object **ret, struct qmp_error *err)
{
	int r;

	*ret = NULL;
	if (!f->depth) {
		r = find_message(f, err);
		if (r != 0 || !f->depth)
			return r;
	}
	/* nothing beyond the limit is looked at, so that cutting the stream otherwise changes
	 * nothing */
	f->stop = f->end - f->start > f->bytes_max ? f->start + f->bytes_max : f->end;
	r = scan_message(f, err);
	if (r != 0)
		return r;
	if (f->depth && f->stop < f->end)
		return qmp_error_set(
			err, QMP_E_TOO_BIG, "a message of more than %zu bytes", f->bytes_max);
	return f->depth ? 0 : parse(f, ret, err);
}
