/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * /proc/PID/maps: what a process has mapped where. On which nodes the pages are: numamaps.h.
 */
#pragma once

#include "controller/host/root.h"

struct map {
	uint64_t start;
	uint64_t end;  /* first address behind it */
	char perms[5]; /* "rw-p" */
	uint64_t offset;
	unsigned dev_major;
	unsigned dev_minor;
	uint64_t inode;
	const char *path; /* "" for anonymous memory; "[heap]", "/x (deleted)"; newline decoded */
};

struct map_list {
	size_t n;
	struct map *map;    /* ascending address; own */
	unsigned anomalies; /* lines that were skipped, the last one included if it was cut */
	char *text;         /* the paths' bytes; own */
};
void map_list_clear(struct map_list *list);
#define _cleanup_map_list_ _cleanup_(map_list_clear)

/*
 * Returns 0, HOST_E_GONE, HOST_E_PERM, HOST_E_TOO_BIG, HOST_E_IO, HOST_E_NOT_FOUND (empty: a
 * kernel thread, or the process has just ended) or a negative errno.
 */
int maps_read(const struct hostfs *fs, pid_t pid, struct map_list *ret);
/* The same from text, which is copied. Returns 0, HOST_E_NOT_FOUND or -ENOMEM. */
int maps_parse(const char *text, size_t len, struct map_list *ret);

/* The map that holds the address, or NULL. */
const struct map *map_list_find(const struct map_list *list, uint64_t address);
