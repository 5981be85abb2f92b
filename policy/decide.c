/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Theory of operation.
 *
 * Every VM is first *weighed* (candidate-weigh.c): what would each node be worth as its home, and
 * what is the present placement worth? Then the plan is made greedily: of all VMs take the one with
 * the largest gain, let it use up CPU room and memory headroom, and weigh the next against what is
 * left. So two VMs never get promised the same room, and the order of VMs in the snapshot does not
 * matter. What goes makes room for others: when nobody goes any more as things are, those that stay
 * are asked again, until a round changes nothing; then pairs may change places.
 *
 * A candidate that passes all gates is only a *wish* until it has been the same for some windows in
 * a row (wish.c); wishes use up room too, so that the next tick, with the same input, wishes the
 * same.
 */
#include "policy/decide.h"

#include <errno.h>
#include <string.h>

#include "policy/spread.h"
#include "policy/swap.h"
#include "policy/wish.h"

static const char *const kind_names[] = {
	[PLAN_HOLD] = "hold",
	[PLAN_PIN] = "pin",
	[PLAN_PULL] = "pull",
	[PLAN_REHOME] = "rehome",
	[PLAN_SWAP] = "swap",
	[PLAN_SPREAD] = "spread",
	[PLAN_ROLLBACK] = "rollback",
};

const char *plan_kind_name(enum plan_kind k)
{
	return kind_names[k];
}

void plan_clear(struct plan *p)
{
	free(p->vm);
	free(p->order);
	free(p->target);
	free(p->pull);
	memset(p, 0, sizeof(*p));
}

void decide_space_clear(struct decide_space *space)
{
	free(space->cand);
	free(space->heap);
	free(space->half);
	spread_space_free(space->spread);
	memset(space, 0, sizeof(*space));
}

/* What the functions of one decision hand on to each other. */
struct deciding {
	const struct snapshot *s;
	const struct settings *set;
	struct history *history;
	struct decide_space *space;
	struct plan *plan;
	struct candidate_room room;
	unsigned moving; /* VMs whose memory is on the way, those of this plan among them */
};

static bool hands_off_gate(struct reason *r, const char *name, bool met, enum why why)
{
	if (!met)
		r->why = why;
	return !reason_gate(r, &(struct gate){.name = name,
				       .unit = "",
				       .source = "host",
				       .value = !met,
				       .node = -1,
				       .met = met});
}

/* Reasons to leave a VM alone that need no weighing. True: hold. */
static bool hands_off(const struct snap_vm *vm, const struct vm_history *h, struct reason *r)
{
	const char *detail = NULL;

	if (hands_off_gate(r, "vm-readable", !vm->problem[0], WHY_UNREADABLE))
		detail = vm->problem;
	else if (hands_off_gate(r, "operator-pin", !vm->foreign_pin, WHY_OPERATOR_PIN))
		detail = vm->foreign_pin_why;
	else if (hands_off_gate(r, "ours", !h->left_alone, WHY_LEFT_ALONE))
		detail = h->left_alone_why;
	else if (hands_off_gate(r, "condition", vm->condition == VM_RUNNING,
			 vm->condition == VM_PAUSED ? WHY_PAUSED : WHY_BUSY))
		return true;
	if (detail) {
		memcpy(r->detail, detail, SNAPSHOT_TEXT_MAX);
		return true;
	}
	if (!reason_gate(r, &(struct gate){.name = "in-flight",
				    .unit = "",
				    .source = "host",
				    .value = h->moving ? h->home : -1,
				    .threshold = -1,
				    .node = -1,
				    .met = !h->moving})) {
		r->why = WHY_MOVING;
		return true;
	}
	return false;
}

/* By gain, then by UUID, so that the order in which VMs are listed does not matter. */
static bool before(const struct candidate_vm *a, const struct candidate_vm *b)
{
	return a->gain != b->gain ? a->gain > b->gain : strcmp(a->vm->uuid, b->vm->uuid) < 0;
}

/* -- a heap of the open candidates that want something, the best one first */

static void sift_down(const struct candidate_vm *c, unsigned *heap, unsigned n, unsigned at)
{
	for (unsigned child = 2 * at + 1; child < n; child = 2 * at + 1) {
		unsigned top = heap[at];

		if (child + 1 < n && before(&c[heap[child + 1]], &c[heap[child]]))
			child++;
		if (!before(&c[heap[child]], &c[top]))
			return;
		heap[at] = heap[child];
		heap[child] = top;
		at = child;
	}
}

static int choose(struct deciding *d, struct candidate_vm *c)
{
	if (c->spread)
		return spread_choose(&d->room, &d->space->spread, c);
	candidate_choose(&d->room, c);
	return 0;
}

