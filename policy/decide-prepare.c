/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Why some VMs are settled before anything is weighed against anything: somebody else's word on a
 * VM (a pin, a pause, a job) and a change that made it worse count more than any gain.
 */
#include "policy/decide-private.h"

#include <errno.h>
#include <string.h>

#include "policy/wish.h"

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

void decide_set_due(struct deciding *d, unsigned vm)
{
	struct vm_plan *p = &d->plan->vm[vm];

	p->due = true;
	p->reason.why = WHY_READY;
	d->plan->order[d->plan->n_due++] = vm;
	d->moving += p->move_bytes > 0;
}

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
	decide_set_due(d, i);
}

int decide_prepare(struct deciding *d)
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
