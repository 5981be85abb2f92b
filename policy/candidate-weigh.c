/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Why weighing knows nothing of room: what a node is worth to a VM does not depend on what other
 * VMs get, so it is worked out once, and choosing (candidate.c) can be done again and again.
 */
#include <string.h>

#include "policy/candidate.h"
#include "policy/weight.h"

#define HARDLY_ANY 5    /* permille of its memory */
#define SPLIT_SHARE 150 /* permille of its memory */

/*
 * Its own home first; then what it wished for last, so that of two nodes that are equally good one
 * is wished for long enough; then most memory. A tie keeps ascending id.
 */
static bool comes_before(const struct candidate_vm *c, const long *mapped, unsigned a, unsigned b)
{
	if ((int)a == c->home || (int)b == c->home)
		return (int)a == c->home;
	if ((int)a == c->wished || (int)b == c->wished)
		return (int)a == c->wished;
	return mapped[a] >= mapped[b];
}

/* Faults and pages on memory-only nodes count for the nearest node with CPUs when homes are
 * *ordered*; they are still remote there. */
static void order_nodes(const struct snapshot *s, struct candidate_vm *c)
{
	const struct topology *t = &s->topology;
	long mapped[TOPOLOGY_NODES_MAX];

	memset(mapped, 0, t->n_nodes * sizeof(*mapped));
	topology_foreach (n, t) {
		int near = t->known[n].nearest_cpu_node;

		if (near >= 0)
			mapped[near] += c->share[n];
	}
	c->n_order = 0;
	topology_foreach (n, t) {
		unsigned at;

		if (!c->cpus_on[n])
			continue;
		for (at = c->n_order; at > 0 && !comes_before(c, mapped, c->order[at - 1], n); at--)
			c->order[at] = c->order[at - 1];
		c->order[at] = n;
		c->n_order++;
	}
}

static void take_shares(const struct snapshot *s, struct candidate_vm *c)
{
	c->total_bytes = 0;
	topology_foreach (n, &s->topology) {
		c->total_bytes += c->vm->mem_bytes[n];
		c->share[n] = 0;
		c->demand_on[n] = 0;
		c->cpus_on[n] = topology_count_cpus(&s->topology, n, &c->vm->allowed_cpus);
	}
	for (unsigned n = 0; c->total_bytes && n < s->topology.n_nodes; n++)
		c->share[n] = (long)(c->vm->mem_bytes[n] * 1000 / c->total_bytes);
}

/* What one pass over the vCPUs' faults gives. */
struct sums {
	uint64_t group[TOPOLOGY_NODES_MAX]; /* without old news */
	uint64_t shared, all;               /* with them */
	uint64_t counted;                   /* of those that are somewhere */
	uint64_t weighted;                  /* the same, each times the weight of where it is */
	unsigned placed;                    /* running vCPUs that are somewhere */
};

uint64_t candidate_task_faults(const struct snapshot *s, const struct candidate_vm *c,
	const struct snap_vcpu *v, uint64_t *ret)
{
	uint64_t sum = 0;

	topology_foreach (n, &s->topology) {
		ret[n] = c->vm->has_memory && c->share[n] < HARDLY_ANY
				 ? 0
				 : v->faults[2 * n + FAULT_SHARED] +
					   v->faults[2 * n + FAULT_PRIVATE];
		if (__builtin_add_overflow(sum, ret[n], &sum))
			sum = UINT64_MAX;
	}
	return sum;
}

/*
 * Faults on a node that holds none of the VM's memory are news from before its pages left (the
 * kernel's counters lag behind its own migrations), and are dropped. What running vCPUs have where
 * they are is weighed each by its own faults, since on one node of their own each may be near what
 * it uses itself, which the group's mean would not show.
 */
