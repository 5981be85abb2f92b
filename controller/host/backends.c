/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Why the command line: it is the one place where the sizes of a guest's RAM stand for libvirt's
 * and for other people's QEMUs alike, and it can be read without a monitor.
 *
 * Both spellings of -object end in the same set_property(). The JSON reader knows one flat object
 * and steps over nested values; what it does not understand, it leaves.
 */
#include "controller/host/backends.h"

#include <errno.h>
#include <stdio.h>

#include "controller/host/parse.h"
#include "controller/host/threads.h"

#define MIB (UINT64_C(1) << 20)
#define VALUE_MAX 1024

void ram_backends_clear(struct ram_backends *list)
{
	free(list->backend);
	*list = (struct ram_backends){0};
}

int ram_backends_add(struct ram_backends *list, const struct ram_backend *backend)
{
	struct ram_backend *p;

	if (list->n == RAM_BACKENDS_MAX)
		return HOST_E_TOO_BIG;
	p = reallocarray(list->backend, list->n + 1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	list->backend = p;
	p[list->n++] = *backend;
	return 0;
}

int ram_backends_complete(struct ram_backends *list, const char *id, uint64_t size_bytes)
{
	struct ram_backend said = {.size_bytes = size_bytes};
	struct ram_backend *nameless = NULL;

	snprintf(said.id, sizeof(said.id), "%.63s", id);
	for (size_t i = 0; i < list->n; i++) {
		struct ram_backend *b = &list->backend[i];

		if (said.id[0] && strcmp(b->id, said.id) == 0)
			return 0;
		if (!nameless && !b->id[0] && b->size_bytes == size_bytes)
			nameless = b;
	}
	if (!nameless)
		return ram_backends_add(list, &said);
	memcpy(nameless->id, said.id, sizeof(nameless->id));
	return 0;
}

/* "1073741824", "1G", "262144k", "0x40000000"; @unit: of a number without suffix. */
static bool parse_size(struct text t, uint64_t unit, uint64_t *ret)
{
	static const char suffixes[] = "bkmgtpe";
	uint64_t n;

	if (text_skip(&t, "0x")) {
		if (!parse_hex(t, UINT64_MAX, &n) || n == 0)
			return false;
		*ret = n;
		return true;
	}
	if (t.n) {
		char c = t.p[t.n - 1];
		const char *at = strchr(suffixes, c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);

		if (c && at) {
			unit = UINT64_C(1) << (10 * (at - suffixes));
			t.n--;
		}
	}
	if (!parse_u64(t, UINT64_MAX, &n) || __builtin_mul_overflow(n, unit, &n) || n == 0)
		return false;
	*ret = n;
	return true;
}

static bool parse_switch(struct text t)
{
	return text_equal(t, "on") || text_equal(t, "true") || text_equal(t, "yes");
}

/* An object while its properties come in, in any order. */
struct object {
	struct ram_backend backend;
	bool is_backend;
	bool has_size;
};

static void set_type(struct object *o, struct text type)
{
	static const struct {
		const char *name;
		enum ram_backend_type type;
	} types[] = {
		{"memory-backend-ram", RAM_BACKEND_RAM},
		{"memory-backend-memfd", RAM_BACKEND_MEMFD},
		{"memory-backend-file", RAM_BACKEND_FILE},
		{"memory-backend-shm", RAM_BACKEND_SHM},
	};

	for (size_t i = 0; i < ARRAY_LEN(types); i++) {
		if (!text_equal(type, types[i].name))
			continue;
		o->is_backend = true;
		o->backend.type = types[i].type;
	}
}

/* "0", "0-1", or in JSON "[0, 1]" */
static void add_host_nodes(struct ram_backend *b, struct text list)
{
	struct text piece;

	if (text_skip(&list, "[") && text_ends(list, "]"))
		list.n--;
	while (text_split(&list, ',', &piece)) {
		struct idset s;

		piece = text_trim(piece);
		if (idset_parse_list(piece.p, piece.n, &s) == 0)
			idset_or(&b->host_nodes, &s);
	}
}

static void set_property(struct object *o, struct text key, struct text value)
{
	struct ram_backend *b = &o->backend;

	if (text_equal(key, "qom-type"))
		set_type(o, value);
	else if (text_equal(key, "id"))
		text_copy(value, b->id, sizeof(b->id));
	else if (text_equal(key, "size"))
		o->has_size = parse_size(value, 1, &b->size_bytes);
	else if (text_equal(key, "share"))
		b->share = parse_switch(value);
	else if (text_equal(key, "hugetlb"))
		b->hugetlb = parse_switch(value);
	else if (text_equal(key, "hugetlbsize"))
		parse_size(value, 1, &b->huge_bytes);
	else if (text_equal(key, "mem-path"))
		text_copy(value, b->path, sizeof(b->path));
	else if (text_equal(key, "host-nodes"))
		add_host_nodes(b, value);
}

/* ---- key=value ---- */

/* Takes one item off @rest; ",," is a comma of the item itself. @buf: VALUE_MAX bytes; longer items
 * are cut. */
static bool take_item(struct text *rest, char *buf, struct text *ret)
{
	size_t n = 0, i = 0;

	if (rest->n == 0)
		return false;
	while (i < rest->n) {
		if (rest->p[i] == ',') {
			if (i + 1 == rest->n || rest->p[i + 1] != ',')
				break;
			i++;
		}
		if (n < VALUE_MAX)
			buf[n++] = rest->p[i];
		i++;
	}
	*ret = text_of(buf, n);
	i = MIN2(i + 1, rest->n);
	*rest = text_of(rest->p + i, rest->n - i);
	return true;
}

static void parse_pairs(struct text rest, struct object *o)
{
	char buf[VALUE_MAX];
	struct text item, key, value;
	bool first = true;

	while (take_item(&rest, buf, &item)) {
		if (text_cut(item, '=', &key, &value))
			set_property(o, key, value);
		else if (first)
			set_type(o, item);
		first = false;
	}
}

/* ---- JSON ---- */

static void skip_space(struct text *t)
{
	while (t->n && (t->p[0] == ' ' || t->p[0] == '\t' || t->p[0] == '\n' || t->p[0] == '\r'))
		*t = text_of(t->p + 1, t->n - 1);
}

/* The character an escape stands for; @t is behind the backslash. Beyond ASCII: '?'. */
static char take_escape(struct text *t)
{
	static const char from[] = "nrtbf", to[] = "\n\r\t\b\f";
	const char *at;
	uint64_t code;
	char c = t->p[0];

	if (c == 'u' && t->n >= 5) {
		bool ok = parse_hex(text_of(t->p + 1, 4), 0x7f, &code);

		*t = text_of(t->p + 5, t->n - 5);
		return ok ? (char)code : '?';
	}
	*t = text_of(t->p + 1, t->n - 1);
	at = c ? strchr(from, c) : NULL;
	return at ? to[at - from] : c;
}

/* A string, @t at its first quote. @buf: VALUE_MAX bytes; longer strings are cut. */
static bool take_string(struct text *t, char *buf, struct text *ret)
{
	size_t n = 0;

	if (!text_skip(t, "\""))
		return false;
	while (t->n && t->p[0] != '"') {
		char c = t->p[0];

		*t = text_of(t->p + 1, t->n - 1);
		if (c == '\\') {
			if (t->n == 0)
				return false;
			c = take_escape(t);
		}
		if (n < VALUE_MAX)
			buf[n++] = c;
	}
	*ret = text_of(buf, n);
	return text_skip(t, "\"");
}

/* A value that is not a string, up to the ',' or '}' behind it, brackets and all. */
static bool take_other(struct text *t, struct text *ret)
{
	size_t depth = 0, i = 0;
	bool quoted = false;

	for (; i < t->n; i++) {
		char c = t->p[i];

		if (quoted) {
			if (c == '\\')
				i++;
			else if (c == '"')
				quoted = false;
		} else if (c == '"') {
			quoted = true;
		} else if (c == '[' || c == '{') {
			depth++;
		} else if (depth == 0 && (c == ',' || c == '}')) {
			break;
		} else if (c == ']' || c == '}') {
			if (depth-- == 0)
				return false;
		}
	}
	if (i >= t->n)
		return false;
	*ret = text_trim(text_of(t->p, i));
	*t = text_of(t->p + i, t->n - i);
	return true;
}

static void parse_json(struct text rest, struct object *o)
{
	char key_buf[VALUE_MAX], value_buf[VALUE_MAX];
	struct text key, value;

	if (!text_skip(&rest, "{"))
		return;
	for (;;) {
		skip_space(&rest);
		if (!take_string(&rest, key_buf, &key))
			return;
		skip_space(&rest);
		if (!text_skip(&rest, ":"))
			return;
		skip_space(&rest);
		if (text_starts(rest, "\"") ? !take_string(&rest, value_buf, &value)
					    : !take_other(&rest, &value))
			return;
		set_property(o, key, value);
		skip_space(&rest);
		if (!text_skip(&rest, ","))
			return;
	}
}

/* ---- the command line ---- */

struct cmdline {
	uint64_t m_bytes;   /* -m; 0 if there is none */
	struct text path;   /* -mem-path */
	bool names_backend; /* the machine or a node of -numa does */
};

static int take_object(struct text value, struct ram_backends *list)
{
	struct object o = {0};
	int r;

	if (text_starts(value, "{"))
		parse_json(value, &o);
	else
		parse_pairs(value, &o);
	if (!o.is_backend)
		return 0;
	if (!o.has_size) {
		list->anomalies++;
		return 0;
	}
	r = ram_backends_add(list, &o.backend);
	if (r > 0) {
		list->anomalies++;
		r = 0;
	}
	return r;
}

/* "4096", "4G", "size=262144k,slots=16,maxmem=..." */
static void take_m(struct text value, struct cmdline *c)
{
	struct text item;

	while (text_split(&value, ',', &item)) {
		if (text_skip(&item, "size=") || (item.n && !memchr(item.p, '=', item.n)))
			parse_size(item, MIB, &c->m_bytes);
	}
}

static bool holds(struct text t, const char *s)
{
	return t.n && memmem(t.p, t.n, s, strlen(s));
}

static int take_option(
	struct text option, struct text value, struct cmdline *c, struct ram_backends *list)
{
	if (!text_skip(&option, "-"))
		return 0;
	text_skip(&option, "-");
	if (text_equal(option, "object"))
		return take_object(value, list);
	if (text_equal(option, "m"))
		take_m(value, c);
	else if (text_equal(option, "mem-path"))
		c->path = value;
	else if (text_equal(option, "machine") || text_equal(option, "M"))
		c->names_backend = c->names_backend || holds(value, "memory-backend");
	else if (text_equal(option, "numa"))
		c->names_backend = c->names_backend || holds(value, "memdev");
	return 0;
}

int ram_backends_parse_cmdline(const char *text, size_t len, struct ram_backends *ret)
{
	_cleanup_ram_backends_ struct ram_backends list = {0};
	struct text rest = text_of(text, len), option = {0}, value;
	struct cmdline c = {0};
	int r;

	while (text_split(&rest, '\0', &value)) {
		r = take_option(option, value, &c, &list);
		if (r)
			return r;
		option = value;
	}
	if (c.m_bytes && !c.names_backend) {
		struct ram_backend b = {.type = RAM_BACKEND_RAM, .size_bytes = c.m_bytes};

		if (c.path.n) {
			b.type = RAM_BACKEND_FILE;
			text_copy(c.path, b.path, sizeof(b.path));
		}
		r = ram_backends_add(&list, &b);
		if (r < 0)
			return r;
	}
	if (list.n == 0)
		return HOST_E_NOT_FOUND;
	*ret = list;
	list.backend = NULL;
	return 0;
}

int ram_backends_read(const struct hostfs *fs, pid_t pid, struct ram_backends *ret)
{
	_cleanup_free_ char *text = NULL;
	size_t len;
	int r;

	r = thread_cmdline_read(fs, pid, &text, &len);
	return r ? r : ram_backends_parse_cmdline(text, len, ret);
}