static void fill_targets(const struct candidate_room *room, const struct candidate_vm *c)
{
	for (unsigned i = 0; !c->spread && i < c->vm->n_vcpus; i++)
		c->vcpu_target[i] = c->split             ? candidate_task_target(room, c, i)
				    : c->vm->vcpu[i].tid ? (int)c->target
							 : -1;
}

static int room_for_pulls(struct plan *plan, size_t more)
{
	size_t want = plan->n_pulls + more;
	struct plan_pull *grown;

	if (want <= plan->pulls_room)
		return 0;
	want = MAX2(want, 2 * plan->pulls_room);
	grown = reallocarray(plan->pull, want, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	plan->pull = grown;
	plan->pulls_room = want;
	return 0;
}

/* Puts the choice into the plan and uses up its room. */
static int hand_out(struct deciding *d, struct candidate_vm *c, struct vm_plan *p)
{
	struct plan *plan = d->plan;

	if (room_for_pulls(plan, MAX2(c->vm->n_cells, d->s->topology.n_nodes)) < 0)
		return -ENOMEM;
	c->open = false;
	p->first_pull = plan->n_pulls;
	fill_targets(&d->room, c);
	candidate_room_take(&d->room, c);
	if (c->spread)
		p->n_pulls = spread_pulls(&d->room, c, &plan->pull[plan->n_pulls]);
	else if (c->move_bytes)
		plan->pull[plan->n_pulls + p->n_pulls++] = (struct plan_pull){
			.cell = -1,
			.target = c->target,
			.stay = NODE_BIT(c->target),
			.bytes = c->move_bytes,
		};
	p->move_bytes = 0;
	for (unsigned i = 0; i < p->n_pulls; i++)
		p->move_bytes += plan->pull[plan->n_pulls + i].bytes;
	plan->n_pulls += p->n_pulls;
	p->kind = c->kind;
	p->target = (int)c->target;
	p->home = c->homes_then;
	p->then = (int)(c->now + c->gain);
	p->split = c->homes_then != NODE_BIT(c->target);
	p->anchor = c->anchor;
	return 0;
}

static void set_due(struct deciding *d, unsigned vm)
{
	struct vm_plan *p = &d->plan->vm[vm];

	p->due = true;
	p->reason.why = WHY_READY;
	d->plan->order[d->plan->n_due++] = vm;
	d->moving += p->move_bytes > 0;
}

static int take_one(struct deciding *d, unsigned i)
{
	struct candidate_vm *c = &d->space->cand[i];
	struct vm_plan *p = &d->plan->vm[i];

	candidate_explain(&d->room, c, &p->reason);
	if (hand_out(d, c, p) < 0)
		return -ENOMEM;
	if (wish_settle(d->s, d->set, c->vm, history_get_at(d->history, c->vm, i), p, d->moving))
		set_due(d, i);
	return 0;
}

/* All single moves that pay as things are. Returns how many, or -ENOMEM. */
static int plan_round(struct deciding *d)
{
	struct candidate_vm *cands = d->space->cand;
	unsigned *heap = d->space->heap, n = 0;
	int taken = 0;

	for (unsigned i = 0; i < d->s->n_vms; i++) {
		if (!cands[i].open)
			continue;
		if (choose(d, &cands[i]) < 0)
			return -ENOMEM;
		if (cands[i].kind != PLAN_HOLD)
			heap[n++] = i;
	}
	for (unsigned i = n / 2; i > 0; i--)
		sift_down(cands, heap, n, i - 1);
	while (n) {
		struct candidate_vm *c = &cands[heap[0]];
		enum plan_kind kind = c->kind;
		node_mask homes = c->homes_then;
		long gain = c->gain;

		/* others have used up room since it chose */
		if (taken && choose(d, c) < 0)
			return -ENOMEM;
		if (c->kind == kind && c->gain == gain && c->homes_then == homes) {
			if (take_one(d, heap[0]) < 0)
				return -ENOMEM;
			taken++;
		}
		if (!c->open || c->kind == PLAN_HOLD)
			heap[0] = heap[--n];
		sift_down(cands, heap, n, 0);
	}
	return taken;
}

/* The best exchange of two VMs. Returns 1 if there was one, 0, or -ENOMEM. */
static int plan_swap(struct deciding *d)
{
	struct plan *plan = d->plan;
	unsigned pair[2];
	bool due = true;

	if (!swap_find(&d->room, d->space->cand, d->s->n_vms, d->space->half, pair))
		return 0;
	for (unsigned k = 0; k < 2; k++) {
		struct candidate_vm *c = &d->space->cand[pair[k]];
		struct vm_plan *p = &plan->vm[pair[k]];

		candidate_explain(&d->room, c, &p->reason);
		if (hand_out(d, c, p) < 0)
			return -ENOMEM;
		p->partner = (int)pair[1 - k];
		p->due = wish_settle(d->s, d->set, c->vm,
			history_get_at(d->history, c->vm, pair[k]), p, d->moving);
		due &= p->due;
	}
	for (unsigned k = 0; k < 2; k++) {
		struct vm_plan *p = &plan->vm[pair[k]];

		if (due)
			set_due(d, pair[k]);
		else if (p->due)
			p->reason.why = WHY_PARTNER;
		p->due = due;
	}
	return 1;
}

static int plan_all(struct deciding *d)
{
	int r;

	do {
		r = plan_round(d);
		if (r == 0) /* as things are nobody goes by itself: two can still change places */
			r = plan_swap(d);
	} while (r > 0);
	for (unsigned i = 0; i < d->s->n_vms && r == 0; i++) {
		struct candidate_vm *c = &d->space->cand[i];

		if (!c->open)
			continue;
		c->open = false;
		candidate_explain(&d->room, c, &d->plan->vm[i].reason);
		wish_forget(history_get_at(d->history, c->vm, i));
	}
	return r;
}

/* -- preparing */

static void plan_begin(struct vm_plan *p, const struct candidate_vm *c)
{
	p->kind = PLAN_HOLD;
	p->due = p->split = p->anchor = p->judged = false;
	p->target = p->partner = -1;
	p->home = 0;
	p->vcpu_target = c->vcpu_target;
	p->first_pull = p->n_pulls = 0;
	p->move_bytes = 0;
	p->now = p->then = c->known ? (int)c->now : -1;
	p->grouped = c->grouped;
	p->wide = c->wide;
	p->blind = c->blind;
	reason_begin(&p->reason);
}

static bool judge(struct deciding *d, const struct candidate_vm *c, struct vm_history *h)
{
	if (h->moving) {
		trial_wait(&h->trial, c->vm, d->s->time_ns);
		return false;
	}
	if (!c->known || c->blind ||
		!trial_judge(&h->trial, d->set, c->vm, (int)c->now, d->s->time_ns))
		return false;
	h->undo = d->set->rollback && trial_is_worse(&h->trial, d->set);
	return true;
}

/* The last change made it worse: it goes back to where it came from. */
static void plan_rollback(struct deciding *d, unsigned i, struct vm_history *h)
{
	struct candidate_vm *c = &d->space->cand[i];
	struct vm_plan *p = &d->plan->vm[i];
	int back = idset_count(&h->homes_before) == 1 && h->home_before >= 0
			   ? topology_index(&d->s->topology, (unsigned)h->home_before)
			   : -1;

	c->open = false;
	reason_gate(&p->reason, &(struct gate){.name = "worse",
					.unit = "permille",
					.source = settings_source(d->set, SETTING_IMPROVEMENT),
					.value = h->trial.before - h->trial.achieved,
					.threshold = d->set->improvement,
					.node = -1,
					.met = true});
	if (back >= 0 && c->cpus_on[back] < c->running)
		back = -1;
	p->kind = PLAN_ROLLBACK;
	p->target = back;
	p->home = back < 0 ? 0 : NODE_BIT(back);
	p->then = h->trial.before;
	for (unsigned k = 0; k < c->vm->n_vcpus; k++)
		p->vcpu_target[k] = c->vm->vcpu[k].tid ? back : -1;
	for (unsigned n = 0; back >= 0 && n < d->s->topology.n_nodes; n++)
		if ((int)n != back)
			candidate_room_shift(&d->room, (int)n, back, c->demand_on[n]);
	wish_forget(h);
	set_due(d, i);
}

static int prepare(struct deciding *d)
{
	int *target = d->plan->target;

	for (unsigned i = 0; i < d->s->n_vms; i++) {
		struct candidate_vm *c = &d->space->cand[i];
		struct vm_history *h = history_get_at(d->history, &d->s->vm[i], i);
		struct vm_plan *p = &d->plan->vm[i];

		if (!h)
			return -ENOMEM;
		h->seen = true;
		candidate_weigh(d->s, d->set, &d->s->vm[i], h, c);
		c->vcpu_target = target;
		target += d->s->vm[i].n_vcpus;
		plan_begin(p, c);
		p->judged = judge(d, c, h);
		c->bar = trial_bar(&h->trial);
		d->moving += h->moving;
		if (hands_off(&d->s->vm[i], h, &p->reason)) {
			c->open = false;
			wish_forget(h);
		} else if (h->undo) {
			plan_rollback(d, i, h);
		} else if (!c->open) {
			candidate_explain(NULL, c, &p->reason);
			wish_forget(h);
		}
	}
	return 0;
}

static void drop_gone(struct history *h)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < h->n_vms; i++) {
		if (!h->vm[i].seen)
			continue;
		if (kept != i)
			h->vm[kept] = h->vm[i];
		h->vm[kept++].seen = false;
	}
	h->n_vms = kept;
}

