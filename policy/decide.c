/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Theory of operation.
 *
 * Every VM is first *weighed* (candidate.c): what would each node be worth as its home, and what is
 * the present placement worth? Then the plan is made greedily: of all VMs take the one with the
 * largest gain, let it use up CPU room and memory headroom, and weigh the rest against what is
 * left. So two VMs never get promised the same room, and the order of VMs in the snapshot does not
 * matter.
 *
 * A candidate that passes all gates is only a *wish* until it has been the same for some windows in
 * a row; wishes use up room too, so that the next tick, with the same input, wishes the same.
 */
#include "policy/decide.h"

#include <errno.h>
#include <string.h>

#include "policy/candidate.h"
#include "policy/swap.h"

static const char *const kind_names[] = {
	[PLAN_HOLD] = "hold",
	[PLAN_PIN] = "pin",
	[PLAN_PULL] = "pull",
	[PLAN_REHOME] = "rehome",
	[PLAN_SWAP] = "swap",
};

const char *plan_kind_name(enum plan_kind k)
{
	return kind_names[k];
}

void plan_clear(struct plan *p)
{
	for (unsigned i = 0; i < p->n_vms; i++)
		free(p->vm[i].vcpu_target);
	free(p->vm);
	free(p->order);
	memset(p, 0, sizeof(*p));
}

/* Reasons to leave a VM alone that need no weighing. True: hold. */
static bool hands_off(const struct snap_vm *vm, const struct vm_history *h, struct vm_plan *p)
{
	struct reason *r = &p->reason;

	if (!reason_gate(r, "vm-readable", "", vm->problem[0] ? 1 : 0, 0, !vm->problem[0])) {
		reason_say(r, "left alone: %s", vm->problem);
		return true;
	}
	if (!reason_gate(r, "operator-pin", "", vm->foreign_pin, 0, !vm->foreign_pin)) {
		reason_say(r, "left alone: %s", vm->foreign_pin_why);
		return true;
	}
	if (!reason_gate(r, "ours", "", h->left_alone, 0, !h->left_alone)) {
		reason_say(r, "left alone: %s", h->left_alone_why);
		return true;
	}
	if (!reason_gate(
		    r, "condition", "", vm->condition, VM_RUNNING, vm->condition == VM_RUNNING)) {
		reason_say(r, vm->condition == VM_PAUSED
				      ? "waiting: the VM is paused"
				      : "waiting: it is migrating or being saved");
		return true;
	}
	if (!reason_gate(r, "in-flight", "", h->moving, 0, !h->moving)) {
		reason_say(r, "memory is being moved to node %d", h->home);
		return true;
	}
	return false;
}

static uint64_t wish_key(
	const struct snapshot *s, const struct snap_vm *vm, const struct vm_plan *p)
{
	uint64_t key = UINT64_C(14695981039346656037);

	for (unsigned i = 0; i < (p->split ? vm->n_vcpus : 1); i++) {
		int n = p->split ? p->vcpu_target[i] : p->target;

		key = (key ^ (n < 0 ? UINT64_C(0xffff) : s->topology.node[n].id)) *
		      UINT64_C(1099511628211);
	}
	return (key ^ (p->split ? 2 : 1)) | 1;
}

/* Persistence and cooldown: is the wish of @p due? Says why not. */
static void settle_wish(const struct snapshot *s, const struct settings *set,
	const struct snap_vm *vm, struct vm_history *h, struct vm_plan *p)
{
	uint64_t key = wish_key(s, vm, p);
	unsigned id = s->topology.node[p->target].id;
	uint64_t since = h->changed_ns ? s->time_ns - h->changed_ns : 0;
	uint64_t cooldown = set->cooldown_ns * trial_bar(&h->trial);
	bool cool, persistent;

	h->wish_windows = h->wish == key ? h->wish_windows + 1 : 1;
	h->wish = key;
	h->wish_node = (int)id;
	persistent = reason_gate(&p->reason, "persistence", "windows", h->wish_windows,
		set->persistence_windows, h->wish_windows >= set->persistence_windows);
	cool = reason_gate(&p->reason, "cooldown", "ms", (int64_t)(since / 1000000),
		(int64_t)(cooldown / 1000000), !h->changed_ns || since >= cooldown);
	p->due = persistent && cool;
	if (p->anchor)
		reason_say(&p->reason,
			persistent && cool ? "keep on node %u, where it is well placed (%d "
					     "permille): it has wandered off before"
					   : "well placed on node %u (%d permille), but has "
					     "wandered off before: to be kept there",
			id, p->now);
	else if (!persistent)
		reason_say(&p->reason, "watching: wants %s%u (%d -> %d permille), window %u of %u",
			p->split ? "split, vCPU 0 to node " : "node ", id, p->now, p->then,
			h->wish_windows, set->persistence_windows);
	else if (!cool)
		reason_say(&p->reason, "cooling down %us: then %s to node %u (%d -> %d permille)",
			(unsigned)((cooldown - since + 999999999) / 1000000000),
			plan_kind_name(p->kind), id, p->now, p->then);
	else
		reason_say(&p->reason, "%s to node %u (%d -> %d permille)", plan_kind_name(p->kind),
			id, p->now, p->then);
}

