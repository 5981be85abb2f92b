/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Weights: which share (0..1000) of a task's or a group's faults a node stands for, with near nodes
 * scored by the topology. Source of the formulas: kernel/sched/fair.c score_nearby_nodes(),
 * task_weight(), group_weight(), preferred_group_nid(), and the group's active nodes.
 *
 * A fault vector here is uint64_t faults[n_nodes], indexed by node index (topology.h), private and
 * shared already added.
 */
#pragma once

#include "policy/topology.h"

#define WEIGHT_MAX 1000

uint64_t weight_sum(const struct topology *t, const uint64_t *faults);

/*
 * 1000 * (faults[idx] + nearby score) / total; 0 when the total is 0.
 * @limit: BACKPLANE only counts nodes nearer than this distance; others ignore it. Use the distance
 * between source and destination, or t->max_distance.
 */
unsigned weight_of(const struct topology *t, const uint64_t *faults, unsigned idx, unsigned limit);
/* The same with @total = weight_sum(), for who has it already. */
unsigned weight_within(const struct topology *t, const uint64_t *faults, uint64_t total,
	unsigned idx, unsigned limit);

/*
 * The node with most faults, mapped to the nearest node with CPUs; first maximum wins. -1 if all
 * are 0. This is where the kernel would prefer an ungrouped task.
 */
int weight_preferred_task(const struct topology *t, const uint64_t *faults);

/* The same for a group: DIRECT as above, GLUELESS_MESH the CPU node with the largest weight,
 * BACKPLANE by halving the node set. -1 if all are 0. */
int weight_preferred_group(const struct topology *t, const uint64_t *faults);

/* Active nodes of a group: CPU nodes with cpu_faults * 3 > max. Writes ids into @ret. */
void weight_active_nodes(const struct topology *t, const uint64_t *cpu_faults, struct idset *ret);
