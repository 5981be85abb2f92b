/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What each node would be worth as the home of one VM, and which one to choose while room lasts.
 * Used by decide.c only.
 */
#pragma once

#include "policy/decide.h"

#define WELL_PLACED 900 /* permille */
/* A node's CPUs may be so busy, in permille, if each vCPU has one: others' little jobs fit in. */
#define CANDIDATE_FULL 1100

/* What is left while a plan is made: starts as the snapshot's, earlier actions use it up. */
struct candidate_room {
	const struct snapshot *s;
	const struct settings *set;
	int64_t busy[TOPOLOGY_NODES_MAX];       /* permille, 1000 per CPU */
	int64_t free_bytes[TOPOLOGY_NODES_MAX]; /* MemFree less the reserve; may be below 0 */
};

struct candidate_vm {
	const struct snap_vm *vm;
	const struct vm_history *h;
	int home;              /* node index of its home, -1 */
	node_mask homes;       /* of all of it */
	int wished;            /* node index of its last wish, -1 */
	bool open;             /* still to be placed in this plan */
	bool known;            /* now is valid */
	bool grouped;          /* placed by group faults */
	bool blind;            /* by where pages lie */
	bool wide;             /* fits no single node */
	bool spread;           /* wide, or of several cells: placed by spread.h */
	unsigned bar;          /* so many times the usual improvement is asked (trial.h) */
	enum why why;          /* why not open */
	unsigned asked, there; /* WHY_TOO_WIDE: vCPUs and CPUs */

	/* permille, by node index */
	long weight[TOPOLOGY_NODES_MAX];
	long share[TOPOLOGY_NODES_MAX]; /* of its guest RAM */
	uint64_t total_bytes;
	uint64_t faults; /* counted ones, of all running vCPUs */
	unsigned n_order;
	unsigned order[TOPOLOGY_NODES_MAX];   /* nodes that may be its home, best memory first */
	unsigned cpus_on[TOPOLOGY_NODES_MAX]; /* CPUs that it may use */
	unsigned running;                     /* vCPUs */
	unsigned demand;                      /* permille of a CPU */
	unsigned demand_on[TOPOLOGY_NODES_MAX];
	long now;

	/* it has no home, has wandered off before, and is well placed now: to be kept there */
	bool anchor;

	/* without a group: each vCPU's own choice */
	bool split;
	long split_gain;

	/* the choice of candidate_choose(): */
	enum plan_kind kind;
	unsigned target;
	node_mask homes_then; /* nodes of the home it would have */
	int *vcpu_target;     /* [n_vcpus]; filled for spread ones when chosen, else by decide.c */
	long gain;
	uint64_t move_bytes;
	uint64_t gets_bytes[TOPOLOGY_NODES_MAX]; /* wide: what each node of the home takes of what
						    lies outside */
	/* the last node that failed a gate, for the explanation; node -1: none */
	struct gate refused;
};

void candidate_room_init(
	struct candidate_room *room, const struct snapshot *s, const struct settings *set);
/* Uses up what the choice of @c needs; the pulls of a spread one are taken by their receiver. */
void candidate_room_take(struct candidate_room *room, const struct candidate_vm *c);

/* A VM's CPU demand from node to node; either may be -1. */
void candidate_room_shift(struct candidate_room *room, int from, int to, unsigned demand);
/* How many CPUs are left on node @n by others that keep it busy for @others permille. */
unsigned candidate_slots(const struct candidate_room *room, unsigned n, int64_t others);
/* Has it spare capacity when it is so busy? kernel numa_classify(). */
bool candidate_has_spare(const struct candidate_room *room, unsigned n, int64_t busy);

/* Fills @c for the VM; c->open says whether there is anything to choose. */
void candidate_weigh(const struct snapshot *s, const struct settings *set, const struct snap_vm *vm,
	const struct vm_history *h, struct candidate_vm *c);
/*
 * Chooses kind, target, gain for the room that is left. kind is PLAN_HOLD if nothing pays. Not for
 * spread ones.
 */
void candidate_choose(const struct candidate_room *room, struct candidate_vm *c);

/* The parts of that choice, for one node. */
/* Permille; *ret_bring: its memory comes along. */
long candidate_gain(
	const struct candidate_room *room, struct candidate_vm *c, unsigned n, bool *ret_bring);
long candidate_least_gain(const struct candidate_room *room, const struct candidate_vm *c, int n);
long candidate_worth_of_staying(const struct candidate_room *room, const struct candidate_vm *c);
/* Is @gain enough, after the best one so far (0: none) was @best? By settings.rules. */
bool candidate_pays(const struct candidate_room *room, const struct candidate_vm *c, unsigned n,
	long gain, long best);
/* May @bytes of its guest RAM come to the node, as far as policy and kind of memory go? */
bool candidate_may_bring(
	const struct candidate_room *room, const struct candidate_vm *c, unsigned n);
/* Notes the first gate that fails. */
void candidate_refuse(const struct candidate_room *room, struct candidate_vm *c, unsigned node,
	const struct gate *gate);

/* The task faults of one vCPU without those that are old news; returns their sum. [n_nodes] */
uint64_t candidate_task_faults(const struct snapshot *s, const struct candidate_vm *c,
	const struct snap_vcpu *v, uint64_t *ret);
/* Without a group: the node index this vCPU should run on, or -1 (it did not run, or has no
 * faults). */
int candidate_task_target(
	const struct candidate_room *room, const struct candidate_vm *c, unsigned vcpu);
/* Appends the gates and the verdict. @room is NULL if the VM was not open at all. */
void candidate_explain(
	const struct candidate_room *room, const struct candidate_vm *c, struct reason *r);
