/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Theory of operation: everything is measured in permille of weight (weight.h).
 *
 *   now        weight of the nodes its running vCPUs are on, each by its own faults
 *   follow     weight of the candidate: what moving only the vCPUs would give
 *   bring      1000 less the price of the bytes to copy: what moving vCPUs *and* memory would give
 *   gain       the better of the two, less now
 *
 * So a VM goes to where most of its memory already is, and memory is copied only when what is
 * gained is worth the bytes. Without fault data ("blind") the weights are the shares of its pages;
 * then copying is charged in full, so that memory alone never gives a reason to choose a home.
 *
 * How the weights come about is in candidate-weigh.c.
 */
#include "policy/candidate.h"

#include <string.h>

#include "policy/load.h"
#include "policy/rules.h"

#define WELL_PLACED 900 /* permille */

void candidate_room_init(
	struct candidate_room *room, const struct snapshot *s, const struct settings *set)
{
	memset(room, 0, sizeof(*room));
	room->s = s;
	room->set = set;
	topology_foreach (n, &s->topology) {
		uint64_t part = s->node[n].mem_total_bytes / 1000 * set->reserve_permille;

		room->busy[n] = s->node[n].busy_permille;
		room->free_bytes[n] = (int64_t)s->node[n].mem_free_bytes -
				      (int64_t)MAX2(part, set->reserve_bytes);
	}
}

static void take_split(struct candidate_room *room, const struct candidate_vm *c)
{
	for (unsigned i = 0; i < c->vm->n_vcpus; i++) {
		const struct snap_vcpu *v = &c->vm->vcpu[i];
		int n = candidate_task_target(room, c, i);

		if (n < 0 || n == v->node)
			continue;
		room->busy[n] += v->run_permille + v->wait_permille;
		room->busy[v->node] -= v->run_permille + v->wait_permille;
	}
}

void candidate_room_take(struct candidate_room *room, const struct candidate_vm *c)
{
	if (c->kind == PLAN_HOLD)
		return;
	if (c->split) {
		take_split(room, c);
		return;
	}
	topology_foreach (n, &room->s->topology) {
		room->busy[n] -= MIN2((int64_t)c->demand_on[n], room->busy[n]);
		if (n != c->target && c->move_bytes)
			room->free_bytes[n] += (int64_t)c->vm->mem_bytes[n];
	}
	room->busy[c->target] += c->demand;
	room->free_bytes[c->target] -= (int64_t)c->move_bytes;
}

static void refuse(struct candidate_vm *c, unsigned node, const char *gate, const char *unit,
	int64_t value, int64_t threshold)
{
	if (c->refused_node >= 0)
		return; /* the first one, which was the best, is the news */
	c->refused_node = (int)node;
	c->refused_gate = gate;
	c->refused_unit = unit;
	c->refused_value = value;
	c->refused_threshold = threshold;
}

bool candidate_has_cpus(const struct candidate_room *room, const struct candidate_vm *c, unsigned n)
{
	struct idset cpus;

	decide_target_cpus(room->s, c->vm, n, &cpus);
	return idset_count(&cpus) >= snap_vm_running_vcpus(c->vm);
}

/*
 * Has node @n room for the VM's CPU demand? Either it keeps spare capacity (so a lightly loaded
 * host is not kept from good locality), or the imbalance with the node most demand comes from does
 * not grow and it does not get busier than that one is (with nodes of unequal size the imbalance
 * alone would allow that).
 */
static bool cpu_room(const struct candidate_room *room, struct candidate_vm *c, unsigned n)
{
	const struct snapshot *s = room->s;
	struct idset cpus;
	int64_t arriving = (int64_t)c->demand - c->demand_on[n];
	int64_t after = room->busy[n] + arriving;
	unsigned from = n;
	int64_t cap, from_cap;

	if (!candidate_has_cpus(room, c, n)) {
		decide_target_cpus(s, c->vm, n, &cpus);
		refuse(c, n, "cpus", "CPUs", idset_count(&cpus), snap_vm_running_vcpus(c->vm));
		return false;
	}
	if (arriving <= 0)
		return true;
	cap = 1000 * (int64_t)idset_count(&s->topology.node[n].cpus);
	if (cap * 100 > after * room->set->cpu_pct)
		return true;
	topology_foreach (k, &s->topology) {
		if (k != n && (from == n || c->demand_on[k] > c->demand_on[from]))
			from = k;
	}
	from_cap = 1000 * (int64_t)idset_count(&s->topology.node[from].cpus);
	if (from != n && after * from_cap <= room->busy[from] * cap &&
		!load_too_imbalanced((uint64_t)room->busy[from], (uint64_t)room->busy[n], arriving,
			(uint64_t)from_cap, (uint64_t)cap))
		return true;
	refuse(c, n, "cpu-capacity", "permille of a CPU", after, cap * 100 / room->set->cpu_pct);
	return false;
}

