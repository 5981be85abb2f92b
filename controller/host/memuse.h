/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * How many bytes of a VM are on which node, guest RAM apart from QEMU's own memory.
 *
 * memory_use.bytes is by node index of the topology that was given.
 */
#pragma once

#include "controller/host/guestram.h"
#include "controller/host/numamaps.h"
#include "policy/topology.h"

enum memory_kind {
	MEMORY_GUEST_RAM,
	MEMORY_HEAP,
	MEMORY_STACK,
	MEMORY_PRIVATE, /* other anonymous memory */
	MEMORY_FILE,    /* libraries and other files that are mapped */
	MEMORY_KINDS,
};
const char *memory_kind_name(enum memory_kind kind);
/* @g: may be NULL. */
enum memory_kind memory_kind_of(const struct guestram *g, const struct numa_vma *vma);

struct memory_use {
	uint64_t bytes[MEMORY_KINDS][TOPOLOGY_NODES_MAX]; /* by node index */
	uint64_t elsewhere_bytes; /* on nodes that the topology does not have */
	bool hugetlb;             /* a part of guest RAM is on huge pages */
	bool bound;               /* a part of guest RAM has a bind policy without balancing */
	struct numa_maps_result read;
};

/*
 * Sums numa_maps by kind and node.
 * @g: may be NULL (everything is then heap, stack, private or file); else learns as above.
 * @backends: may be NULL.
 * Returns what numa_maps_read() returns.
 */
int memory_use_read(const struct hostfs *fs, pid_t pid, const struct topology *topology,
	const struct numa_maps_units *units, struct guestram *g,
	const struct ram_backends *backends, struct memory_use *ret);
int memory_use_parse(const char *text, size_t len, const struct topology *topology,
	const struct numa_maps_units *units, struct guestram *g,
	const struct ram_backends *backends, struct memory_use *ret);
