/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Cutting text into pieces and pieces into numbers. A piece is a pointer and a length into text
 * that somebody else owns: nothing is copied, no line has a greatest length, and a NUL byte is a
 * byte like any other.
 */
#pragma once

#include <string.h>

#include "policy/base.h"

struct text {
	const char *p;
	size_t n;
};

static inline struct text text_of(const char *p, size_t n)
{
	return (struct text){.p = p, .n = n};
}

/*
 * Takes the next line off @rest, without its newline.
 * @ret_ended: false if the text ended before a newline came, that is, if the line may have been
 *             cut; may be NULL.
 * Returns false at the end of the text.
 */
bool text_line(struct text *rest, struct text *ret_line, bool *ret_ended);

/* Takes the next word (blanks and tabs separate) off @rest; false if there is none. */
bool text_word(struct text *rest, struct text *ret_word);

/*
 * Takes what comes before the next @sep off @rest, and drops the separator. The last piece is what
 * is left; an empty @rest has no pieces. False if there is none.
 */
bool text_split(struct text *rest, char sep, struct text *ret_piece);

/* Parts @t at the first @sep into what is before and behind it; false if there is none. */
bool text_cut(struct text t, char sep, struct text *ret_before, struct text *ret_behind);

/* Without blanks, tabs, CR and newlines at both ends. */
struct text text_trim(struct text t);

bool text_equal(struct text t, const char *s);
bool text_starts(struct text t, const char *s);
bool text_ends(struct text t, const char *s);
/* If @t starts with @s, drops it from @t and returns true. */
bool text_skip(struct text *t, const char *s);

/* Copies into @buf with a NUL, cut to @size - 1 bytes; NUL bytes become '?'. Returns @buf. */
char *text_copy(struct text t, char *buf, size_t size);

/* A C string of its own, NUL bytes as above; NULL: out of memory. The caller frees it. */
char *text_dup(struct text t);

/*
 * Whole-text numbers: the text must be nothing but the number (no sign for the unsigned ones, no
 * blanks), and it must be in the range. Return whether it is so; else @ret is untouched.
 */
bool parse_u64(struct text t, uint64_t max, uint64_t *ret);
bool parse_i64(struct text t, int64_t min, int64_t max, int64_t *ret);
bool parse_hex(struct text t, uint64_t max, uint64_t *ret); /* without 0x */
bool parse_uint(struct text t, unsigned max, unsigned *ret);
/* A process or thread id: 1..4194304 (the kernel's PID_MAX_LIMIT). */
bool parse_pid(struct text t, int *ret);