static bool may_bring(
	const struct candidate_room *room, struct candidate_vm *c, unsigned n, uint64_t need)
{
	const struct topology_node *node = &room->s->topology.node[n];

	if (!need || c->vm->memory_fixed || c->vm->memory_hugetlb || !c->vm->has_memory ||
		!node->has_memory || !idset_has(&c->vm->allowed_mems, node->id))
		return false;
	if ((int64_t)need <= room->free_bytes[n])
		return true;
	refuse(c, n, "memory-headroom", "MiB", (int64_t)(need >> 20),
		MAX2(room->free_bytes[n], (int64_t)0) >> 20);
	return false;
}

/* The candidate's gain; *ret_bring: its memory comes along. */
long candidate_gain(
	const struct candidate_room *room, struct candidate_vm *c, unsigned n, bool *ret_bring)
{
	long cost = c->blind && (int)n != c->home ? 1000 : room->set->copy_cost;
	long follow = c->weight[n] - c->now, bring;
	uint64_t need = c->total_bytes - c->vm->mem_bytes[n];

	*ret_bring = false;
	/* memory that cannot move must not lose its vCPUs: they go to it or stay */
	if (!may_bring(room, c, n, need))
		return follow;
	bring = 1000 - cost * (1000 - c->share[n]) / 1000 - c->now;
	*ret_bring = bring + (long)room->set->margin >= follow;
	return MAX2(follow, bring);
}

/* Would all the vCPUs of a split VM, together, leave every node with spare capacity? */
static bool split_has_room(const struct candidate_room *room, struct candidate_vm *c)
{
	const struct topology *t = &room->s->topology;
	int64_t busy[TOPOLOGY_NODES_MAX];
	bool gets[TOPOLOGY_NODES_MAX] = {false};

	memcpy(busy, room->busy, sizeof(busy));
	for (unsigned i = 0; i < c->vm->n_vcpus; i++) {
		const struct snap_vcpu *v = &c->vm->vcpu[i];
		int n = candidate_task_target(room, c, i);

		if (n < 0 || n == v->node)
			continue;
		gets[n] = true;
		busy[n] += v->run_permille + v->wait_permille;
		busy[v->node] -= v->run_permille + v->wait_permille;
	}
	topology_foreach (n, t) {
		int64_t most = 100000 * (int64_t)idset_count(&t->node[n].cpus) / room->set->cpu_pct;

		if (!gets[n] || busy[n] < most)
			continue;
		refuse(c, n, "cpu-capacity", "permille of a CPU", busy[n], most);
		return false;
	}
	return true;
}

static void choose_split(const struct candidate_room *room, struct candidate_vm *c, long least)
{
	int first = -1;

	c->kind = PLAN_HOLD;
	c->gain = 0;
	for (unsigned i = 0; i < c->vm->n_vcpus && first < 0; i++)
		first = candidate_task_target(room, c, i);
	if (first < 0 || c->split_gain < least ||
		rules_idle_destination(RULES_NUMAHERD, true, c->split_gain, 0) == RULES_REJECT ||
		!split_has_room(room, c))
		return;
	c->kind = PLAN_PIN;
	c->target = (unsigned)first;
	c->gain = c->split_gain;
	c->move_bytes = 0;
}

/* The least gain asked of node @n: more without data, unless it is the VM's home already. */
long candidate_least_gain(const struct candidate_room *room, const struct candidate_vm *c, int n)
{
	return (long)room->set->improvement * (long)c->bar *
	       (c->blind && (c->home < 0 || n != c->home) ? room->set->blind_factor : 1);
}

/* Where the VM is now: its home, or the one node that all its running vCPUs are on. */
static bool is_present(const struct candidate_vm *c, unsigned n)
{
	return c->home >= 0 ? (int)n == c->home : c->demand && c->demand_on[n] == c->demand;
}

/*
 * What could be gained without going anywhere, by bringing the rest of its memory, whether that is
 * worth doing or not. Another node must be better than this, or a VM whose memory is all here would
 * be carried off by faults that the counters have not forgotten yet.
 */
