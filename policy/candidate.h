/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What each node would be worth as the home of one VM, and which one to choose while room lasts.
 * Used by decide.c only.
 */
#pragma once

#include "policy/decide.h"

/* What is left while a plan is made: starts as the snapshot's, earlier actions use it up. */
struct candidate_room {
	const struct snapshot *s;
	const struct settings *set;
	int64_t busy[TOPOLOGY_NODES_MAX];       /* permille, 1000 per CPU */
	int64_t free_bytes[TOPOLOGY_NODES_MAX]; /* MemFree less the reserve; may be below 0 */
};

struct candidate_vm {
	const struct snap_vm *vm;
	int home;                  /* node index of its home, -1 */
	int wished;                /* node index of its last wish, -1 */
	bool open;                 /* still to be placed in this plan */
	bool known;                /* now is valid */
	bool grouped;              /* placed by group faults */
	bool blind;                /* by where pages lie */
	unsigned bar;              /* so many times the usual improvement is asked (trial.h) */
	char why[REASON_TEXT_MAX]; /* why not open */

	/* permille, by node index */
	long weight[TOPOLOGY_NODES_MAX];
	long share[TOPOLOGY_NODES_MAX]; /* of its guest RAM */
	uint64_t total_bytes;
	unsigned n_order;
	unsigned order[TOPOLOGY_NODES_MAX]; /* nodes that may be its home, best memory first */
	unsigned demand;                    /* permille of a CPU */
	unsigned demand_on[TOPOLOGY_NODES_MAX];
	long now;

	/* it has no home, has wandered off before, and is well placed on one node now: to be kept
	 * there */
	bool anchor;

	/* without a group: each vCPU's own choice */
	bool split;
	long split_gain;

	/* the choice of candidate_choose(): */
	enum plan_kind kind;
	unsigned target;
	long gain;
	uint64_t move_bytes;
	/* the last node that failed a gate, for the explanation; -1 none */
	int refused_node;
	const char *refused_gate;
	int64_t refused_value, refused_threshold;
	const char *refused_unit;
};

void candidate_room_init(
	struct candidate_room *room, const struct snapshot *s, const struct settings *set);
/* Uses up what the choice of @c needs. */
void candidate_room_take(struct candidate_room *room, const struct candidate_vm *c);

/* Fills @c for the VM; c->open says whether there is anything to choose. */
void candidate_weigh(const struct snapshot *s, const struct settings *set, const struct snap_vm *vm,
	const struct vm_history *h, struct candidate_vm *c);
/* Chooses kind, target, gain for the room that is left. kind is PLAN_HOLD if nothing pays. */
void candidate_choose(const struct candidate_room *room, struct candidate_vm *c);
/* The parts of that choice, for one node. */
/* Has it as many CPUs for the VM as the VM runs vCPUs? */
bool candidate_has_cpus(
	const struct candidate_room *room, const struct candidate_vm *c, unsigned n);
/* Permille; *ret_bring: its memory comes along. */
long candidate_gain(
	const struct candidate_room *room, struct candidate_vm *c, unsigned n, bool *ret_bring);
long candidate_least_gain(const struct candidate_room *room, const struct candidate_vm *c, int n);
long candidate_worth_of_staying(const struct candidate_room *room, const struct candidate_vm *c);
/* Without a group: the node index this vCPU should run on, or -1 (it did not run, or has no
 * faults). */
int candidate_task_target(
	const struct candidate_room *room, const struct candidate_vm *c, unsigned vcpu);
/* Appends the gates and the sentence. @room is NULL if the VM was not open at all. */
void candidate_explain(
	const struct candidate_room *room, const struct candidate_vm *c, struct reason *r);
