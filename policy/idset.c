/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Why one type for CPUs and nodes: both are labels that the kernel writes in the same list format,
 * and mixing "index" with "id" is what broke other tools on sparse hosts. Everything that touches
 * the outside speaks ids in an idset; only the topology translates ids to array indexes.
 */
#include "policy/idset.h"

#include <stdio.h>
#include <string.h>

void idset_clear(struct idset *s)
{
	memset(s, 0, sizeof(*s));
}

void idset_add(struct idset *s, unsigned id)
{
	if (id < IDSET_MAX)
		s->word[id / 64] |= UINT64_C(1) << (id % 64);
}

void idset_remove(struct idset *s, unsigned id)
{
	if (id < IDSET_MAX)
		s->word[id / 64] &= ~(UINT64_C(1) << (id % 64));
}

bool idset_has(const struct idset *s, unsigned id)
{
	return id < IDSET_MAX && (s->word[id / 64] >> (id % 64) & 1);
}

bool idset_empty(const struct idset *s)
{
	for (size_t i = 0; i < ARRAY_LEN(s->word); i++)
		if (s->word[i])
			return false;
	return true;
}

unsigned idset_count(const struct idset *s)
{
	unsigned n = 0;

	for (size_t i = 0; i < ARRAY_LEN(s->word); i++)
		n += (unsigned)__builtin_popcountll(s->word[i]);
	return n;
}

bool idset_equal(const struct idset *a, const struct idset *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

bool idset_subset(const struct idset *a, const struct idset *b)
{
	for (size_t i = 0; i < ARRAY_LEN(a->word); i++)
		if (a->word[i] & ~b->word[i])
			return false;
	return true;
}

bool idset_intersects(const struct idset *a, const struct idset *b)
{
	for (size_t i = 0; i < ARRAY_LEN(a->word); i++)
		if (a->word[i] & b->word[i])
			return true;
	return false;
}

void idset_and(struct idset *dst, const struct idset *b)
{
	for (size_t i = 0; i < ARRAY_LEN(dst->word); i++)
		dst->word[i] &= b->word[i];
}

void idset_or(struct idset *dst, const struct idset *b)
{
	for (size_t i = 0; i < ARRAY_LEN(dst->word); i++)
		dst->word[i] |= b->word[i];
}

void idset_andnot(struct idset *dst, const struct idset *b)
{
	for (size_t i = 0; i < ARRAY_LEN(dst->word); i++)
		dst->word[i] &= ~b->word[i];
}

int idset_next(const struct idset *s, unsigned from)
{
	for (size_t i = from / 64; i < ARRAY_LEN(s->word); i++) {
		uint64_t w = s->word[i];

		if (i == from / 64)
			w &= ~UINT64_C(0) << (from % 64);
		if (w)
			return (int)(i * 64 + (unsigned)__builtin_ctzll(w));
	}
	return -1;
}

/* One decimal number; too large ones saturate, so that the caller sees a range error. */
static bool take_number(const char **p, const char *end, unsigned *ret)
{
	unsigned v = 0;
	const char *s = *p;

	while (s < end && *s >= '0' && *s <= '9') {
		if (v < IDSET_MAX)
			v = v * 10 + (unsigned)(*s - '0');
		s++;
	}
	v = MIN2(v, IDSET_MAX);
	if (s == *p)
		return false;
	*p = s;
	*ret = v;
	return true;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

int idset_parse_list(const char *text, size_t len, struct idset *ret)
{
	const char *p = text, *end = text + len;
	struct idset s = {0};

	while (p < end && is_blank(*p))
		p++;
	while (end > p && is_blank(end[-1]))
		end--;
	while (p < end) {
		unsigned a, b;

		if (!take_number(&p, end, &a))
			return IDSET_E_SYNTAX;
		b = a;
		if (p < end && *p == '-') {
			p++;
			if (!take_number(&p, end, &b) || b < a)
				return IDSET_E_SYNTAX;
		}
		if (b >= IDSET_MAX)
			return IDSET_E_RANGE;
		for (; a <= b; a++)
			idset_add(&s, a);
		if (p == end)
			break;
		if (*p != ',' || p + 1 == end)
			return IDSET_E_SYNTAX;
		p++;
	}
	*ret = s;
	return 0;
}

char *idset_format(const struct idset *s, char *buf, size_t size)
{
	size_t used = 0;

	if (size == 0)
		return buf;
	buf[0] = '\0';
	for (int a = idset_next(s, 0); a >= 0;) {
		char item[32];
		int b = a, n;

		while (idset_has(s, (unsigned)b + 1))
			b++;
		n = a == b ? snprintf(item, sizeof(item), "%s%d", used ? "," : "", a)
			   : snprintf(item, sizeof(item), "%s%d-%d", used ? "," : "", a, b);
		/* what follows the item: nothing but the NUL, or at worst "..." and the NUL */
		if (used + (size_t)n + (idset_next(s, (unsigned)b + 1) < 0 ? 1 : 4) > size) {
			snprintf(buf + used, size - used, "...");
			break;
		}
		memcpy(buf + used, item, (size_t)n + 1);
		used += (size_t)n;
		a = idset_next(s, (unsigned)b + 1);
	}
	return buf;
}
