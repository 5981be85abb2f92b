/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Anonymous memory of a given size among the mappings of a QEMU, for guestram.c.
 */
#pragma once

#include "controller/host/maps.h"

/* Mappings first..last (indexes of the list) adjoin and are one piece of memory. */
struct map_run {
	size_t first;
	size_t last;
	unsigned rank; /* how much it looks like guest RAM; only compared */
};

struct anon_runs {
	size_t n;
	struct map_run *run; /* best rank first, then by address; own */
};
void anon_runs_clear(struct anon_runs *runs);
#define _cleanup_anon_runs_ _cleanup_(anon_runs_clear)

/*
 * Private anonymous read-write memory, one mapping or several that adjoin, of exactly @bytes.
 * @used: [maps->n] mappings that are something else already.
 * @wanted: how many there should be. Of more than that, only those that are better than the rest;
 *          never two that overlap.
 * Returns 0 (perhaps with none) or -ENOMEM.
 */
int anon_runs_find(const struct map_list *maps, const bool *used, uint64_t bytes, size_t wanted,
	struct anon_runs *ret);
