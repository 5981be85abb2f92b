/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Why the list and not a callback: finding guest RAM looks at neighbours in both directions (a
 * backend that was split by mbind, a guard page behind it), and a QEMU has some hundred mappings.
 */
#include "controller/host/maps.h"

#include <errno.h>

#include "controller/host/parse.h"

void map_list_clear(struct map_list *list)
{
	free(list->map);
	free(list->text);
	*list = (struct map_list){0};
}

/*
 * Makes a C string of a path within our own copy of the text: there is always the newline behind it
 * to put the NUL on. The kernel escapes nothing but the newline.
 */
static const char *path_in_place(char *p, size_t n)
{
	size_t to = 0;

	for (size_t from = 0; from < n; to++) {
		if (n - from >= 4 && memcmp(p + from, "\\012", 4) == 0) {
			p[to] = '\n';
			from += 4;
		} else {
			p[to] = p[from] ? p[from] : '?';
			from++;
		}
	}
	p[to] = '\0';
	return p;
}

static bool take_range(struct text word, struct map *m)
{
	struct text start, end;

	return text_cut(word, '-', &start, &end) && parse_hex(start, UINT64_MAX, &m->start) &&
	       parse_hex(end, UINT64_MAX, &m->end) && m->start < m->end;
}

static bool take_device(struct text word, struct map *m)
{
	struct text major, minor;
	uint64_t a, b;

	if (!text_cut(word, ':', &major, &minor) || !parse_hex(major, UINT32_MAX, &a) ||
		!parse_hex(minor, UINT32_MAX, &b))
		return false;
	m->dev_major = (unsigned)a;
	m->dev_minor = (unsigned)b;
	return true;
}

/* @text: the copy that @line points into. */
static bool take_map(struct text line, char *text, struct map *ret)
{
	struct map m = {.path = ""};
	struct text word, rest = line;

	if (!text_word(&rest, &word) || !take_range(word, &m))
		return false;
	if (!text_word(&rest, &word) || word.n != 4)
		return false;
	text_copy(word, m.perms, sizeof(m.perms));
	if (!text_word(&rest, &word) || !parse_hex(word, UINT64_MAX, &m.offset))
		return false;
	if (!text_word(&rest, &word) || !take_device(word, &m))
		return false;
	if (!text_word(&rest, &word) || !parse_u64(word, UINT64_MAX, &m.inode))
		return false;
	/* the kernel pads with blanks up to the path; blanks at its end are its own */
	while (rest.n && rest.p[0] == ' ')
		rest = text_of(rest.p + 1, rest.n - 1);
	if (rest.n)
		m.path = path_in_place(text + (rest.p - text), rest.n);
	*ret = m;
	return true;
}

static int list_add(struct map_list *list, size_t *size, const struct map *m)
{
	if (list->n == *size) {
		size_t larger = *size ? *size * 2 : 256;
		struct map *p = reallocarray(list->map, larger, sizeof(*p));

		if (!p)
			return -ENOMEM;
		list->map = p;
		*size = larger;
	}
	list->map[list->n++] = *m;
	return 0;
}

/* @text: is taken over, whatever is returned. */
static int parse_own(char *text, size_t len, struct map_list *ret)
{
	_cleanup_map_list_ struct map_list list = {.text = text};
	struct text rest = text_of(text, len), line;
	size_t size = 0;
	bool ended;
	int r;

	while (text_line(&rest, &line, &ended)) {
		struct map m;

		if (!ended || !take_map(line, text, &m) ||
			(list.n && m.start < list.map[list.n - 1].end)) {
			list.anomalies++;
			continue;
		}
		r = list_add(&list, &size, &m);
		if (r)
			return r;
	}
	if (list.n == 0)
		return HOST_E_NOT_FOUND;
	*ret = list;
	list = (struct map_list){0};
	return 0;
}

int maps_parse(const char *text, size_t len, struct map_list *ret)
{
	char *copy = malloc(len + 1);

	if (!copy)
		return -ENOMEM;
	if (len)
		memcpy(copy, text, len);
	copy[len] = '\0';
	return parse_own(copy, len, ret);
}

int maps_read(const struct hostfs *fs, pid_t pid, struct map_list *ret)
{
	char *text;
	size_t len;
	int r;

	r = hostfs_read(fs, HOST_LIMIT_MAPS, &text, &len, "proc/%d/maps", (int)pid);
	return r ? r : parse_own(text, len, ret);
}

const struct map *map_list_find(const struct map_list *list, uint64_t address)
{
	size_t a = 0, b = list->n;

	while (a < b) {
		size_t mid = a + (b - a) / 2;

		if (address < list->map[mid].start)
			b = mid;
		else if (address >= list->map[mid].end)
			a = mid + 1;
		else
			return &list->map[mid];
	}
	return NULL;
}
