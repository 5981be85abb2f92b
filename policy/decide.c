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
#include "policy/decide-private.h"

#include <errno.h>
#include <string.h>

#include "policy/spread.h"
#include "policy/swap.h"
#include "policy/wish.h"

void decide_space_clear(struct decide_space *space)
{
	free(space->cand);
	free(space->heap);
	free(space->half);
	spread_space_free(space->spread);
	memset(space, 0, sizeof(*space));
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

/* Puts the choice into the plan and uses up its room. */
static int hand_out(struct deciding *d, struct candidate_vm *c, struct vm_plan *p)
{
	struct plan *plan = d->plan;

	if (plan_grow_pulls(plan, MAX2(c->vm->n_cells, d->s->topology.n_nodes)) < 0)
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

static int take_one(struct deciding *d, unsigned i)
{
	struct candidate_vm *c = &d->space->cand[i];
	struct vm_plan *p = &d->plan->vm[i];

	candidate_explain(&d->room, c, &p->reason);
	if (hand_out(d, c, p) < 0)
		return -ENOMEM;
	if (wish_settle(d->s, d->set, c->vm, history_get_at(d->history, c->vm, i), p, d->moving))
		decide_set_due(d, i);
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
			decide_set_due(d, pair[k]);
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
		r = plan_grow(plan, s);
	candidate_room_init(&d.room, s, set);
	if (r == 0)
		r = decide_prepare(&d);
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
