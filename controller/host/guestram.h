/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Which mappings of a QEMU are guest RAM: the only memory that may ever be moved. Never its heap,
 * its stacks, its libraries. How much of it is on which node: memuse.h.
 */
#pragma once

#include "controller/host/backends.h"
#include "controller/host/hugemounts.h"
#include "controller/host/maps.h"
#include "controller/host/numamaps.h"
#include "controller/host/root.h"

enum guestram_kind {
	GUESTRAM_ANON,
	GUESTRAM_MEMFD,
	GUESTRAM_FILE,
	GUESTRAM_HUGETLB, /* on huge pages, whatever it is made of */
};
const char *guestram_kind_name(enum guestram_kind kind);

struct guestram_range {
	uint64_t start;
	uint64_t end;
	/* 4096 (or the base page given) unless hugetlb; 0: hugetlb of a size that is not known */
	uint64_t page_bytes;
	enum guestram_kind kind;
	int backend; /* index in the list of backends; -1: none, or one of several alike */
	char id[RAM_BACKEND_ID_MAX]; /* "" if not known */
};

struct guestram {
	size_t n;
	struct guestram_range *range; /* ascending address, each a whole backend if possible; own */
	uint64_t total_bytes;
	unsigned backends_missing; /* backends no mapping could be found for */
	uint64_t missing_bytes;
};
void guestram_clear(struct guestram *g);
#define _cleanup_guestram_ _cleanup_(guestram_clear)

struct guestram_units {
	uint64_t page_bytes; /* base page; 0: 4096 */
	uint64_t huge_bytes; /* default huge page; 0: not known */
};

/*
 * @backends: what to look for; an empty list finds only what its path betrays.
 * @mounts: may be NULL: then only paths below /dev/hugepages are taken for hugetlbfs.
 * @units: may be NULL.
 * Returns 0 (look at backends_missing: a part may be missing), HOST_E_NOT_FOUND (nothing that is
 * guest RAM for sure) or -ENOMEM.
 */
int guestram_find(const struct map_list *maps, const struct ram_backends *backends,
	const struct huge_mounts *mounts, const struct guestram_units *units, struct guestram *ret);

/*
 * The same for a process: reads its maps and mounts. Also what these return.
 * @backends: NULL: those of its command line.
 */
int guestram_read(const struct hostfs *fs, pid_t pid, const struct ram_backends *backends,
	const struct guestram_units *units, struct guestram *ret);

/*
 * Uses one numa_maps line of a range: corrects page_bytes and kind, and, where several backends of
 * one size could not be told apart, takes the one whose host-nodes are the line's policy nodes.
 * @backends: the list that was given to guestram_find(); may be NULL.
 */
void guestram_learn(
	struct guestram *g, const struct ram_backends *backends, const struct numa_vma *vma);

/* The range that holds the address, or NULL. */
const struct guestram_range *guestram_at(const struct guestram *g, uint64_t address);
