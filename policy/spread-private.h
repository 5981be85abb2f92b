/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The inside of spreading, shared by spread*.c.
 */
#pragma once

#include "policy/spread.h"

#define PPM 1000000                  /* parts per million: a wide VM may have thousands of vCPUs */
#define MAX_PULLS SNAPSHOT_CELLS_MAX /* and not more nodes than that */

struct part {
	unsigned first, n_vcpus; /* of a cell: how many run; first: index of the first of them */
	int cell;                /* index, -1: a vCPU */
	int node;                /* where it is put; -1 nowhere */
	int present;             /* where it is, -1: on several */
	long mass_ppm;           /* its part of the VM's faults */
	long regret;
};

struct spread_space {
	struct part *part;
	unsigned *order;
	long *value; /* [n_parts * n_nodes] permille of weight, as it would become */
	int *best;   /* [n_parts] nodes of the best set so far */
	size_t parts_room;
	size_t values_room;
	unsigned n_parts, n_nodes;
	int slots[TOPOLOGY_NODES_MAX];
	struct plan_pull pull[MAX_PULLS];
};

__extension__ typedef unsigned __int128 wide;

/* Nodes that would be the home of a wide VM. */
struct set {
	node_mask nodes;
	uint64_t outside_bytes;
	uint64_t gets[TOPOLOGY_NODES_MAX]; /* of them, each node of the set */
	bool pulls;                        /* there is room for all of what is outside */
};

/* spread-parts.c: what the VM consists of */

/* Makes room; *space is made if NULL. -ENOMEM. */
int spread_grow(struct spread_space **space, unsigned n_parts, unsigned n_nodes);
/* sp->slots: CPUs that others leave to it; on a host where that is not enough, its share of all. */
void spread_count_slots(
	const struct candidate_room *room, struct spread_space *sp, const struct candidate_vm *c);
bool spread_runs(const struct snap_vcpu *v);
/* sp->part, without values; returns how many. */
unsigned spread_take_parts(struct spread_space *sp, const struct candidate_vm *c);
/* The faults of one part (by where pages lie if there are none to go by) and their sum; sets its
 * mass. [n_nodes] */
uint64_t spread_faults(
	const struct snapshot *s, const struct candidate_vm *c, struct part *p, uint64_t *ret);
/* Permille of weight on each node: of a cell, and of a vCPU of a wide VM once the memory outside of
 * the set has come in. [n_nodes] */
void spread_weigh_cell(const struct candidate_room *room, const struct candidate_vm *c,
	const struct part *p, const uint64_t *faults, uint64_t sum, long *ret);
void spread_weigh_vcpu(const struct candidate_room *room, uint64_t *faults, uint64_t sum,
	const struct set *set, long *ret);
/* Room for the values of a part. [n_nodes] */
long *spread_value(struct spread_space *sp, unsigned part);

/* spread-give.c: who gets which node */

/* Gives all parts a node of the set (part.node). False: they do not fit. */
bool spread_give_out(const struct candidate_room *room, struct spread_space *sp, node_mask set);
/* Permille, of where the parts are put, nearness of cells included. */
long spread_worth(const struct candidate_room *room, const struct spread_space *sp);
/* What nearness is worth as things are, permille. */
long spread_nearness_now(const struct candidate_room *room, struct spread_space *sp);
