/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The decision: (snapshot, settings, history, now) -> plan with reasons. Pure: no I/O, no clock, no
 * floating point. The only thing it writes besides the plan is the history's record of wishes.
 *
 * A VM that fits one node gets one (candidate.h), or changes places with another (swap.h); one that
 * does not, or whose guest has NUMA cells, is spread over several (spread.h).
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

	int home;           /* node id, -1: none; with split set, the first of several */
	struct idset homes; /* node ids of all of it */
	bool split;         /* vCPUs or cells have homes of their own */
	bool cleared;       /* it was given back what it had before us (ROLLBACK to no home) */
	int home_before;    /* where the last change came from: node id, -1: no home */
	struct idset homes_before;
	uint64_t wish;         /* key of the placement wished for, 0: none */
	unsigned wish_windows; /* how many windows in a row */
	int wish_node;         /* node id of the last wish, -1: none yet; wins among equals */
	uint64_t changed_ns;   /* last change of home or start of a pull; 0: never */
	unsigned home_changes;
	unsigned vcpu_moves;
	unsigned pulls;
	bool moving; /* its memory is on the way: nothing else is decided */
	struct trial trial;
	bool undo;       /* the last change made it worse: to be rolled back */
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
/* The same; @hint: where it is likely to be, such as its index in the snapshot. */
struct vm_history *history_get_at(struct history *h, const struct snap_vm *vm, unsigned hint);
/* The same by UUID alone, or NULL. */
struct vm_history *history_find(struct history *h, const char *uuid);

enum plan_kind {
	PLAN_HOLD,
	PLAN_PIN,    /* vCPUs go to their memory */
	PLAN_PULL,   /* memory comes to where the vCPUs are; they are pinned there */
	PLAN_REHOME, /* both */
	PLAN_SWAP,   /* two VMs change places, each to where it is better off */
	PLAN_SPREAD, /* over several nodes: a VM that is wider than one, or has cells of its own */
	PLAN_ROLLBACK, /* the last change made it worse: back to where it was before */
};
const char *plan_kind_name(enum plan_kind k);

/*
 * Memory to bring: pages (of one guest cell, or of the whole VM) that are on none of the nodes in
 * @stay go to @target, up to @bytes of them.
 */
struct plan_pull {
	int cell;        /* index in snap_vm.cell; -1: all guest RAM */
	unsigned target; /* node index */
	node_mask stay;
	uint64_t bytes;
};

/* What was decided for one VM, in every tick. */
struct vm_plan {
	enum plan_kind kind;
	bool due;   /* to be done now; false with a kind other than HOLD: still a wish */
	int target; /* node index of the home, the first one of several; -1: HOLD, or ROLLBACK to no
		       home: the masks that the VM had before us */
	int partner; /* PLAN_SWAP: index of the other VM, which is due if and only if this one is;
			-1 */
	bool split;  /* its vCPUs have homes of their own, or its cells have */
	node_mask home;               /* all nodes of the home; 0 for HOLD */
	int *vcpu_target;             /* [n_vcpus] node index, -1: leave as it is; in plan.target */
	unsigned first_pull, n_pulls; /* in plan.pull; in this order */
	uint64_t move_bytes;          /* sum of the pulls */
	int now;                      /* weight of the places it runs on, permille; -1 unknown */
	int then;                     /* what it would become */
	bool grouped;
	bool wide;   /* fits no single node */
	bool blind;  /* decided by where pages lie, without fault data */
	bool anchor; /* it is well placed, and is to be kept there: it has wandered off before */
	bool judged; /* in this tick it was seen what came of the last change: history's trial */
	struct reason reason;
};

/* May be used again and again: what it owns only grows. */
struct plan {
	uint64_t snapshot_seq;
	unsigned n_vms;
	struct vm_plan *vm; /* [n_vms], parallel to snapshot.vm; own */
	unsigned *order;    /* indexes of the VMs that are due, best first; own */
	unsigned n_due;
	int *target;            /* room for vcpu_target; own */
	struct plan_pull *pull; /* [n_pulls]; own */
	unsigned n_pulls;
	size_t vms_room, targets_room, pulls_room;
};
void plan_clear(struct plan *p);
#define _cleanup_plan_ _cleanup_(plan_clear)

/* What deciding needs besides; kept from tick to tick so that a steady tick allocates nothing. */
struct decide_space {
	struct candidate_vm *cand; /* own */
	size_t cands_room;
	unsigned *heap;         /* own */
	struct swap_half *half; /* own */
	size_t halves_room;
	struct spread_space *spread; /* own */
};
void decide_space_clear(struct decide_space *space);

/*
 * @history: wishes are updated, and entries of VMs that are gone are dropped; homes are not
 * touched: decide_commit() does that when an action is handed out.
 * @space: zeroed before the first call.
 * @plan: zeroed, or one that was decided before: it is overwritten.
 * Returns 0 or -ENOMEM (then *plan has no VMs).
 */
int decide(const struct snapshot *s, const struct settings *set, struct history *history,
	struct decide_space *space, struct plan *plan);

/* Notes in the history that @vm's action was handed out at @now_ns. */
void decide_commit(struct history *history, const struct snapshot *s, unsigned vm,
	const struct vm_plan *p, uint64_t now_ns);

/* The CPUs of node @target that @vm may use. */
void decide_target_cpus(
	const struct snapshot *s, const struct snap_vm *vm, unsigned target, struct idset *ret);