static int grow_space(struct decide_space *space, size_t vms, size_t nodes)
{
	size_t halves = vms * nodes;

	if (vms > space->cands_room) {
		free(space->cand);
		free(space->heap);
		space->cand = calloc(vms, sizeof(*space->cand));
		space->heap = calloc(vms, sizeof(*space->heap));
		space->cands_room = space->cand && space->heap ? vms : 0;
	}
	if (halves > space->halves_room) {
		free(space->half);
		space->half = calloc(halves, sizeof(*space->half));
		space->halves_room = space->half ? halves : 0;
	}
	return space->cands_room >= vms && space->halves_room >= halves ? 0 : -ENOMEM;
}

static int grow_plan(struct plan *p, const struct snapshot *s)
{
	size_t vms = s->n_vms ? s->n_vms : 1, targets = 1;

	for (unsigned i = 0; i < s->n_vms; i++)
		targets += s->vm[i].n_vcpus;
	if (vms > p->vms_room) {
		free(p->vm);
		free(p->order);
		p->vm = calloc(vms, sizeof(*p->vm));
		p->order = calloc(vms, sizeof(*p->order));
		p->vms_room = p->vm && p->order ? vms : 0;
	}
	if (targets > p->targets_room) {
		free(p->target);
		p->target = calloc(targets, sizeof(*p->target));
		p->targets_room = p->target ? targets : 0;
	}
	return p->vms_room >= vms && p->targets_room >= targets ? 0 : -ENOMEM;
}

