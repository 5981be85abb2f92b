/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Why a plan is kept from tick to tick: on a host at rest deciding allocates nothing.
 */
#include "policy/decide-private.h"

#include <errno.h>
#include <string.h>

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

int plan_grow(struct plan *p, const struct snapshot *s)
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

int plan_grow_pulls(struct plan *plan, size_t more)
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
