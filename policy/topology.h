/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The host's nodes as the decision sees them: which have CPUs, which have memory, how far apart.
 *
 * Arrays in policy/ are indexed by *node index*: the position of a node among the online nodes in
 * ascending id. Ids are labels and appear only in topology.node[i].id, in masks and in output.
 */
#pragma once

#include "policy/idset.h"

#define TOPOLOGY_NODES_MAX 64u /* online nodes; the largest public host (GB200) has 30 */
#define DISTANCE_LOCAL 10u
#define DISTANCE_REMOTE_DEFAULT 20u /* stands in for an entry that cannot be true */
#define DISTANCE_MAX 254u           /* ACPI: 255 means unreachable */

enum topology_type {
	TOPOLOGY_DIRECT,
	TOPOLOGY_GLUELESS_MESH,
	TOPOLOGY_BACKPLANE,
};

struct topology_node {
	unsigned id;       /* the kernel's label */
	bool has_cpu;      /* at least one online CPU */
	bool has_memory;   /* MemTotal above 0 */
	struct idset cpus; /* online CPUs */
};

struct topology {
	unsigned n_nodes; /* valid entries of node[] and rows/columns of distance[][] */
	struct topology_node node[TOPOLOGY_NODES_MAX];
	/* sanitised: diagonal 10, others 11..254; row = node the access comes from */
	uint16_t distance[TOPOLOGY_NODES_MAX][TOPOLOGY_NODES_MAX];
	enum topology_type type; /* over CPU-bearing nodes */
	unsigned max_distance;   /* largest distance between two CPU-bearing nodes, at least 10 */
	unsigned mended;         /* entries that topology_finish had to replace (for one warning) */
	/* for speed, by topology_finish(): */
	struct {
		unsigned n_cpus;
		unsigned first_word, end_word; /* words of node.cpus that are not 0 */
		int nearest_cpu_node;          /* as topology_nearest_cpu_node() */
	} known[TOPOLOGY_NODES_MAX];
	uint64_t inverse; /* of max_distance - 10, in units of 2^-64, rounded up */
};

/*
 * Sanitises @t->distance in place and computes type and max_distance. To be called after n_nodes,
 * node[] and distance[][] are filled, and again whenever they are changed.
 *
 * Rule for odd tables (also in docs/architecture.md): the diagonal becomes 10; an entry that is 0,
 * at most 10 off the diagonal, or above 254 (unreachable, garbage) becomes 20, except that a table
 * whose remote entries are *all* 10 is kept as it is (a host that says all nodes are equally
 * near). Asymmetric entries are kept: the row of the node that accesses counts.
 *
 * Type: kernel/sched/topology.c init_numa_topology_type(), over CPU-bearing nodes only.
 */
void topology_finish(struct topology *t);

/* A set of nodes by node index: bit i is node[i]. */
typedef uint64_t node_mask;
#define NODE_BIT(i) (UINT64_C(1) << (i))

/* Index of the node with this id, or -1. */
int topology_index(const struct topology *t, unsigned id);

/* Index of the CPU-bearing node nearest to @idx (itself if it has CPUs; ties: lowest index), -1 if
 * the host has none. */
int topology_nearest_cpu_node(const struct topology *t, unsigned idx);
/* The same for nodes with memory, restricted to those in @among (node ids; NULL = all). */
int topology_nearest_memory_node(const struct topology *t, unsigned idx, const struct idset *among);

/* How many CPUs of node @idx are in @cpus. */
unsigned topology_count_cpus(const struct topology *t, unsigned idx, const struct idset *cpus);

/* Index of the node that holds this CPU, or -1. */
int topology_node_of_cpu(const struct topology *t, unsigned cpu);

const char *topology_type_name(enum topology_type type);

#define topology_foreach(i, t) for (unsigned i = 0; i < (t)->n_nodes; i++)