long candidate_worth_of_staying(const struct candidate_room *room, const struct candidate_vm *c)
{
	long best = 0;

	topology_foreach (n, &room->s->topology) {
		if (is_present(c, n) && c->vm->has_memory && !c->vm->memory_fixed)
			best = MAX2(best,
				1000 - (long)room->set->copy_cost * (1000 - c->share[n]) / 1000 -
					c->now);
	}
	return best;
}

/* What a gain must be larger than, given the best one so far. */
static long to_beat(
	const struct candidate_room *room, const struct candidate_vm *c, unsigned n, long best)
{
	long margin = best ? (long)room->set->margin : 0;

	return best + margin +
	       (c->home >= 0 && (int)n != c->home ? (long)room->set->home_bonus : 0);
}

/*
 * A VM that nobody holds goes where the kernel's scheduler sends its vCPUs, away from its memory
 * and back. When it has been seen away (it had a wish then), the next time that it is well placed
 * is the time to keep it there.
 */
static void choose_anchor(const struct candidate_room *room, struct candidate_vm *c)
{
	if (c->home >= 0 || c->wished < 0 || c->blind || c->now < WELL_PLACED)
		return;
	for (unsigned k = 0; k < c->n_order; k++) {
		unsigned n = c->order[k];

		if (!is_present(c, n) || !candidate_has_cpus(room, c, n))
			continue;
		c->anchor = true;
		c->kind = PLAN_PIN;
		c->target = n;
		c->gain = 1; /* nothing is gained but that it stays so */
		c->move_bytes = 0;
	}
}

void candidate_choose(const struct candidate_room *room, struct candidate_vm *c)
{
	long best;

	c->anchor = false;
	c->kind = PLAN_HOLD;
	c->gain = 0;
	c->refused_node = -1;
	best = candidate_worth_of_staying(room, c);
	if (c->split) {
		choose_split(room, c, candidate_least_gain(room, c, -1));
		return;
	}
	for (unsigned k = 0; k < c->n_order; k++) {
		unsigned n = c->order[k];
		bool bring, all_here = c->demand_on[n] == c->demand && c->demand;
		long gain = candidate_gain(room, c, n, &bring);

		if (gain < candidate_least_gain(room, c, (int)n) ||
			((c->kind != PLAN_HOLD || !is_present(c, n)) &&
				gain <= to_beat(room, c, n, best)))
			continue;
		if (!cpu_room(room, c, n))
			continue;
		best = MAX2(best, gain);
		c->target = n;
		c->gain = gain;
		c->move_bytes = bring ? c->total_bytes - c->vm->mem_bytes[n] : 0;
		c->kind = !bring ? PLAN_PIN
				 : (all_here || (int)n == c->home ? PLAN_PULL : PLAN_REHOME);
	}
	/* nothing to do for vCPUs that are all there already, pinned there, and bring nothing */
	if (c->kind == PLAN_PIN && (int)c->target == c->home)
		c->kind = PLAN_HOLD;
	if (c->kind == PLAN_HOLD)
		choose_anchor(room, c);
}

void candidate_explain(
	const struct candidate_room *room, const struct candidate_vm *c, struct reason *r)
{
	const struct topology *t = room ? &room->s->topology : NULL;
	long least;

	if (!room) {
		reason_gate(r, "can-be-placed", "", 0, 1, false);
		reason_say(r, "%s", c->why);
		return;
	}
	least = candidate_least_gain(room, c, c->kind == PLAN_HOLD ? -1 : (int)c->target);
	reason_gate(r, "data", "", c->vm->data, DATA_OK, true);
	if (c->refused_node >= 0)
		reason_gate(r, c->refused_gate, c->refused_unit, c->refused_value,
			c->refused_threshold, false);
	if (c->anchor)
		reason_gate(r, "well-placed", "permille", c->now, WELL_PLACED, true);
	else
		reason_gate(r, "improvement", "permille", c->gain, least, c->kind != PLAN_HOLD);
	if (c->kind != PLAN_HOLD)
		return;
	if (c->refused_node >= 0)
		reason_say(r, "staying (%ld permille): node %u refused by %s, %lld %s against %lld",
			c->now, t->node[c->refused_node].id, c->refused_gate,
			(long long)c->refused_value, c->refused_unit,
			(long long)c->refused_threshold);
	else if (c->now >= WELL_PLACED)
		reason_say(
			r, "%swell placed (%ld permille)", c->home >= 0 ? "settled, " : "", c->now);
	else
		reason_say(
			r, "staying (%ld permille): no node would be better by %ld", c->now, least);
}
