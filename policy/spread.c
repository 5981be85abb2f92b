/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Theory of operation: the VM is taken apart into *parts* that want one node each: its guest cells,
 * or, of a wide VM, its running vCPUs. Each part has a value on each node (permille of weight times
 * its part of the faults), and each node has slots, one for each CPU that others leave free. A node
 * set is as many near nodes as it takes; within it parts are given out by regret (who loses most by
 * not getting his best node comes first), then pairs change places for as long as that gains
 * something.
 *
 * A wide VM's memory that lies outside of the set comes to it. Which of its pages belong to which
 * vCPU is not known here: the kernel's own balancer brings private pages to a vCPU that stays put.
 */
#include "policy/spread-private.h"

#include <errno.h>
#include <string.h>

#include "policy/weight.h"

/* -- node sets */

/* The next node to take: nearest to @from, of those with most of the memory. -1: none is left. */
static int next_node(const struct candidate_room *room, const struct spread_space *sp,
	const struct candidate_vm *c, unsigned from, node_mask set)
{
	const struct topology *t = &room->s->topology;
	int best = -1;

	for (unsigned k = 0; k < c->n_order; k++) {
		unsigned n = c->order[k];

		if ((set & NODE_BIT(n)) || sp->slots[n] <= 0)
			continue;
		if (best < 0 || t->distance[from][n] < t->distance[from][best] ||
			(t->distance[from][n] == t->distance[from][best] &&
				c->share[n] > c->share[best]))
			best = (int)n;
	}
	return best;
}

/* How much of what is outside each node takes: first up to its part of all, by slots, then what it
 * has room for. */
static void share_out(const struct candidate_room *room, const struct spread_space *sp,
	const struct candidate_vm *c, unsigned slots, struct set *set)
{
	const struct topology *t = &room->s->topology;
	uint64_t left = set->outside_bytes;

	memset(set->gets, 0, t->n_nodes * sizeof(*set->gets));
	for (unsigned pass = 0; pass < 2; pass++)
		for (unsigned n = 0; left && n < t->n_nodes; n++) {
			uint64_t here = c->vm->mem_bytes[n] + set->gets[n], more = left, due;
			int64_t space = room->free_bytes[n] - (int64_t)set->gets[n];

			if (!(set->nodes & NODE_BIT(n)) || space <= 0 ||
				!candidate_may_bring(room, c, n))
				continue;
			due = (uint64_t)((wide)c->total_bytes * (unsigned)sp->slots[n] / slots);
			if (!pass)
				more = due > here ? MIN2(due - here, left) : 0;
			more = MIN2(more, (uint64_t)space);
			set->gets[n] += more;
			left -= more;
		}
	set->pulls = !left;
}

/* As many near nodes as it takes, from this one on. */
static struct set grow_set(const struct candidate_room *room, const struct spread_space *sp,
	const struct candidate_vm *c, unsigned from)
{
	struct set set = {.outside_bytes = c->total_bytes};
	uint64_t space = 0;
	unsigned slots = 0;

	for (int n = sp->slots[from] > 0 ? (int)from : next_node(room, sp, c, from, 0); n >= 0;
		n = next_node(room, sp, c, from, set.nodes)) {
		set.nodes |= NODE_BIT(n);
		slots += (unsigned)sp->slots[n];
		set.outside_bytes -= c->vm->mem_bytes[n];
		if (candidate_may_bring(room, c, (unsigned)n))
			space += (uint64_t)MAX2(room->free_bytes[n], (int64_t)0);
		if (slots >= c->running && (space >= set.outside_bytes || c->vm->memory_fixed))
			break;
	}
	if (slots < c->running)
		set.nodes = 0;
	else
		share_out(room, sp, c, slots, &set);
	return set;
}

static long price(
	const struct candidate_room *room, const struct candidate_vm *c, const struct set *set)
{
	long cost = c->blind && !c->homes ? 1000 : room->set->copy_cost;

	if (!set->pulls || !c->total_bytes)
		return 0;
	return cost * (long)((wide)set->outside_bytes * 1000 / c->total_bytes) / 1000;
}

static void keep_best(struct spread_space *sp)
{
	for (unsigned i = 0; i < sp->n_parts; i++)
		sp->best[i] = sp->part[i].node;
}

/* The best of the sets around each node, for the vCPUs of a wide VM. */
static bool choose_set(const struct candidate_room *room, struct spread_space *sp,
	struct candidate_vm *c, long *ret_worth)
{
	uint64_t faults[TOPOLOGY_NODES_MAX];
	bool any = false;

