/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The `residency` source: where sampled pages of guest RAM lie, asked through move_pages() without
 * moving anything. It walks no page tables beyond the sampled pages and is exact for small guests.
 */
#pragma once

#include "controller/host/guestram.h"
#include "policy/topology.h"

/* The one system call, so that tests can stand in for the kernel. Returns 0 or -1 with errno, as
 * move_pages(2). */
struct page_ops {
	long (*move_pages)(void *userdata, pid_t pid, unsigned long count, void **pages,
		const int *nodes, int *status, int flags);
	void *userdata;
};
/* The real one, through libnuma. */
extern const struct page_ops page_ops_kernel;

#define RESIDENCY_SAMPLES_DEFAULT 4096u

/*
 * @samples: pages to ask for at most, spread evenly; all pages if there are no more than that.
 * @phase: shifts the sample from call to call, so that in time all pages are seen.
 * @ret_bytes: [n_nodes] by node index, scaled up to the whole; pages that are not there count
 *   nowhere.
 * Returns 0, HOST_E_GONE, HOST_E_PERM, HOST_E_IO or -ENOMEM.
 */
int source_residency_read(const struct page_ops *ops, pid_t pid, const struct guestram *ram,
	const struct topology *t, unsigned samples, unsigned phase, uint64_t *ret_bytes);
