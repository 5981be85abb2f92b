/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A set of small ids: host CPUs, or host NUMA nodes. Ids are labels and may be sparse (0, 8, 252).
 * A plain value: copy it by assignment; all zero is the empty set.
 */
#pragma once

#include "policy/base.h"

#define IDSET_MAX 4096u /* ids 0..4095; a larger id is IDSET_E_RANGE, never cut silently */

struct idset {
	uint64_t word[IDSET_MAX / 64];
};

enum {
	IDSET_E_SYNTAX = 1, /* not a list of ids and ranges */
	IDSET_E_RANGE,      /* an id of IDSET_MAX or more */
};

void idset_clear(struct idset *s);
/* Ids of IDSET_MAX or more are ignored by add and remove, and are in no set. */
void idset_add(struct idset *s, unsigned id);
void idset_remove(struct idset *s, unsigned id);
bool idset_has(const struct idset *s, unsigned id);
bool idset_empty(const struct idset *s);
unsigned idset_count(const struct idset *s);
bool idset_equal(const struct idset *a, const struct idset *b);
/* a is a subset of b; the empty set is a subset of every set. */
bool idset_subset(const struct idset *a, const struct idset *b);
bool idset_intersects(const struct idset *a, const struct idset *b);
void idset_and(struct idset *dst, const struct idset *b);    /* dst = dst and b */
void idset_or(struct idset *dst, const struct idset *b);     /* dst = dst or b */
void idset_andnot(struct idset *dst, const struct idset *b); /* dst = dst without b */
/* Smallest id >= from, or -1. */
int idset_next(const struct idset *s, unsigned from);

#define idset_foreach(id, s) for (int id = idset_next(s, 0); id >= 0; id = idset_next(s, id + 1))

/*
 * The kernel's list format as in /sys/devices/system/node/online, nodeN/cpulist,
 * Cpus_allowed_list: "0-3,8,10-11", optional surrounding blanks and a final newline; an empty or
 * blank line is the empty set.
 * @text: need not end with NUL; @len bytes are read.
 * Returns 0, IDSET_E_SYNTAX or IDSET_E_RANGE (then @ret is untouched).
 */
int idset_parse_list(const char *text, size_t len, struct idset *ret);

/*
 * Writes the set as ranges, "0-3,8"; the empty set as "". Always ends with NUL; if @size is too
 * small the text is cut at an item and ends with "...".
 * Returns @buf.
 */
char *idset_format(const struct idset *s, char *buf, size_t size);