	for (unsigned k = 0; k < c->n_order; k++) {
		struct set set = grow_set(room, sp, c, c->order[k]);
		long worth_of_it;

		if (!set.nodes)
			continue;
		for (unsigned i = 0; i < sp->n_parts; i++) {
			uint64_t sum = spread_faults(room->s, c, &sp->part[i], faults);

			spread_weigh_vcpu(room, faults, sum, &set, spread_value(sp, i));
		}
		if (!spread_give_out(room, sp, set.nodes))
			continue;
		worth_of_it = spread_worth(room, sp) - price(room, c, &set);
		if (any && worth_of_it <= *ret_worth + (long)room->set->margin)
			continue;
		any = true;
		*ret_worth = worth_of_it;
		keep_best(sp);
		c->homes_then = set.nodes;
		c->move_bytes = set.pulls ? set.outside_bytes : 0;
		memcpy(c->gets_bytes, set.gets, sizeof(set.gets));
	}
	return any;
}

static bool choose_cells(const struct candidate_room *room, struct spread_space *sp,
	const struct candidate_vm *c, long *ret_worth)
{
	uint64_t faults[TOPOLOGY_NODES_MAX];
	node_mask all = 0;

	for (unsigned k = 0; k < c->n_order; k++)
		all |= NODE_BIT(c->order[k]);
	for (unsigned i = 0; i < sp->n_parts; i++) {
		uint64_t sum;

		if (!sp->part[i].n_vcpus)
			continue;
		sum = spread_faults(room->s, c, &sp->part[i], faults);
		spread_weigh_cell(room, c, &sp->part[i], faults, sum, spread_value(sp, i));
	}
	if (!spread_give_out(room, sp, all))
		return false;
	*ret_worth = spread_worth(room, sp);
	keep_best(sp);
	return true;
}

/* -- the choice */

/* Where each vCPU goes, by where its part was put. Returns whether one goes anywhere new. */
static bool set_targets(struct spread_space *sp, struct candidate_vm *c)
{
	const struct snap_vm *vm = c->vm;
	bool moves = false;
	unsigned next = 0;
	int first = -1;

	for (unsigned i = 0; i < sp->n_parts; i++)
		if (sp->best[i] >= 0) {
			first = first < 0 ? sp->best[i] : first;
			c->homes_then |= NODE_BIT(sp->best[i]);
		}
	c->target = (unsigned)MAX2(first, 0);
	for (unsigned i = 0; i < vm->n_vcpus; i++) {
		const struct snap_vcpu *v = &vm->vcpu[i];
		int n = -1;

		if (vm->n_cells)
			n = v->tid ? sp->best[v->cell] : -1;
		else if (spread_runs(v))
			n = sp->best[next++];
		else if (v->tid) /* an idle one waits on a node of the home */
			n = v->node >= 0 && (c->homes_then & NODE_BIT(v->node)) ? v->node
										: (int)c->target;
		c->vcpu_target[i] = n;
		moves |= spread_runs(v) && n >= 0 && n != v->node;
	}
	return moves;
}

/* No node may end up with more than its CPUs can do, unless one where the VM is now is no better.
 */
static bool loads_fit(const struct candidate_room *room, struct candidate_vm *c)
{
	const struct topology *t = &room->s->topology;
	struct candidate_room after = *room;
	int64_t worst = 0;

	topology_foreach (n, t) {
		if (c->demand_on[n] && t->known[n].n_cpus)
			worst = MAX2(worst, room->busy[n] / t->known[n].n_cpus);
	}
	for (unsigned i = 0; i < c->vm->n_vcpus; i++) {
		const struct snap_vcpu *v = &c->vm->vcpu[i];

		if (v->tid && c->vcpu_target[i] >= 0 && c->vcpu_target[i] != v->node)
			candidate_room_shift(&after, v->node, c->vcpu_target[i],
				v->run_permille + v->wait_permille);
	}
	topology_foreach (n, t) {
		int64_t cpus = t->known[n].n_cpus;

		if (after.busy[n] <= room->busy[n] || candidate_has_spare(room, n, after.busy[n]) ||
			after.busy[n] <= cpus * MAX2(worst, (int64_t)CANDIDATE_FULL))
			continue;
		candidate_refuse(room, c, n,
			&(struct gate){.name = "cpu-capacity",
				.unit = "permille of a CPU",
				.source = settings_source(room->set, SETTING_CPU_PCT),
				.value = after.busy[n],
				.threshold = cpus * MAX2(worst, (int64_t)CANDIDATE_FULL)});
		return false;
	}
	return true;
}

static bool pays(const struct candidate_room *room, const struct candidate_vm *c)
{
	const struct settings *set = room->set;
	long least = candidate_least_gain(room, c, c->home);

	if (set->rules != RULES_NUMAHERD)
		return candidate_pays(room, c, c->target, c->gain, 0);
	return c->gain >=
	       least + (c->homes && c->homes != c->homes_then ? (long)set->home_bonus : 0);
}