/* By gain, then by UUID, so that the order in which VMs are listed does not matter. */
static bool before(const struct candidate_vm *a, const struct candidate_vm *b)
{
	return a->gain != b->gain ? a->gain > b->gain : strcmp(a->vm->uuid, b->vm->uuid) < 0;
}

/* Index of the open VM that comes first; -1: none is left. */
static int best_open(const struct candidate_room *room, struct candidate_vm *cands, unsigned n)
{
	int best = -1;

	for (unsigned i = 0; i < n; i++) {
		if (!cands[i].open)
			continue;
		candidate_choose(room, &cands[i]);
		if (best < 0 || before(&cands[i], &cands[best]))
			best = (int)i;
	}
	return best;
}

static int hand_out(
	const struct candidate_room *room, const struct candidate_vm *c, struct vm_plan *p)
{
	p->kind = c->kind;
	p->target = c->target;
	p->then = (int)(c->now + c->gain);
	p->move_bytes = c->move_bytes;
	p->split = c->split;
	p->anchor = c->anchor;
	if (!c->split)
		return 0;
	p->vcpu_target = calloc(c->vm->n_vcpus, sizeof(int));
	if (!p->vcpu_target)
		return -ENOMEM;
	for (unsigned i = 0; i < c->vm->n_vcpus; i++)
		p->vcpu_target[i] = candidate_task_target(room, c, i);
	return 0;
}

/* The best exchange of two VMs. Returns 1 if there was one, 0, or -ENOMEM. */
static int plan_swap(struct candidate_room *room, struct history *history,
	struct candidate_vm *cands, struct plan *plan)
{
	const struct snapshot *s = room->s;
	unsigned pair[2];
	bool due = true;
	int r;

	r = swap_find(room, cands, s->n_vms, pair);
	if (r <= 0)
		return r;
	for (unsigned k = 0; k < 2; k++) {
		struct candidate_vm *c = &cands[pair[k]];
		struct vm_plan *p = &plan->vm[pair[k]];

		c->open = false;
		candidate_explain(room, c, &p->reason);
		hand_out(room, c, p);
		p->partner = (int)pair[1 - k];
		candidate_room_take(room, c);
		settle_wish(s, room->set, c->vm, history_get(history, c->vm), p);
		due &= p->due;
	}
	for (unsigned k = 0; k < 2; k++) {
		struct vm_plan *p = &plan->vm[pair[k]];
		const char *other = s->vm[pair[1 - k]].name;

		if (due)
			reason_say(&p->reason,
				"swap with VM '%.60s', to node %u (%d -> %d permille)", other,
				s->topology.node[p->target].id, p->now, p->then);
		else if (p->due)
			reason_say(&p->reason,
				"waiting to swap with VM '%.60s', which is not ready", other);
		p->due = due;
		if (due)
			plan->order[plan->n_due++] = pair[k];
	}
	return 1;
}

static void hold(struct candidate_room *room, struct vm_history *h, struct candidate_vm *c,
	struct vm_plan *p)
{
	c->open = false;
	candidate_explain(room, c, &p->reason);
	h->wish = 0;
	h->wish_windows = 0;
}

/* The best of all single moves. Returns 1 if there was one, 0, or -ENOMEM. */
static int plan_one(struct candidate_room *room, struct history *history,
	struct candidate_vm *cands, struct plan *plan)
{
	const struct snapshot *s = room->s;
	int i = best_open(room, cands, s->n_vms);
	struct candidate_vm *c = i < 0 ? NULL : &cands[i];

	if (!c || c->kind == PLAN_HOLD)
		return 0;
	c->open = false;
	candidate_explain(room, c, &plan->vm[i].reason);
	if (hand_out(room, c, &plan->vm[i]) < 0)
		return -ENOMEM;
	candidate_room_take(room, c);
	settle_wish(s, room->set, c->vm, history_get(history, c->vm), &plan->vm[i]);
	if (plan->vm[i].due)
		plan->order[plan->n_due++] = (unsigned)i;
	return 1;
}

static int plan_greedy(const struct snapshot *s, const struct settings *set,
	struct history *history, struct candidate_vm *cands, struct plan *plan)
{
	struct candidate_room room;
	int r;

