/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Why weighing knows nothing of room: what a node is worth to a VM does not depend on what other
 * VMs get, so it is worked out once, and choosing (candidate.c) can be done again and again.
 */
#include <stdio.h>
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
	long mapped[TOPOLOGY_NODES_MAX] = {0};

	topology_foreach (n, t) {
		int near = topology_nearest_cpu_node(t, n);

		if (near >= 0)
			mapped[near] += c->share[n];
	}
	topology_foreach (n, t) {
		struct idset cpus;
		unsigned at;

		decide_target_cpus(s, c->vm, n, &cpus);
		if (idset_empty(&cpus))
			continue;
		for (at = c->n_order; at > 0 && !comes_before(c, mapped, c->order[at - 1], n); at--)
			c->order[at] = c->order[at - 1];
		c->order[at] = n;
		c->n_order++;
	}
}

static void take_shares(const struct snapshot *s, struct candidate_vm *c)
{
	topology_foreach (n, &s->topology) {
		c->total_bytes += c->vm->mem_bytes[n];
	}
	topology_foreach (n, &s->topology) {
		if (c->total_bytes)
			c->share[n] = (long)(c->vm->mem_bytes[n] * 1000 / c->total_bytes);
	}
}

static void take_demand(const struct snapshot *s, struct candidate_vm *c)
{
	for (unsigned i = 0; i < c->vm->n_vcpus; i++) {
		const struct snap_vcpu *v = &c->vm->vcpu[i];
		unsigned d = v->run_permille + v->wait_permille;

		if (!v->tid || v->node < 0)
			continue;
		c->demand += d;
		c->demand_on[v->node] += d;
	}
}

static bool has_group(
	const struct snapshot *s, const struct settings *set, const struct snap_vm *vm)
{
	uint64_t shared = 0, total = 0;

	if (snap_vm_running_vcpus(vm) < 2)
		return false;
	/* the first touch of a page counts as private, so that early windows show no sharing */
	if (vm->windows < set->ungroup_windows)
		return true;
	for (unsigned i = 0; i < vm->n_vcpus; i++) {
		if (!vm->vcpu[i].tid || vm->vcpu[i].idle)
			continue;
		topology_foreach (n, &s->topology) {
			shared += vm->vcpu[i].faults[2 * n + FAULT_SHARED];
			total += vm->vcpu[i].faults[2 * n + FAULT_SHARED] +
				 vm->vcpu[i].faults[2 * n + FAULT_PRIVATE];
		}
	}
	return total && shared > total / 1000 * set->group_shared;
}

/*
 * Faults on a node that holds none of the VM's memory are news from before its pages left: the
 * kernel's counters lag behind its own migrations.
 */
static void drop_faults_without_pages(
	const struct snapshot *s, const struct candidate_vm *c, uint64_t *faults)
{
	topology_foreach (n, &s->topology) {
		if (c->vm->has_memory && c->share[n] < HARDLY_ANY)
			faults[n] = 0;
	}
}

/*
 * What the running vCPUs have where they are now: each by its own faults, since on one node of
 * their own each may be near what it uses itself, which the group's mean would not show. By where
 * pages lie, all are taken to use all of the memory alike. False: not one vCPU is anywhere.
 */
static bool weigh_now(const struct snapshot *s, struct candidate_vm *c)
{
	uint64_t task[TOPOLOGY_NODES_MAX], total = 0, weighted = 0, own;
	long sum = 0;
	unsigned n = 0;

	for (unsigned i = 0; i < c->vm->n_vcpus; i++) {
		const struct snap_vcpu *v = &c->vm->vcpu[i];

		if (!v->tid || v->idle || v->node < 0)
			continue;
		sum += c->weight[v->node];
		n++;
		if (c->blind)
			continue;
		snap_vcpu_task_faults(s, v, task);
		drop_faults_without_pages(s, c, task);
		own = weight_sum(&s->topology, task);
		total += own;
		weighted += own * weight_of(&s->topology, task, (unsigned)v->node,
					  s->topology.max_distance);
	}
	if (!n)
		return false;
	c->now = total ? (long)(weighted / total) : sum / n;
	return true;
}

static void weigh_nodes(const struct snapshot *s, const uint64_t *vector, long *ret)
{
	topology_foreach (n, &s->topology) {
		ret[n] = weight_of(&s->topology, vector, n, s->topology.max_distance);
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
	snap_vcpu_task_faults(s, v, task);
	drop_faults_without_pages(s, c, task);
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
	long sum = 0, sum_now = 0, n_run = (long)MAX2(snap_vm_running_vcpus(c->vm), 1u);

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
	for (unsigned k = 0; k < c->n_order; k++) {
		struct idset cpus;

		decide_target_cpus(s, c->vm, c->order[k], &cpus);
		if (idset_count(&cpus) >= snap_vm_running_vcpus(c->vm) &&
			s->node[c->order[k]].mem_total_bytes >= c->total_bytes)
			return true;
	}
	return false;
}

void candidate_weigh(const struct snapshot *s, const struct settings *set, const struct snap_vm *vm,
	const struct vm_history *h, struct candidate_vm *c)
{
	uint64_t faults[TOPOLOGY_NODES_MAX];

	memset(c, 0, sizeof(*c));
	c->vm = vm;
	c->home = h->home < 0 ? -1 : topology_index(&s->topology, (unsigned)h->home);
	c->wished = h->wish_node < 0 ? -1 : topology_index(&s->topology, (unsigned)h->wish_node);
	c->refused_node = -1;
	c->bar = 1;
	take_shares(s, c);
	take_demand(s, c);
	order_nodes(s, c);
	snap_vm_group_faults(s, vm, faults);
	drop_faults_without_pages(s, c, faults);
	c->blind = vm->data != DATA_OK || !weight_sum(&s->topology, faults);
	c->grouped = c->blind ? snap_vm_running_vcpus(vm) > 1 : has_group(s, set, vm);
	weigh_nodes(s, c->blind ? vm->mem_bytes : faults, c->weight);
	c->known = weigh_now(s, c) && (!c->blind || c->total_bytes);
	if (!snap_vm_running_vcpus(vm))
		snprintf(c->why, sizeof(c->why), "idle: no vCPU ran in the last window");
	else if (!c->known)
		snprintf(c->why, sizeof(c->why),
			"left alone: neither faults nor the place of its pages are known");
	else if (!c->n_order)
		snprintf(c->why, sizeof(c->why), "left alone: no node has a CPU it may use");
	else if (!fits_a_node(s, c))
		snprintf(c->why, sizeof(c->why),
			"left alone: needs more than one node (%u vCPUs, %llu MiB)",
			snap_vm_running_vcpus(vm), (unsigned long long)(c->total_bytes >> 20));
	else
		c->open = true;
	if (c->open && !c->grouped && !c->blind && (c->home < 0 || h->split))
		weigh_tasks(s, set, c);
}