/* Well placed where it is, after it has wandered: kept there as it is. */
static void choose_anchor(struct candidate_vm *c)
{
	bool first = true;

	if (c->home >= 0 || c->wished < 0 || c->blind || c->now < WELL_PLACED)
		return;
	c->homes_then = 0;
	for (unsigned i = 0; i < c->vm->n_vcpus; i++) {
		const struct snap_vcpu *v = &c->vm->vcpu[i];

		c->vcpu_target[i] = v->tid ? v->node : -1;
		if (!spread_runs(v) || v->node < 0)
			continue;
		c->homes_then |= NODE_BIT(v->node);
		c->target = first ? (unsigned)v->node : c->target;
		first = false;
	}
	if (first)
		return;
	c->anchor = true;
	c->kind = PLAN_SPREAD;
	c->gain = 1;
}

int spread_choose(
	const struct candidate_room *room, struct spread_space **space, struct candidate_vm *c)
{
	unsigned n_parts = MAX2(c->vm->n_cells, c->vm->n_vcpus);
	struct spread_space *sp;
	bool moves, found;
	long then = 0;

	c->anchor = false;
	c->kind = PLAN_HOLD;
	c->gain = 0;
	c->homes_then = 0;
	c->move_bytes = 0;
	c->refused.node = -1;
	if (spread_grow(space, n_parts, room->s->topology.n_nodes) < 0)
		return -ENOMEM;
	sp = *space;
	spread_count_slots(room, sp, c);
	sp->n_parts = spread_take_parts(sp, c);
	c->gain = -c->now - spread_nearness_now(room, sp);
	found = c->vm->n_cells ? choose_cells(room, sp, c, &then) : choose_set(room, sp, c, &then);
	if (!found) {
		c->gain = 0;
		return 0;
	}
	c->gain += then;
	moves = set_targets(sp, c);
	if (pays(room, c) && loads_fit(room, c)) {
		struct candidate_room after = *room;

		c->kind = PLAN_SPREAD;
		/* a gain that nothing brings about is none */
		if (!moves && c->homes == c->homes_then && !spread_pulls(&after, c, sp->pull))
			c->kind = PLAN_HOLD;
	}
	if (c->kind == PLAN_HOLD)
		choose_anchor(c);
	return 0;
}

/* -- memory */

static unsigned pull_cells(
	struct candidate_room *room, const struct candidate_vm *c, struct plan_pull *ret)
{
	const struct topology *t = &room->s->topology;
	unsigned count = 0;

	for (unsigned k = 0; k < c->vm->n_cells; k++) {
		const uint64_t *bytes = c->vm->cell[k].mem_bytes;
		uint64_t need;
		int to = -1;

		for (unsigned i = 0; to < 0 && i < c->vm->n_vcpus; i++)
			if (c->vm->vcpu[i].cell == k)
				to = c->vcpu_target[i];
		if (to < 0 || !candidate_may_bring(room, c, (unsigned)to))
			continue;
		need = weight_sum(t, bytes) - bytes[to];
		if (!need || (int64_t)need > room->free_bytes[to])
			continue;
		ret[count++] = (struct plan_pull){.cell = (int)k,
			.target = (unsigned)to,
			.stay = NODE_BIT(to),
			.bytes = need};
		topology_foreach (n, t) {
			room->free_bytes[n] +=
				n == (unsigned)to ? -(int64_t)need : (int64_t)bytes[n];
		}
	}
	return count;
}

static unsigned pull_outside(
	struct candidate_room *room, const struct candidate_vm *c, struct plan_pull *ret)
{
	unsigned count = 0;

	if (!c->move_bytes)
		return 0;
	topology_foreach (n, &room->s->topology) {
		if (!(c->homes_then & NODE_BIT(n))) {
			room->free_bytes[n] += (int64_t)c->vm->mem_bytes[n];
		} else if (c->gets_bytes[n]) {
			room->free_bytes[n] -= (int64_t)c->gets_bytes[n];
			ret[count++] = (struct plan_pull){.cell = -1,
				.target = n,
				.stay = c->homes_then,
				.bytes = c->gets_bytes[n]};
		}
	}
	return count;
}

unsigned spread_pulls(
	struct candidate_room *room, const struct candidate_vm *c, struct plan_pull *ret)
{
	if (c->anchor || !c->vm->has_memory || !c->total_bytes)
		return 0;
	return c->vm->n_cells ? pull_cells(room, c, ret) : pull_outside(room, c, ret);
}
