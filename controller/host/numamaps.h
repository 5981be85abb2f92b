/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * /proc/PID/numa_maps: on which nodes the pages of a process are.
 *
 * Nodes are node *ids* here, as the kernel writes them. Reading it makes the kernel walk page
 * tables under the process's mmap lock, so the caller decides how often, off the main loop, and
 * measures the time around the call.
 */
#pragma once

#include "controller/host/root.h"
#include "policy/idset.h"

#define NUMA_VMA_NODES_MAX 256u

enum numa_policy {
	NUMA_POLICY_UNKNOWN, /* a name from the future */
	NUMA_POLICY_DEFAULT,
	NUMA_POLICY_LOCAL,
	NUMA_POLICY_PREFER,
	NUMA_POLICY_PREFER_MANY,
	NUMA_POLICY_BIND,
	NUMA_POLICY_INTERLEAVE,
	NUMA_POLICY_WEIGHTED_INTERLEAVE,
};

enum numa_vma_kind {
	NUMA_VMA_ANON,
	NUMA_VMA_HEAP,
	NUMA_VMA_STACK,
	NUMA_VMA_FILE,
};

struct numa_count {
	unsigned node; /* id */
	uint64_t pages;
	uint64_t bytes;
};

/* One line. Valid during the callback only. */
struct numa_vma {
	uint64_t start; /* the end is in maps */
	enum numa_policy policy;
	bool policy_balancing;     /* the kernel's balancer may move it although it is bound */
	struct idset policy_nodes; /* ids; empty if there are none or they could not be read */
	enum numa_vma_kind kind;
	const char *path; /* decoded; "" unless a file */
	bool huge;        /* hugetlb */
	uint64_t page_bytes;
	uint64_t anon_pages;
	uint64_t dirty_pages;
	unsigned n_counts;
	struct numa_count count[NUMA_VMA_NODES_MAX]; /* in the file's order, ascending */
};

struct numa_maps_units {
	uint64_t page_bytes; /* base page, for lines without kernelpagesize_kB; 0: 4096 */
	uint64_t huge_bytes; /* default huge page, for "huge" lines without it; 0: 2 MiB */
};

struct numa_maps_result {
	unsigned lines;     /* handed to the callback */
	unsigned anomalies; /* skipped */
	bool incomplete;    /* the text ended within a line */
};

/* Anything but 0 ends the walk and is returned. */
typedef int (*numa_vma_fn)(const struct numa_vma *vma, void *userdata);

/*
 * Calls @fn for each line that can be understood.
 * @ret: may be NULL.
 * Returns 0, HOST_E_GONE, HOST_E_PERM, HOST_E_TOO_BIG, HOST_E_IO, HOST_E_NOT_FOUND (empty), what
 * @fn returned, or a negative errno.
 */
int numa_maps_read(const struct hostfs *fs, pid_t pid, const struct numa_maps_units *units,
	numa_vma_fn fn, void *userdata, struct numa_maps_result *ret);
/* The same from text. */
int numa_maps_parse(const char *text, size_t len, const struct numa_maps_units *units,
	numa_vma_fn fn, void *userdata, struct numa_maps_result *ret);
