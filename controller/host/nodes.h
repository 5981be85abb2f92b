/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The host's nodes, CPUs and memory, from /sys/devices/system/{node,cpu} and /proc/meminfo.
 *
 * memory[] is by node index of topology. The idsets hold ids. Distances in topology.distance are
 * by index, whatever ids the columns of the file belonged to.
 */
#pragma once

#include "controller/host/root.h"
#include "policy/topology.h"

#define NODES_POOLS_MAX 8u
#define NODES_WARNINGS_MAX 16u
#define NODES_WARNING_LEN 192u

struct huge_pool {
	uint64_t page_bytes;
	uint64_t total_pages;
	uint64_t free_pages;
	uint64_t surplus_pages;
};

struct node_memory {
	bool known; /* meminfo could be read */
	uint64_t total_bytes;
	uint64_t free_bytes;
	unsigned n_pools;
	struct huge_pool pool[NODES_POOLS_MAX]; /* ascending page size */
};

struct host_nodes {
	/* finished (topology_finish); node[].cpus are cpulist and the online CPUs */
	struct topology topology;
	struct node_memory memory[TOPOLOGY_NODES_MAX];
	bool has_numa; /* false: no /sys/devices/system/node, all is one node 0 */

	struct idset online;     /* node ids, as the kernel says; topology may hold fewer */
	struct idset has_cpu;    /* node ids, as the kernel says */
	struct idset has_memory; /* node ids, as the kernel says */

	struct idset cpus_online;
	struct idset cpus_possible; /* empty if not known */
	struct idset cpus_isolated;

	uint64_t huge_default_bytes; /* 0 if the host has no huge pages */

	/* What was odd; each text is one sentence for people, without a final stop. */
	unsigned n_warnings;
	unsigned warnings_lost; /* more than fit */
	char warning[NODES_WARNINGS_MAX][NODES_WARNING_LEN];
};

/*
 * Reads them all. A node none of whose files can be read is left out; a node with one odd file
 * stays, without what that file would have said; both are warned of. More than TOPOLOGY_NODES_MAX
 * online nodes: the first ones, and a warning.
 * The struct is large (some 80 KB): keep it on the heap.
 * Returns 0, HOST_E_FORMAT (node/online or cpu/online is not a list), HOST_E_PERM, HOST_E_IO or a
 * negative errno.
 */
int nodes_read(const struct hostfs *fs, struct host_nodes *ret);

/* The pool with pages of this size on the node with this index, or NULL. */
const struct huge_pool *nodes_pool(
	const struct host_nodes *nodes, unsigned idx, uint64_t page_bytes);

/*
 * One nodeN/distance line: values separated by blanks, perhaps with a blank at the beginning.
 * @n: number of values there must be, one for each online node in ascending id.
 * @ret: @n values; those above 65535 become 65535.
 * Returns 0 or HOST_E_FORMAT (then @ret is untouched).
 */
int nodes_parse_distance(const char *text, size_t len, unsigned n, uint16_t *ret);
