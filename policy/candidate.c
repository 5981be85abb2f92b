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

void candidate_room_shift(struct candidate_room *room, int from, int to, unsigned demand)
{
	if (from >= 0)
		room->busy[from] -= MIN2((int64_t)demand, room->busy[from]);
	if (to >= 0)
		room->busy[to] += demand;
}

/* Each vCPU for itself; @target_of one: -1: it stays. */
static void take_each(struct candidate_room *room, const struct candidate_vm *c)
{
	for (unsigned i = 0; i < c->vm->n_vcpus; i++) {
		const struct snap_vcpu *v = &c->vm->vcpu[i];
		int n = c->spread ? c->vcpu_target[i] : candidate_task_target(room, c, i);

		if (v->tid && v->node >= 0 && n >= 0 && n != v->node)
			candidate_room_shift(room, v->node, n, v->run_permille + v->wait_permille);
	}
}

void candidate_room_take(struct candidate_room *room, const struct candidate_vm *c)
{
	if (c->kind == PLAN_HOLD)
		return;
	if (c->split || c->spread) {
		take_each(room, c);
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

void candidate_refuse(const struct candidate_room *room, struct candidate_vm *c, unsigned node,
	const struct gate *gate)
{
	if (c->refused.node >= 0)
		return; /* the first one, which was the best, is the news */
	c->refused = *gate;
	c->refused.node = (int)room->s->topology.node[node].id;
}

bool candidate_has_spare(const struct candidate_room *room, unsigned n, int64_t busy)
{
	return 1000 * (int64_t)room->s->topology.known[n].n_cpus * 100 > busy * room->set->cpu_pct;
}

unsigned candidate_slots(const struct candidate_room *room, unsigned n, int64_t others)
{
	int64_t cpus = room->s->topology.known[n].n_cpus;
	int64_t left = (cpus * CANDIDATE_FULL - MAX2(others, (int64_t)0)) / 1000;

	return (unsigned)(left < 0 ? 0 : MIN2(left, cpus));
}

static int64_t most_busy(const struct candidate_room *room, unsigned n)
{
	return 100000 * (int64_t)room->s->topology.known[n].n_cpus / room->set->cpu_pct;
}

static void refuse_busy(
	const struct candidate_room *room, struct candidate_vm *c, unsigned n, int64_t busy)
{
	candidate_refuse(room, c, n,
		&(struct gate){.name = "cpu-capacity",
			.unit = "permille of a CPU",
			.source = settings_source(room->set, SETTING_CPU_PCT),
			.value = busy,
			.threshold = most_busy(room, n)});
}

/*
 * Has node @n room for the VM's CPU demand? Either it keeps spare capacity (so a lightly loaded
 * host is not kept from good locality), or the imbalance with the node most demand comes from does
 * not grow and it does not get busier than that one is (with nodes of unequal size the imbalance
 * alone would allow that).
 */
static bool cpu_room(const struct candidate_room *room, struct candidate_vm *c, unsigned n)
{
	const struct topology *t = &room->s->topology;
	int64_t arriving = (int64_t)c->demand - c->demand_on[n];
	int64_t after, cap = 1000 * (int64_t)t->known[n].n_cpus, from_cap;
	unsigned from = n;

	if (c->cpus_on[n] < c->running) {
		candidate_refuse(room, c, n,
			&(struct gate){.name = "cpus",
				.unit = "CPUs",
				.source = "its vCPUs",
				.value = c->cpus_on[n],
				.threshold = c->running});
		return false;
	}
	if (arriving <= 0)
		return true;
	/* threads that are no vCPUs follow; where they are now is not known */
	after = room->busy[n] + arriving + c->vm->followers_permille;
	if (candidate_has_spare(room, n, after) ||
		candidate_slots(room, n, room->busy[n] - (int64_t)c->demand_on[n]) >= c->running)
		return true;
	topology_foreach (k, t) {
		if (k != n && (from == n || c->demand_on[k] > c->demand_on[from]))
			from = k;
	}
	from_cap = 1000 * (int64_t)t->known[from].n_cpus;
	if (from != n && after * from_cap <= room->busy[from] * cap &&
		!load_too_imbalanced((uint64_t)room->busy[from], (uint64_t)room->busy[n], arriving,
			(uint64_t)from_cap, (uint64_t)cap))
		return true;
	refuse_busy(room, c, n, after);
	return false;
}

bool candidate_may_bring(
	const struct candidate_room *room, const struct candidate_vm *c, unsigned n)
{
	const struct topology_node *node = &room->s->topology.node[n];

	return !c->vm->memory_fixed && !c->vm->memory_hugetlb && c->vm->has_memory &&
	       node->has_memory && idset_has(&c->vm->allowed_mems, node->id);
}

static bool has_headroom(
	const struct candidate_room *room, struct candidate_vm *c, unsigned n, uint64_t need)
{
	if (!need || !candidate_may_bring(room, c, n))
		return false;
	if ((int64_t)need <= room->free_bytes[n])
		return true;
	candidate_refuse(room, c, n,
		&(struct gate){.name = "memory-headroom",
			.unit = "MiB",
			.source = settings_source(room->set, SETTING_RESERVE),
			.value = (int64_t)(need >> 20),
			.threshold = MAX2(room->free_bytes[n], (int64_t)0) >> 20});
	return false;
}

/* A passed-through device draws its VM to its node. */
static long device_term(const struct candidate_room *room, const struct candidate_vm *c, unsigned n)
{
	int d = c->vm->device_node;
	bool there = d >= 0 && c->demand && c->demand_on[d] == c->demand;

	if (d < 0 || there == ((int)n == d))
		return 0;
	return there ? -(long)room->set->device_bonus : (long)room->set->device_bonus;
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
	if (!has_headroom(room, c, n, need))
		return follow + device_term(room, c, n);
	bring = 1000 - cost * (1000 - c->share[n]) / 1000 - c->now;
	*ret_bring = bring + (long)room->set->margin >= follow;
	return MAX2(follow, bring) + device_term(room, c, n);
}

/* Would all the vCPUs of a split VM, together, leave every node with spare capacity? */
static bool split_has_room(const struct candidate_room *room, struct candidate_vm *c)
{
	struct candidate_room after = *room;
	node_mask gets = 0;

	for (unsigned i = 0; i < c->vm->n_vcpus; i++) {
		const struct snap_vcpu *v = &c->vm->vcpu[i];
		int n = candidate_task_target(room, c, i);

		if (n < 0 || n == v->node)
			continue;
		gets |= NODE_BIT(n);
		candidate_room_shift(&after, v->node, n, v->run_permille + v->wait_permille);
	}
	topology_foreach (n, &room->s->topology) {
		if (!(gets & NODE_BIT(n)) || after.busy[n] < most_busy(room, n))
			continue;
		refuse_busy(room, c, n, after.busy[n]);
		return false;
	}
	return true;
}

static void choose_split(const struct candidate_room *room, struct candidate_vm *c)
{
	node_mask homes = 0;
	int first = -1;

	for (unsigned i = 0; i < c->vm->n_vcpus; i++) {
		int n = candidate_task_target(room, c, i);

		first = first < 0 ? n : first;
		homes |= n < 0 ? 0 : NODE_BIT(n);
	}
	if (first < 0 || !candidate_pays(room, c, (unsigned)first, c->split_gain, 0) ||
		!split_has_room(room, c))
		return;
	c->kind = PLAN_PIN;
	c->target = (unsigned)first;
	c->homes_then = homes;
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

/*
 * The kernel's rules to the letter compare with nothing but the best so far; its least gain of a
 * plain move is 0 (sched-numa: no test for small improvements). Ours also asks for the margin
 * between two nodes, and more of a VM that has a home.
 */
bool candidate_pays(const struct candidate_room *room, const struct candidate_vm *c, unsigned n,
	long gain, long best)
{
	const struct settings *set = room->set;
	bool leaves = c->homes && !(c->homes & NODE_BIT(n));
	long least;

	if (set->rules != RULES_NUMAHERD)
		return gain >= 0 &&
		       rules_idle_destination(set->rules, true, gain, best) != RULES_REJECT;
	if (gain < candidate_least_gain(room, c, (int)n))
		return false;
	if (c->kind == PLAN_HOLD && is_present(c, n))
		return true;
	least = best + (best ? (long)set->margin : 0) + (leaves ? (long)set->home_bonus : 0);
	return gain > least;
}

/*
 * A VM that nobody holds goes where the kernel's scheduler sends its vCPUs, away from its memory
 * and back. When it has been seen away (it had a wish then), the next time that it is well placed
 * is the time to keep it there.
 */
static void choose_anchor(struct candidate_vm *c)
{
	if (c->home >= 0 || c->wished < 0 || c->blind || c->now < WELL_PLACED)
		return;
	for (unsigned k = 0; k < c->n_order; k++) {
		unsigned n = c->order[k];

		if (!is_present(c, n) || c->cpus_on[n] < c->running)
			continue;
		c->anchor = true;
		c->kind = PLAN_PIN;
		c->target = n;
		c->homes_then = NODE_BIT(n);
		c->gain = 1; /* nothing is gained but that it stays so */
		c->move_bytes = 0;
	}
}

static void choose_node(const struct candidate_room *room, struct candidate_vm *c)
{
	long best = room->set->rules == RULES_NUMAHERD ? candidate_worth_of_staying(room, c) : 0;

	for (unsigned k = 0; k < c->n_order; k++) {
		unsigned n = c->order[k];
		bool bring, all_here = c->demand_on[n] == c->demand && c->demand;
		long gain = candidate_gain(room, c, n, &bring);

		if (!candidate_pays(room, c, n, gain, best) || !cpu_room(room, c, n) ||
			(all_here && !bring && room->set->rules != RULES_NUMAHERD))
			continue;
		best = MAX2(best, gain);
		c->target = n;
		c->homes_then = NODE_BIT(n);
		c->gain = gain;
		c->move_bytes = bring ? c->total_bytes - c->vm->mem_bytes[n] : 0;
		c->kind = !bring ? PLAN_PIN
				 : (all_here || (int)n == c->home ? PLAN_PULL : PLAN_REHOME);
	}
	/* nothing to do for vCPUs that are all there already, pinned there, and bring nothing */
	if (c->kind == PLAN_PIN && c->homes == NODE_BIT(c->target))
		c->kind = PLAN_HOLD;
}

void candidate_choose(const struct candidate_room *room, struct candidate_vm *c)
{
	c->anchor = false;
	c->kind = PLAN_HOLD;
	c->gain = 0;
	c->homes_then = 0;
	c->move_bytes = 0;
	c->refused.node = -1;
	if (c->split) {
		choose_split(room, c);
		return;
	}
	choose_node(room, c);
	if (c->kind == PLAN_HOLD)
		choose_anchor(c);
}

static void explain_closed(const struct candidate_vm *c, struct reason *r)
{
	r->why = c->why;
	reason_gate(r, &(struct gate){
			       .name = c->why == WHY_TOO_WIDE ? "cpus" : "can-be-placed",
			       .unit = c->why == WHY_TOO_WIDE ? "CPUs" : "",
			       .source = "host",
			       .value = c->why == WHY_TOO_WIDE ? c->asked : 0,
			       .threshold = c->why == WHY_TOO_WIDE ? c->there : 1,
			       .node = -1,
		       });
}

void candidate_explain(
	const struct candidate_room *room, const struct candidate_vm *c, struct reason *r)
{
	bool held = c->kind == PLAN_HOLD;

	if (!room) {
		explain_closed(c, r);
		return;
	}
	reason_gate(r, &(struct gate){.name = "data",
			       .unit = "",
			       .source = "host",
			       .value = c->vm->data,
			       .threshold = DATA_OK,
			       .node = -1,
			       .met = true});
	if (c->refused.node >= 0)
		reason_gate(r, &c->refused);
	if (c->anchor)
		reason_gate(r, &(struct gate){.name = "well-placed",
				       .unit = "permille",
				       .source = "built-in",
				       .value = c->now,
				       .threshold = WELL_PLACED,
				       .node = -1,
				       .met = true});
	else
		reason_gate(r, &(struct gate){.name = "improvement",
				       .unit = "permille",
				       .source = settings_source(room->set, SETTING_IMPROVEMENT),
				       .value = c->gain,
				       .threshold = candidate_least_gain(
					       room, c, held ? -1 : (int)c->target),
				       .node = -1,
				       .met = !held});
	if (held)
		r->why = c->refused.node >= 0   ? WHY_REFUSED
			 : c->now < WELL_PLACED ? WHY_NO_BETTER
			 : c->home >= 0         ? WHY_SETTLED
						: WHY_WELL_PLACED;
}
