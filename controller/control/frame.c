/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Why a limit on both bytes and depth: whoever may connect may send anything, and a request is
 * small.
 */
#include "controller/control/frame.h"

#include <errno.h>
#include <string.h>

void frame_reader_init(struct frame_reader *r, size_t limit)
{
	*r = (struct frame_reader){.limit = limit};
}

void frame_reader_clear(struct frame_reader *r)
{
	free(r->data);
	memset(r, 0, sizeof(*r));
}

int frame_reader_feed(struct frame_reader *r, const void *data, size_t len)
{
	if (len > r->limit - r->used)
		return FRAME_E_TOO_BIG;
	if (r->used + len > r->size) {
		size_t size = MAX2(r->size * 2, (size_t)4096);
		char *grown;

		while (size < r->used + len)
			size *= 2;
		grown = realloc(r->data, size);
		if (!grown)
			return -ENOMEM;
		r->data = grown;
		r->size = size;
	}
	if (len)
		memcpy(r->data + r->used, data, len);
	r->used += len;
	return 0;
}

static int parse(const char *text, size_t len, struct json_object **ret)
{
	struct json_tokener *tok = json_tokener_new_ex(FRAME_DEPTH_MAX);
	struct json_object *o;
	size_t end;
	bool whole;

	if (!tok)
		return -ENOMEM;
	o = json_tokener_parse_ex(tok, text, (int)len + 1);
	whole = json_tokener_get_error(tok) == json_tokener_success &&
		json_object_is_type(o, json_type_object);
	/* nothing but blanks may follow the object */
	for (end = json_tokener_get_parse_end(tok); whole && end < len; end++)
		whole = text[end] == ' ' || text[end] == '\t' || text[end] == '\r' ||
			text[end] == '\n';
	json_tokener_free(tok);
	if (!whole) {
		json_object_put(o);
		return FRAME_E_INVALID;
	}
	*ret = o;
	return 0;
}

int frame_reader_next(struct frame_reader *r, struct json_object **ret)
{
	char *end = r->used ? memchr(r->data, '\0', r->used) : NULL;
	size_t len;
	int res;

	if (!end)
		return r->used == r->limit ? FRAME_E_TOO_BIG : FRAME_E_NONE;
	len = (size_t)(end - r->data);
	res = parse(r->data, len, ret);
	r->used -= len + 1;
	memmove(r->data, end + 1, r->used);
	return res;
}