static void sum_vcpus(const struct snapshot *s, struct candidate_vm *c, struct sums *ret)
{
	const struct topology *t = &s->topology;
	uint64_t task[TOPOLOGY_NODES_MAX], own;
	bool readable = c->vm->data == DATA_OK;

	memset(ret->group, 0, t->n_nodes * sizeof(*ret->group));
	ret->shared = ret->all = ret->counted = ret->weighted = ret->placed = 0;
	c->running = c->demand = 0;
	for (unsigned i = 0; i < c->vm->n_vcpus; i++) {
		const struct snap_vcpu *v = &c->vm->vcpu[i];

		if (!v->tid)
			continue;
		c->running += !v->idle;
		if (v->node >= 0) {
			c->demand += v->run_permille + v->wait_permille;
			c->demand_on[v->node] += v->run_permille + v->wait_permille;
		}
		if (v->idle)
			continue;
		ret->placed += v->node >= 0;
		if (!readable)
			continue;
		own = candidate_task_faults(s, c, v, task);
		topology_foreach (n, t) {
			ret->group[n] += task[n];
			ret->shared += v->faults[2 * n + FAULT_SHARED];
			ret->all +=
				v->faults[2 * n + FAULT_SHARED] + v->faults[2 * n + FAULT_PRIVATE];
		}
		if (v->node < 0)
			continue;
		ret->counted += own;
		ret->weighted +=
			own * weight_within(t, task, own, (unsigned)v->node, t->max_distance);
	}
}

static bool has_group(
	const struct settings *set, const struct candidate_vm *c, const struct sums *sums)
{
	if (c->running < 2 || set->group == GROUP_NEVER)
		return false;
	/* the first touch of a page counts as private, so that early windows show no sharing */
	if (c->vm->windows < set->ungroup_windows || set->group == GROUP_ALWAYS)
		return true;
	return sums->all && sums->shared > sums->all / 1000 * set->group_shared;
}

/* By where pages lie, all vCPUs are taken to use all of the memory alike. False: not one vCPU is
 * anywhere. */
static bool weigh_now(struct candidate_vm *c, const struct sums *sums)
{
	long sum = 0;

	if (!sums->placed)
		return false;
	if (!c->blind && sums->counted) {
		c->now = (long)(sums->weighted / sums->counted);
		return true;
	}
	for (unsigned i = 0; i < c->vm->n_vcpus; i++) {
		const struct snap_vcpu *v = &c->vm->vcpu[i];

		if (v->tid && !v->idle && v->node >= 0)
			sum += c->weight[v->node];
	}
	c->now = sum / (long)sums->placed;
	return true;
}

static void weigh_nodes(const struct snapshot *s, const uint64_t *vector, long *ret)
{
	uint64_t total = weight_sum(&s->topology, vector);

	topology_foreach (n, &s->topology) {
		ret[n] = weight_within(&s->topology, vector, total, n, s->topology.max_distance);
	}
}

/* The best node for one vCPU by its own faults, or -1; *ret_now: the weight of where it runs now.
 */
static int task_best(const struct snapshot *s, const struct settings *set,
	const struct candidate_vm *c, unsigned vcpu, long *ret_now, long *ret_gain)
{
	const struct snap_vcpu *v = &c->vm->vcpu[vcpu];
	uint64_t task[TOPOLOGY_NODES_MAX];
	long w[TOPOLOGY_NODES_MAX];
	int best = -1;

	if (!v->tid || v->idle || v->node < 0)
		return -1;
	candidate_task_faults(s, c, v, task);
	weigh_nodes(s, task, w);
	for (unsigned k = 0; k < c->n_order; k++) {
		unsigned n = c->order[k];

		if (best < 0 || w[n] > w[best] + (long)set->margin)
			best = (int)n;
	}
	if (best < 0 || w[best] == 0)
		return -1;
	*ret_now = w[v->node];
	*ret_gain = w[best] - w[v->node];
	return best;
}

/*
 * Without a group each vCPU would go to its own best node. Sets split only if these differ and each
 * holds a good part of the VM's memory: a few odd faults must not tear a VM apart.
 */
