/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Why tolerant: an older or newer daemon may lack a member; a table with a dash is better than
 * none.
 */
#include "controller/ctl/ctl.h"

struct json_object *get_member(struct json_object *o, const char *key)
{
	struct json_object *v = NULL;

	json_object_object_get_ex(o, key, &v);
	return v;
}

bool get_known(struct json_object *o, const char *key)
{
	return get_member(o, key) != NULL;
}

int64_t get_int(struct json_object *o, const char *key, int64_t fallback)
{
	struct json_object *v = get_member(o, key);

	return json_object_is_type(v, json_type_int) ? json_object_get_int64(v) : fallback;
}

bool get_bool(struct json_object *o, const char *key)
{
	return json_object_get_boolean(get_member(o, key));
}

const char *get_text(struct json_object *o, const char *key)
{
	struct json_object *v = get_member(o, key);

	return json_object_is_type(v, json_type_string) ? json_object_get_string(v) : "";
}
