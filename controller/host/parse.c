/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Why not strtol, sscanf and fgets: they stop at a NUL, accept signs, blanks and overflow without
 * saying so, and fixed line buffers are what made other readers of these files misread long lines.
 */
#include "controller/host/parse.h"

#define PID_LIMIT 4194304 /* PID_MAX_LIMIT of 64-bit kernels */

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static bool is_space(char c)
{
	return is_blank(c) || c == '\n' || c == '\r';
}

bool text_line(struct text *rest, struct text *ret_line, bool *ret_ended)
{
	const char *newline;
	size_t n;

	if (rest->n == 0)
		return false;
	newline = memchr(rest->p, '\n', rest->n);
	n = newline ? (size_t)(newline - rest->p) : rest->n;
	*ret_line = text_of(rest->p, n);
	if (ret_ended)
		*ret_ended = newline;
	if (newline)
		n++;
	rest->p += n;
	rest->n -= n;
	return true;
}

bool text_word(struct text *rest, struct text *ret_word)
{
	size_t a = 0, b;

	while (a < rest->n && is_blank(rest->p[a]))
		a++;
	for (b = a; b < rest->n && !is_blank(rest->p[b]);)
		b++;
	if (a == b)
		return false;
	*ret_word = text_of(rest->p + a, b - a);
	rest->p += b;
	rest->n -= b;
	return true;
}

bool text_split(struct text *rest, char sep, struct text *ret_piece)
{
	struct text before, behind;

	if (rest->n == 0)
		return false;
	if (!text_cut(*rest, sep, &before, &behind)) {
		before = *rest;
		behind = text_of(rest->p + rest->n, 0);
	}
	*ret_piece = before;
	*rest = behind;
	return true;
}

bool text_cut(struct text t, char sep, struct text *ret_before, struct text *ret_behind)
{
	const char *at = t.n ? memchr(t.p, sep, t.n) : NULL;
	size_t n;

	if (!at)
		return false;
	n = (size_t)(at - t.p);
	*ret_before = text_of(t.p, n);
	*ret_behind = text_of(at + 1, t.n - n - 1);
	return true;
}

struct text text_trim(struct text t)
{
	while (t.n && is_space(t.p[0])) {
		t.p++;
		t.n--;
	}
	while (t.n && is_space(t.p[t.n - 1]))
		t.n--;
	return t;
}

bool text_equal(struct text t, const char *s)
{
	return t.n == strlen(s) && (t.n == 0 || memcmp(t.p, s, t.n) == 0);
}

bool text_starts(struct text t, const char *s)
{
	size_t n = strlen(s);

	return n == 0 || (t.n >= n && memcmp(t.p, s, n) == 0);
}

bool text_ends(struct text t, const char *s)
{
	size_t n = strlen(s);

	return n == 0 || (t.n >= n && memcmp(t.p + t.n - n, s, n) == 0);
}

bool text_skip(struct text *t, const char *s)
{
	if (!text_starts(*t, s))
		return false;
	t->p += strlen(s);
	t->n -= strlen(s);
	return true;
}

char *text_copy(struct text t, char *buf, size_t size)
{
	size_t n;

	if (size == 0)
		return buf;
	n = MIN2(t.n, size - 1);
	for (size_t i = 0; i < n; i++)
		buf[i] = t.p[i] ? t.p[i] : '?';
	buf[n] = '\0';
	return buf;
}

char *text_dup(struct text t)
{
	char *copy = malloc(t.n + 1);

	return copy ? text_copy(t, copy, t.n + 1) : NULL;
}

static int digit_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return 16;
}

static bool parse_base(struct text t, unsigned base, uint64_t max, uint64_t *ret)
{
	uint64_t v = 0;

	if (t.n == 0)
		return false;
	for (size_t i = 0; i < t.n; i++) {
		unsigned digit = (unsigned)digit_value(t.p[i]);

		if (digit >= base)
			return false;
		if (__builtin_mul_overflow(v, base, &v) || __builtin_add_overflow(v, digit, &v))
			return false;
	}
	if (v > max)
		return false;
	*ret = v;
	return true;
}

bool parse_u64(struct text t, uint64_t max, uint64_t *ret)
{
	return parse_base(t, 10, max, ret);
}

bool parse_hex(struct text t, uint64_t max, uint64_t *ret)
{
	return parse_base(t, 16, max, ret);
}

bool parse_i64(struct text t, int64_t min, int64_t max, int64_t *ret)
{
	bool minus = text_skip(&t, "-");
	uint64_t magnitude;
	int64_t v;

	if (!parse_base(t, 10, minus ? UINT64_C(1) << 63 : INT64_MAX, &magnitude))
		return false;
	v = minus ? (int64_t)(0 - magnitude) : (int64_t)magnitude;
	if (v < min || v > max)
		return false;
	*ret = v;
	return true;
}

bool parse_uint(struct text t, unsigned max, unsigned *ret)
{
	uint64_t v;

	if (!parse_base(t, 10, max, &v))
		return false;
	*ret = (unsigned)v;
	return true;
}

bool parse_pid(struct text t, int *ret)
{
	uint64_t v;

	if (!parse_base(t, 10, PID_LIMIT, &v) || v == 0)
		return false;
	*ret = (int)v;
	return true;
}