static void weigh_tasks(
	const struct snapshot *s, const struct settings *set, struct candidate_vm *c)
{
	int first = -1;
	bool real = true;
	long sum = 0, sum_now = 0, n_run = (long)MAX2(c->running, 1u);

	for (unsigned i = 0; i < c->vm->n_vcpus; i++) {
		long gain = 0, now = 0;
		int best = task_best(s, set, c, i, &now, &gain);

		if (best < 0)
			continue;
		sum += gain;
		sum_now += now;
		real &= c->share[best] >= SPLIT_SHARE;
		c->split |= first >= 0 && best != first;
		first = first < 0 ? best : first;
	}
	c->split &= real;
	if (!c->split)
		return;
	c->split_gain = sum / n_run;
	c->now = sum_now / n_run; /* each vCPU by its own faults */
}

int candidate_task_target(
	const struct candidate_room *room, const struct candidate_vm *c, unsigned vcpu)
{
	long now, gain;

	return task_best(room->s, room->set, c, vcpu, &now, &gain);
}

static bool fits_a_node(const struct snapshot *s, const struct candidate_vm *c)
{
	for (unsigned k = 0; k < c->n_order; k++)
		if (c->cpus_on[c->order[k]] >= c->running &&
			s->node[c->order[k]].mem_total_bytes >= c->total_bytes)
			return true;
	return false;
}

/* Is there anything to choose? If not, c->why says why. */
static bool can_be_placed(struct candidate_vm *c)
{
	c->there = 0;
	c->asked = c->running;
	for (unsigned k = 0; k < c->n_order; k++)
		c->there += c->cpus_on[c->order[k]];
	c->why = !c->running                          ? WHY_IDLE
		 : !c->known                          ? WHY_UNKNOWN
		 : !c->n_order                        ? WHY_NO_CPU
		 : c->spread && c->there < c->running ? WHY_TOO_WIDE
						      : WHY_NONE;
	return c->why == WHY_NONE;
}

static node_mask mask_of(const struct topology *t, const struct idset *ids)
{
	node_mask mask = 0;

	topology_foreach (n, t) {
		if (idset_has(ids, t->node[n].id))
			mask |= NODE_BIT(n);
	}
	return mask;
}

static void begin(const struct snapshot *s, const struct snap_vm *vm, const struct vm_history *h,
	struct candidate_vm *c)
{
	c->vm = vm;
	c->h = h;
	c->home = h->home < 0 ? -1 : topology_index(&s->topology, (unsigned)h->home);
	c->homes = c->home < 0 ? 0 : mask_of(&s->topology, &h->homes);
	c->wished = h->wish_node < 0 ? -1 : topology_index(&s->topology, (unsigned)h->wish_node);
	c->refused.node = -1;
	c->bar = 1;
	c->anchor = c->split = c->wide = c->spread = false;
	c->kind = PLAN_HOLD;
	c->target = 0;
	c->homes_then = 0;
	c->gain = c->split_gain = c->now = 0;
	c->move_bytes = 0;
}

void candidate_weigh(const struct snapshot *s, const struct settings *set, const struct snap_vm *vm,
	const struct vm_history *h, struct candidate_vm *c)
{
	struct sums sums;

	begin(s, vm, h, c);
	take_shares(s, c);
	order_nodes(s, c);
	sum_vcpus(s, c, &sums);
	c->faults = weight_sum(&s->topology, sums.group);
	c->blind = vm->data != DATA_OK || !c->faults;
	c->grouped =
		c->blind ? c->running > 1 && set->group != GROUP_NEVER : has_group(set, c, &sums);
	weigh_nodes(s, c->blind ? vm->mem_bytes : sums.group, c->weight);
	c->known = weigh_now(c, &sums) && (!c->blind || c->total_bytes);
	c->wide = !fits_a_node(s, c);
	c->spread = c->wide || vm->n_cells > 1;
	c->open = can_be_placed(c);
	if (c->open && !c->spread && !c->grouped && !c->blind && (c->home < 0 || h->split))
		weigh_tasks(s, set, c);
}