int decide(const struct snapshot *s, const struct settings *set, struct history *history,
	struct decide_space *space, struct plan *plan)
{
	struct deciding d = {.s = s, .set = set, .history = history, .space = space, .plan = plan};
	int r;

	plan->n_vms = plan->n_due = plan->n_pulls = 0;
	plan->snapshot_seq = s->seq;
	r = grow_space(
		space, s->n_vms ? s->n_vms : 1, s->topology.n_nodes ? s->topology.n_nodes : 1);
	if (r == 0)
		r = grow_plan(plan, s);
	candidate_room_init(&d.room, s, set);
	if (r == 0)
		r = prepare(&d);
	if (r == 0)
		r = plan_all(&d);
	if (r < 0) {
		plan->n_due = 0;
		return r;
	}
	plan->n_vms = s->n_vms;
	drop_gone(history);
	return 0;
}

static unsigned count_moved_vcpus(const struct snap_vm *vm, const struct vm_plan *p)
{
	unsigned n = 0;

	for (unsigned i = 0; i < vm->n_vcpus; i++) {
		int to = p->vcpu_target[i];

		n += vm->vcpu[i].tid && to >= 0 && vm->vcpu[i].node != to;
	}
	return n;
}

static void set_homes(const struct snapshot *s, node_mask home, struct idset *ret)
{
	idset_clear(ret);
	topology_foreach (n, &s->topology) {
		if (home & NODE_BIT(n))
			idset_add(ret, s->topology.node[n].id);
	}
}

void decide_commit(struct history *history, const struct snapshot *s, unsigned vm,
	const struct vm_plan *p, uint64_t now_ns)
{
	struct vm_history *h = history_get(history, &s->vm[vm]);
	struct idset homes;
	int id;

	if (!h || p->kind == PLAN_HOLD)
		return;
	id = p->target < 0 ? -1 : (int)s->topology.node[p->target].id;
	set_homes(s, p->home, &homes);
	if (p->kind == PLAN_PULL)
		h->pulls++;
	else if (h->home != id || !idset_equal(&h->homes, &homes))
		h->home_changes++;
	h->vcpu_moves += count_moved_vcpus(&s->vm[vm], p);
	h->home_before = p->kind == PLAN_ROLLBACK ? -1 : h->home;
	h->homes_before = h->homes;
	h->home = id;
	h->homes = homes;
	h->split = p->split;
	h->cleared = id < 0;
	h->undo = false;
	h->changed_ns = now_ns;
	h->moving = p->move_bytes > 0;
	/* what was decided by pages cannot be judged by faults, and staying promises nothing, nor
	 * does going back */
	trial_begin(&h->trial, &s->vm[vm],
		p->blind || p->anchor || p->kind == PLAN_ROLLBACK ? -1 : p->now, p->then, now_ns);
	wish_forget(h);
}

void decide_target_cpus(
	const struct snapshot *s, const struct snap_vm *vm, unsigned target, struct idset *ret)
{
	*ret = s->topology.node[target].cpus;
	idset_and(ret, &vm->allowed_cpus);
}
