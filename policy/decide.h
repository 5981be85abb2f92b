/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The decision: (snapshot, settings, history, now) -> plan with reasons. Pure: no I/O, no clock, no
 * floating point. The only thing it writes besides the plan is the history's record of wishes.
 *
 * What it does today: VMs that fit one node, on direct, mesh and backplane topologies. A VM that
 * fits no single node is left alone, with that reason.
 */
#pragma once

#include "policy/reason.h"
#include "policy/settings.h"
#include "policy/snapshot.h"
#include "policy/trial.h"

/* What is remembered of a VM from tick to tick. Nodes are *ids* here: indexes may change. */
struct vm_history {
	char uuid[SNAPSHOT_UUID_LEN];
	pid_t pid;
	uint64_t start_ticks;
	bool seen; /* in the snapshot of this tick; entries that are not are dropped */

	int home;              /* node id, -1: none; with split set, the first vCPU's */
	bool split;            /* vCPUs have homes of their own (no numa_group) */
	uint64_t wish;         /* key of the placement wished for, 0: none */
	unsigned wish_windows; /* how many windows in a row */
	int wish_node;         /* node id of the last wish, -1: none yet; wins among equals */
	uint64_t changed_ns;   /* last change of home or start of a pull; 0: never */
	unsigned home_changes;
	unsigned vcpu_moves;
	unsigned pulls;
	bool moving; /* its memory is on the way: nothing else is decided */
	struct trial trial;
	bool left_alone; /* somebody changed what we had set: hands off until told otherwise */
	char left_alone_why[SNAPSHOT_TEXT_MAX];
};

struct history {
	unsigned n_vms;
	struct vm_history *vm; /* own */
};

void history_clear(struct history *h);
/* The entry of this VM, made if there is none; NULL: out of memory. Pointers are valid until the
 * next call. */
struct vm_history *history_get(struct history *h, const struct snap_vm *vm);
/* The same by UUID alone, or NULL. */
struct vm_history *history_find(struct history *h, const char *uuid);

enum plan_kind {
	PLAN_HOLD,
	PLAN_PIN,    /* vCPUs go to their memory */
	PLAN_PULL,   /* memory comes to where the vCPUs are; they are pinned there */
	PLAN_REHOME, /* both */
	PLAN_SWAP,   /* two VMs change places, each to where it is better off */
};
const char *plan_kind_name(enum plan_kind k);

/* What was decided for one VM, in every tick. */
struct vm_plan {
	enum plan_kind kind;
	bool due;    /* to be done now; false with a kind other than HOLD: still a wish */
	int target;  /* node index; with split the first vCPU's; -1 for HOLD */
	int partner; /* PLAN_SWAP: index of the other VM, which is due if and only if this one is;
			-1 */
	bool split;
	int *vcpu_target;    /* [n_vcpus] node index, -1: leave; own; NULL unless split */
	uint64_t move_bytes; /* memory to bring to target, at most */
	int now;             /* weight of the places it runs on, permille; -1 unknown */
	int then;            /* what it would become */
	bool grouped;
	bool blind;  /* decided by where pages lie, without fault data */
	bool anchor; /* it is well placed, and is to be kept there: it has wandered off before */
	bool judged; /* in this tick it was seen what came of the last change: history's trial */
	struct reason reason;
};

struct plan {
	uint64_t snapshot_seq;
	unsigned n_vms;
	struct vm_plan *vm; /* [n_vms], parallel to snapshot.vm; own */
	unsigned *order;    /* indexes of the VMs that are due, best first; own */
	unsigned n_due;
};
void plan_clear(struct plan *p);
#define _cleanup_plan_ _cleanup_(plan_clear)

/*
 * @history: wishes are updated, and entries of VMs that are gone are dropped; homes are not
 * touched: decide_commit() does that when an action is handed out.
 * Returns 0 or -ENOMEM (then *ret_plan is empty).
 */
int decide(const struct snapshot *s, const struct settings *set, struct history *history,
	struct plan *ret_plan);

/* Notes in the history that @vm's action was handed out at @now_ns. */
void decide_commit(struct history *history, const struct snapshot *s, unsigned vm,
	const struct vm_plan *p, uint64_t now_ns);

/* The CPUs of node @target that @vm may use. */
void decide_target_cpus(
	const struct snapshot *s, const struct snap_vm *vm, unsigned target, struct idset *ret);
