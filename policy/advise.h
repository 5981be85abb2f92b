/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Where should a VM that does not run yet start? Its first touches decide where its memory lies, so
 * a good start is a copy that need not be made. Pure like decide().
 */
#pragma once

#include "policy/reason.h"
#include "policy/settings.h"
#include "policy/snapshot.h"

/* A start that was advised counts for so long, or until the VM is in the snapshot. */
#define ADVISE_PENDING_NS UINT64_C(60000000000)

enum advise_mode {
	ADVISE_SPREAD, /* of the nodes that are equally good, the emptiest */
	ADVISE_PACK,   /* the fullest that it fits on, so that a large VM finds room later */
};

struct advise_request {
	unsigned n_vcpus; /* at least 1 */
	uint64_t ram_bytes;
	bool hugetlb; /* of the default huge page size: its RAM comes from that pool */
	enum advise_mode mode;
	struct idset allowed_cpus; /* CPU ids; empty: all */
	struct idset allowed_mems; /* node ids; empty: all */
};

/* A VM that has been told where to start and has not been seen using anything. */
struct advise_start {
	char uuid[SNAPSHOT_UUID_LEN]; /* "": not known */
	unsigned n_vcpus;
	uint64_t ram_bytes;
	bool hugetlb;
	node_mask nodes;
	uint64_t time_ns; /* when, on the snapshot's clock */
};

struct advice {
	node_mask nodes; /* never 0 */
	bool fits_cpus;  /* each vCPU finds a CPU that others leave free */
	/* What is left on each node before it starts, [n_nodes]. */
	int64_t cpus_left_permille[TOPOLOGY_NODES_MAX]; /* 1000 per CPU; below 0: overcommitted */
	int64_t bytes_left[TOPOLOGY_NODES_MAX];         /* above the reserve; may be below 0 */
	struct reason reason;
};

enum {
	ADVISE_E_CPUS = 1, /* it has more vCPUs than it may have CPUs on all nodes together */
	ADVISE_E_MEMORY,   /* no set of nodes has so much memory left */
};

/*
 * One node if one is enough, else as few near ones as it takes. First such sets are looked for
 * where each vCPU finds a CPU that others leave free; if there are none, where it finds any.
 *
 * VMs of the snapshot that are still warming up count with all their vCPUs and all their RAM, and
 * so do those of @starts [n_starts] that are younger than ADVISE_PENDING_NS and not among them.
 *
 * Returns 0, or a condition; then *ret has no nodes but what is left on each, and the reason.
 */
int advise(const struct snapshot *s, const struct settings *set, const struct advise_request *req,
	const struct advise_start *starts, size_t n_starts, struct advice *ret);
