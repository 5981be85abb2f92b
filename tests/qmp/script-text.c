/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The words of a transcript, and the lines that a run of it leaves. */
#include "tests/qmp/script-private.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policy/base.h"

void run_fail(struct run *r, const char *fmt, ...)
{
	static const char *const how[] = {"whole", "cut", "byte by byte", "hung up"};
	va_list args;

	if (!r->failed) {
		printf("# %s:%u: (%s at %zu) ", r->name, r->line, how[r->how], r->at);
		va_start(args, fmt);
		vprintf(fmt, args);
		va_end(args);
		printf("\n");
	}
	r->failed = r->stopped = true;
}

void lines_add(struct lines *lines, char *line)
{
	if ((lines->n & (lines->n + 1)) == 0) {
		lines->line = realloc(lines->line, 2 * (lines->n + 1) * sizeof(*lines->line));
		if (!lines->line)
			abort();
	}
	lines->line[lines->n++] = line;
}

void lines_clear(struct lines *lines)
{
	for (size_t i = 0; i < lines->n; i++)
		free(lines->line[i]);
	free(lines->line);
	*lines = (struct lines){0};
}

void run_log(struct run *r, const char *fmt, ...)
{
	char *line;
	va_list args;

	va_start(args, fmt);
	if (vasprintf(&line, fmt, args) < 0)
		abort();
	va_end(args);
	lines_add(&r->log, line);
}

struct label *run_label(struct run *r, char name)
{
	if (name >= '0' && name <= '9')
		return &r->label[name - '0'];
	if (name >= 'a' && name <= 'z')
		return &r->label[10 + name - 'a'];
	run_fail(r, "'%c' is no label", name);
	return &r->label[0];
}

uint64_t run_duration(struct run *r, const char *text)
{
	static const struct {
		const char *unit;
		uint64_t ns;
	} units[] = {{"s", 1000000000}, {"ms", 1000000}, {"ns", 1}};
	char *end;
	unsigned long long n = strtoull(text, &end, 10);

	for (size_t i = 0; i < ARRAY_LEN(units); i++)
		if (end != text && strcmp(end, units[i].unit) == 0)
			return n * units[i].ns;
	run_fail(r, "'%s' is no duration", text);
	return 0;
}

/* "@N<TEXT>"; returns what is behind it. */
static const char *expand_repeated(struct run *r, const char *text, struct peer_text *ret)
{
	struct peer_text inner = {0};
	char *begin, *end, *copy;
	unsigned long n = strtoul(text + 1, &begin, 10);

	end = strchr(begin, '>');
	if (*begin != '<' || !end || begin == text + 1) {
		peer_text_add(ret, "@", 1);
		return text + 1;
	}
	copy = strndup(begin + 1, (size_t)(end - begin - 1));
	if (!copy)
		abort();
	run_expand(r, copy, &inner);
	peer_text_repeat(ret, inner.bytes, inner.len, n);
	free(inner.bytes);
	free(copy);
	return end + 1;
}

void run_expand(struct run *r, const char *text, struct peer_text *ret)
{
	unsigned byte;

	peer_text_add(ret, "", 0);
	while (*text) {
		if (sscanf(text, "\\x%2x", &byte) == 1) {
			peer_text_add(ret, (const char[]){(char)byte}, 1);
			text += 4;
		} else if (*text == '@') {
			text = expand_repeated(r, text, ret);
		} else if (*text == '$' && text[1]) {
			const struct label *l = run_label(r, text[1]);

			if (!l->wire_id)
				run_fail(r, "label %c was not sent yet", text[1]);
			else
				peer_text_add(ret, l->wire_id, strlen(l->wire_id));
			text += 2;
		} else {
			peer_text_add(ret, text++, 1);
		}
	}
}