	candidate_room_init(&room, s, set);
	do {
		r = plan_one(&room, history, cands, plan);
		if (r == 0) /* as things are nobody goes by itself: two can still change places */
			r = plan_swap(&room, history, cands, plan);
	} while (r > 0);
	for (unsigned i = 0; i < s->n_vms && r == 0; i++)
		if (cands[i].open)
			hold(&room, history_get(history, cands[i].vm), &cands[i], &plan->vm[i]);
	return r;
}

static int prepare(const struct snapshot *s, const struct settings *set, struct history *history,
	struct candidate_vm *cands, struct plan *plan)
{
	for (unsigned i = 0; i < s->n_vms; i++) {
		struct vm_plan *p = &plan->vm[i];
		struct vm_history *h = history_get(history, &s->vm[i]);

		if (!h)
			return -ENOMEM;
		h->seen = true;
		p->target = -1;
		p->partner = -1;
		candidate_weigh(s, set, &s->vm[i], h, &cands[i]);
		p->now = cands[i].known ? (int)cands[i].now : -1;
		p->then = p->now;
		p->grouped = cands[i].grouped;
		p->blind = cands[i].blind;
		if (h->moving)
			trial_wait(&h->trial, &s->vm[i], s->time_ns);
		else if (cands[i].known && !cands[i].blind)
			p->judged = trial_judge(
				&h->trial, set, &s->vm[i], (int)cands[i].now, s->time_ns);
		cands[i].bar = trial_bar(&h->trial);
		if (hands_off(&s->vm[i], h, p)) {
			cands[i].open = false;
			h->wish = 0;
			h->wish_windows = 0;
		} else if (!cands[i].open) {
			candidate_explain(NULL, &cands[i], &p->reason);
			h->wish = 0;
			h->wish_windows = 0;
		}
	}
	return 0;
}

static void drop_gone(struct history *h)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < h->n_vms; i++)
		if (h->vm[i].seen) {
			h->vm[kept] = h->vm[i];
			h->vm[kept++].seen = false;
		}
	h->n_vms = kept;
}

int decide(const struct snapshot *s, const struct settings *set, struct history *history,
	struct plan *ret_plan)
{
	_cleanup_free_ struct candidate_vm *cands = NULL;
	_cleanup_plan_ struct plan plan = {.snapshot_seq = s->seq};
	size_t n = s->n_vms ? s->n_vms : 1;
	int r;

	memset(ret_plan, 0, sizeof(*ret_plan));
	cands = calloc(n, sizeof(*cands));
	plan.vm = calloc(n, sizeof(*plan.vm));
	plan.order = calloc(n, sizeof(*plan.order));
	if (!cands || !plan.vm || !plan.order)
		return -ENOMEM;
	plan.n_vms = s->n_vms;
	r = prepare(s, set, history, cands, &plan);
	if (r >= 0)
		r = plan_greedy(s, set, history, cands, &plan);
	if (r < 0)
		return r;
	drop_gone(history);
	*ret_plan = plan;
	memset(&plan, 0, sizeof(plan));
	return 0;
}

static unsigned count_moved_vcpus(const struct snap_vm *vm, const struct vm_plan *p)
{
	unsigned n = 0;

	for (unsigned i = 0; i < vm->n_vcpus; i++) {
		int to = p->split ? p->vcpu_target[i] : p->target;

		n += vm->vcpu[i].tid && to >= 0 && vm->vcpu[i].node != to;
	}
	return n;
}

void decide_commit(struct history *history, const struct snapshot *s, unsigned vm,
	const struct vm_plan *p, uint64_t now_ns)
{
	struct vm_history *h = history_get(history, &s->vm[vm]);
	int id;

	if (!h || p->kind == PLAN_HOLD)
		return;
	id = (int)s->topology.node[p->target].id;
	if (p->kind == PLAN_PULL)
		h->pulls++;
	else if (h->home != id || h->split != p->split)
		h->home_changes++;
	h->vcpu_moves += count_moved_vcpus(&s->vm[vm], p);
	h->home = id;
	h->split = p->split;
	h->changed_ns = now_ns;
	h->moving = p->move_bytes > 0;
	/* what was decided by pages cannot be judged by faults, and staying promises nothing */
	trial_begin(&h->trial, &s->vm[vm], p->blind || p->anchor ? -1 : p->now, p->then, now_ns);
	h->wish = 0;
	h->wish_windows = 0;
}

void decide_target_cpus(
	const struct snapshot *s, const struct snap_vm *vm, unsigned target, struct idset *ret)
{
	*ret = s->topology.node[target].cpus;
	idset_and(ret, &vm->allowed_cpus);
}
