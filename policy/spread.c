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
#include "policy/spread.h"

#include <errno.h>
#include <string.h>

#include "policy/weight.h"

#define PPM 1000000
#define MAX_PULLS SNAPSHOT_CELLS_MAX /* and not more nodes than that */
#define PASSES 4 /* of changing places: each one is linear in the parts */

struct part {
	unsigned first, n_vcpus; /* of a cell: how many run; first: index of the first of them */
	int cell;                /* index, -1: a vCPU */
	int node;                /* where it is put; -1 nowhere */
	int present;             /* where it is, -1: on several */
	long mass_ppm;           /* its part of the VM's faults */
	long regret;
};

struct spread_space {
	struct part *part;
	unsigned *order;
	long *value; /* [n_parts * n_nodes] permille of weight, as it would become */
	int *best;   /* [n_parts] nodes of the best set so far */
	size_t parts_room;
	size_t values_room;
	unsigned n_parts, n_nodes;
	int slots[TOPOLOGY_NODES_MAX];
	struct plan_pull pull[MAX_PULLS];
};

struct spread_space *spread_space_free(struct spread_space *sp)
{
	if (!sp)
		return NULL;
	free(sp->part);
	free(sp->order);
	free(sp->value);
	free(sp->best);
	free(sp);
	return NULL;
}

static long *value_of(struct spread_space *sp, unsigned part)
{
	return &sp->value[(size_t)part * sp->n_nodes];
}

static int grow(struct spread_space **space, unsigned n_parts, unsigned n_nodes)
{
	struct spread_space *sp = *space;
	size_t values = (size_t)n_parts * n_nodes;

	if (!sp)
		sp = *space = calloc(1, sizeof(*sp));
	if (!sp)
		return -ENOMEM;
	if (n_parts > sp->parts_room) {
		free(sp->part);
		free(sp->order);
		free(sp->best);
		sp->part = calloc(n_parts, sizeof(*sp->part));
		sp->order = calloc(n_parts, sizeof(*sp->order));
		sp->best = calloc(n_parts, sizeof(*sp->best));
		sp->parts_room = sp->part && sp->order && sp->best ? n_parts : 0;
	}
	if (values > sp->values_room) {
		free(sp->value);
		sp->value = calloc(values, sizeof(*sp->value));
		sp->values_room = sp->value ? values : 0;
	}
	sp->n_parts = n_parts;
	sp->n_nodes = n_nodes;
	return sp->parts_room >= n_parts && sp->values_room >= values ? 0 : -ENOMEM;
}

/* CPUs that others leave to it; on a host where that is not enough, its share of all. */
static void count_slots(
	const struct candidate_room *room, struct spread_space *sp, const struct candidate_vm *c)
{
	unsigned sum = 0, cpus = 0;

	topology_foreach (n, &room->s->topology) {
		int64_t others =
			room->busy[n] - (int64_t)MIN2((int64_t)c->demand_on[n], room->busy[n]);

		sp->slots[n] = (int)MIN2(candidate_slots(room, n, others), c->cpus_on[n]);
		sum += (unsigned)sp->slots[n];
		cpus += c->cpus_on[n];
	}
	if (sum >= c->running)
		return;
	topology_foreach (n, &room->s->topology) {
		sp->slots[n] = (int)((c->cpus_on[n] * c->running + cpus - 1) / cpus);
	}
}

/* -- parts and values */

static bool runs(const struct snap_vcpu *v)
{
	return v->tid && !v->idle;
}

static void add_to_part(struct part *p, const struct snap_vcpu *v, unsigned i)
{
	if (!p->n_vcpus) {
		p->first = i;
		p->present = v->node;
	} else if (p->present != v->node) {
		p->present = -1;
	}
	p->n_vcpus++;
}

/* The parts of the VM, without values; returns how many. */
static unsigned take_parts(struct spread_space *sp, const struct candidate_vm *c)
{
	unsigned n = 0;

	for (unsigned k = 0; k < c->vm->n_cells; k++)
		sp->part[k] = (struct part){.cell = (int)k, .node = -1, .present = -1};
	for (unsigned i = 0; i < c->vm->n_vcpus; i++) {
		const struct snap_vcpu *v = &c->vm->vcpu[i];

		if (!runs(v))
			continue;
		if (!c->vm->n_cells)
			sp->part[n] = (struct part){.cell = -1, .node = -1};
		add_to_part(&sp->part[c->vm->n_cells ? v->cell : n], v, i);
		n++;
	}
	return c->vm->n_cells ? c->vm->n_cells : n;
}

/* The faults of one part; by where pages lie if there are none to go by. */
static uint64_t part_faults(
	const struct snapshot *s, const struct candidate_vm *c, const struct part *p, uint64_t *ret)
{
	const uint64_t *bytes = p->cell < 0 ? c->vm->mem_bytes : c->vm->cell[p->cell].mem_bytes;
	uint64_t task[TOPOLOGY_NODES_MAX], sum = 0;

	memset(ret, 0, s->topology.n_nodes * sizeof(*ret));
	for (unsigned i = p->first; !c->blind && i < c->vm->n_vcpus; i++) {
		const struct snap_vcpu *v = &c->vm->vcpu[i];

		if (!runs(v) || (p->cell >= 0 && v->cell != (unsigned)p->cell))
			continue;
		sum += candidate_task_faults(s, c, v, task);
		topology_foreach (n, &s->topology) {
			ret[n] += task[n];
		}
		if (p->cell < 0)
			break;
	}
	if (sum)
		return sum;
	topology_foreach (n, &s->topology) {
		sum += ret[n] = bytes[n];
	}
	return sum;
}

static long mass_of(const struct candidate_vm *c, const struct part *p, uint64_t faults)
{
	if (c->blind || !c->faults)
		return (long)p->n_vcpus * PPM / (long)c->running;
	return (long)((__extension__(unsigned __int128) faults) * PPM / c->faults);
}

/*
 * What a cell would have on each node: what is there already, or all of it once its memory has been
 * brought, less the price of the bytes.
 */
static void weigh_cell(const struct candidate_room *room, const struct candidate_vm *c,
	const struct part *p, const uint64_t *faults, uint64_t sum, long *ret)
{
	const struct topology *t = &room->s->topology;
	const uint64_t *bytes = c->vm->cell[p->cell].mem_bytes;
	uint64_t total = weight_sum(t, bytes);

	topology_foreach (n, t) {
		long cost = c->blind && !(c->homes & NODE_BIT(n)) ? 1000 : room->set->copy_cost;
		long follow = weight_within(t, faults, sum, n, t->max_distance), bring;

		ret[n] = follow;
		if (!total || !candidate_may_bring(room, c, n) ||
			(int64_t)(total - bytes[n]) > room->free_bytes[n])
			continue;
		bring = 1000 - cost * (long)((total - bytes[n]) / (total / 1000 + 1)) / 1000;
		ret[n] = MAX2(follow, bring);
	}
}

/*
 * What a vCPU would have on each node of the set once the memory outside of it has come in, to each
 * node as much as it has slots.
 */
static void weigh_vcpu(const struct candidate_room *room, const struct spread_space *sp,
	uint64_t *faults, uint64_t sum, node_mask set, bool pulls, long *ret)
{
	const struct topology *t = &room->s->topology;
	uint64_t outside = 0, slots = 0;

	topology_foreach (n, t) {
		if (set & NODE_BIT(n))
			slots += (uint64_t)sp->slots[n];
		else
			outside += faults[n];
	}
	for (unsigned n = 0; pulls && slots && outside && n < t->n_nodes; n++)
		faults[n] = set & NODE_BIT(n) ? faults[n] + outside / slots * (uint64_t)sp->slots[n]
					      : 0;
	topology_foreach (n, t) {
		ret[n] = weight_within(t, faults, sum, n, t->max_distance);
	}
}

/* -- giving out */

static int by_regret(const void *a, const void *b, void *userdata)
{
	const struct spread_space *sp = userdata;
	unsigned i = *(const unsigned *)a, k = *(const unsigned *)b;
	long x = sp->part[i].regret, y = sp->part[k].regret;

	return x != y ? (x < y) - (x > y) : (i > k) - (i < k);
}

static long worth(const struct spread_space *sp, unsigned i, unsigned n)
{
	return sp->value[(size_t)i * sp->n_nodes + n] * sp->part[i].mass_ppm;
}

/* Permille: how near two nodes are, 1000 for one and the same. */
static long near_of(const struct topology *t, int a, int b)
{
	long far = t->max_distance - DISTANCE_LOCAL, d = t->distance[a][b];

	return far > 0 && d < (long)t->max_distance ? ((long)t->max_distance - d) * 1000 / far : 0;
}

/* Cells of one VM draw each other: what part @i is worth more on node @n for those near by. */
static long nearness(const struct candidate_room *room, const struct spread_space *sp, unsigned i,
	unsigned n, int but)
{
	long sum = 0;

	if (sp->n_parts < 2 || sp->part[i].cell < 0)
		return 0;
	for (unsigned k = 0; k < sp->n_parts; k++)
		if (k != i && (int)k != but && sp->part[k].node >= 0)
			sum += near_of(&room->s->topology, (int)n, sp->part[k].node);
	return sum * (long)room->set->near_bonus / (long)(sp->n_parts - 1) *
	       (PPM / 1000 / (long)sp->n_parts);
}

static bool fits(const struct spread_space *sp, unsigned i, unsigned n, int coming_free)
{
	return sp->slots[n] + coming_free >= (int)sp->part[i].n_vcpus;
}

/* The best node with room; among equals the one it is on, else the one with most slots left. -1:
 * none has room. */
static int best_node(const struct candidate_room *room, struct spread_space *sp, unsigned i,
	node_mask set, long *ret_second)
{
	long most = 0, second = 0;
	int best = -1;

	for (unsigned n = 0; n < sp->n_nodes; n++) {
		long w = worth(sp, i, n) + nearness(room, sp, i, n, -1);
		bool better = best < 0 || w > most ||
			      (w == most && (int)n == sp->part[i].present) ||
			      (w == most && best != sp->part[i].present &&
				      sp->slots[n] > sp->slots[best]);

		if (!(set & NODE_BIT(n)) || !fits(sp, i, n, 0))
			continue;
		if (!better) {
			second = MAX2(second, w);
			continue;
		}
		second = most;
		most = w;
		best = (int)n;
	}
	if (ret_second)
		*ret_second = most - second;
	return best;
}

static void put(struct spread_space *sp, unsigned i, int n)
{
	struct part *p = &sp->part[i];

	if (p->node >= 0)
		sp->slots[p->node] += (int)p->n_vcpus;
	p->node = n;
	if (n >= 0)
		sp->slots[n] -= (int)p->n_vcpus;
}

/* What part @i gains on node @to, were part @but (-1: none) not where it is. */
static long change(const struct candidate_room *room, const struct spread_space *sp, unsigned i,
	unsigned to, int but)
{
	unsigned from = (unsigned)sp->part[i].node;

	/* the others come as much nearer to it as it to them */
	return worth(sp, i, to) - worth(sp, i, from) +
	       2 * (nearness(room, sp, i, to, but) - nearness(room, sp, i, from, but));
}

/* The part on node @from that gains most, or loses least, on node @to; -1: there is none. */
static int keenest(const struct candidate_room *room, const struct spread_space *sp, int from,
	int to, long *ret)
{
	int best = -1;

	for (unsigned i = 0; i < sp->n_parts; i++) {
		long gain;

		if (sp->part[i].node != from || !sp->part[i].n_vcpus)
			continue;
		gain = change(room, sp, i, (unsigned)to, -1);
		if (best >= 0 && gain <= *ret)
			continue;
		*ret = gain;
		best = (int)i;
	}
	return best;
}

/* One part goes from @a to @b, or one from each changes places. */
static bool improve_pair(const struct candidate_room *room, struct spread_space *sp, int a, int b)
{
	long there = 0, back = 0;
	int i = keenest(room, sp, a, b, &there), k;

	if (i < 0)
		return false;
	if (there > 0 && fits(sp, (unsigned)i, (unsigned)b, 0)) {
		put(sp, (unsigned)i, b);
		return true;
	}
	k = keenest(room, sp, b, a, &back);
	if (k < 0 || !fits(sp, (unsigned)i, (unsigned)b, (int)sp->part[k].n_vcpus) ||
		!fits(sp, (unsigned)k, (unsigned)a, (int)sp->part[i].n_vcpus))
		return false;
	there = change(room, sp, (unsigned)i, (unsigned)b, k);
	back = change(room, sp, (unsigned)k, (unsigned)a, i);
	if (there + back <= 0)
		return false;
	put(sp, (unsigned)i, -1);
	put(sp, (unsigned)k, a);
	put(sp, (unsigned)i, b);
	return true;
}

static void improve(const struct candidate_room *room, struct spread_space *sp, node_mask set)
{
	for (unsigned pass = 0; pass < PASSES * sp->n_parts; pass++) {
		bool any = false;

		for (unsigned a = 0; a < sp->n_nodes; a++)
			for (unsigned b = 0; b < sp->n_nodes; b++)
				if (a != b && (set & NODE_BIT(a)) && (set & NODE_BIT(b)))
					any |= improve_pair(room, sp, (int)a, (int)b);
		if (!any)
			return;
	}
}

/* Gives all parts a node of the set. False: they do not fit. */
static bool give_out(const struct candidate_room *room, struct spread_space *sp, node_mask set)
{
	for (unsigned i = 0; i < sp->n_parts; i++)
		put(sp, i, -1);
	for (unsigned i = 0; i < sp->n_parts; i++) {
		sp->order[i] = i;
		best_node(room, sp, i, set, &sp->part[i].regret);
	}
	qsort_r(sp->order, sp->n_parts, sizeof(*sp->order), by_regret, sp);
	for (unsigned i = 0; i < sp->n_parts; i++) {
		unsigned k = sp->order[i];
		int n = sp->part[k].n_vcpus ? best_node(room, sp, k, set, NULL) : -1;

		if (n < 0 && sp->part[k].n_vcpus)
			return false;
		put(sp, k, n);
	}
	improve(room, sp, set);
	return true;
}

/* Permille, of where the parts are put. */
static long total_worth(const struct candidate_room *room, const struct spread_space *sp)
{
	long sum = 0;

	for (unsigned i = 0; i < sp->n_parts; i++)
		if (sp->part[i].node >= 0)
			sum += worth(sp, i, (unsigned)sp->part[i].node) +
			       nearness(room, sp, i, (unsigned)sp->part[i].node, -1);
	return sum / PPM;
}

/* What nearness is worth as things are. */
static long nearness_now(const struct candidate_room *room, struct spread_space *sp)
{
	long sum = 0;

	for (unsigned i = 0; i < sp->n_parts; i++)
		sp->part[i].node = sp->part[i].present;
	for (unsigned i = 0; i < sp->n_parts; i++)
		if (sp->part[i].node >= 0)
			sum += nearness(room, sp, i, (unsigned)sp->part[i].node, -1);
	for (unsigned i = 0; i < sp->n_parts; i++)
		sp->part[i].node = -1;
	return sum / PPM;
}

/* -- node sets */

struct set {
	node_mask nodes;
	uint64_t outside_bytes;
	bool pulls; /* there is room for what is outside */
};

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

/* As many near nodes as it takes, from this one on. */
static struct set grow_set(const struct candidate_room *room, const struct spread_space *sp,
	const struct candidate_vm *c, unsigned from)
{
	struct set set = {.outside_bytes = c->total_bytes, .pulls = false};
	uint64_t space = 0;
	unsigned slots = 0;

	for (int n = sp->slots[from] > 0 ? (int)from : next_node(room, sp, c, from, 0); n >= 0;
		n = next_node(room, sp, c, from, set.nodes)) {
		set.nodes |= NODE_BIT(n);
		slots += (unsigned)sp->slots[n];
		set.outside_bytes -= c->vm->mem_bytes[n];
		if (candidate_may_bring(room, c, (unsigned)n))
			space += (uint64_t)MAX2(room->free_bytes[n], (int64_t)0);
		set.pulls = space >= set.outside_bytes;
		if (slots >= c->running && (set.pulls || c->vm->memory_fixed))
			break;
	}
	if (slots < c->running)
		set.nodes = 0;
	return set;
}

static long price(
	const struct candidate_room *room, const struct candidate_vm *c, const struct set *set)
{
	long cost = c->blind && !c->homes ? 1000 : room->set->copy_cost;

	if (!set->pulls || !c->total_bytes)
		return 0;
	return cost *
	       (long)((__extension__(unsigned __int128) set->outside_bytes) * 1000 /
		       c->total_bytes) /
	       1000;
}

static void keep_best(struct spread_space *sp)
{
	for (unsigned i = 0; i < sp->n_parts; i++)
		sp->best[i] = sp->part[i].node;
}

/* The best of the sets around each node, for the vCPUs of a wide VM. */
static bool choose_set(const struct candidate_room *room, struct spread_space *sp,
	const struct candidate_vm *c, long *ret_worth)
{
	uint64_t faults[TOPOLOGY_NODES_MAX];
	bool any = false;

	for (unsigned k = 0; k < c->n_order; k++) {
		struct set set = grow_set(room, sp, c, c->order[k]);
		long worth_of_it;

		if (!set.nodes)
			continue;
		for (unsigned i = 0; i < sp->n_parts; i++) {
			uint64_t sum = part_faults(room->s, c, &sp->part[i], faults);

			sp->part[i].mass_ppm = mass_of(c, &sp->part[i], sum);
			weigh_vcpu(room, sp, faults, sum, set.nodes, set.pulls, value_of(sp, i));
		}
		if (!give_out(room, sp, set.nodes))
			continue;
		worth_of_it = total_worth(room, sp) - price(room, c, &set);
		if (any && worth_of_it <= *ret_worth + (long)room->set->margin)
			continue;
		any = true;
		*ret_worth = worth_of_it;
		keep_best(sp);
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
		sum = part_faults(room->s, c, &sp->part[i], faults);
		sp->part[i].mass_ppm = mass_of(c, &sp->part[i], sum);
		weigh_cell(room, c, &sp->part[i], faults, sum, value_of(sp, i));
	}
	if (!give_out(room, sp, all))
		return false;
	*ret_worth = total_worth(room, sp);
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

	c->homes_then = 0;
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
		else if (runs(v))
			n = sp->best[next++];
		else if (v->tid) /* an idle one waits on a node of the home */
			n = v->node >= 0 && (c->homes_then & NODE_BIT(v->node)) ? v->node
										: (int)c->target;
		c->vcpu_target[i] = n;
		moves |= runs(v) && n >= 0 && n != v->node;
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
		if (!runs(v) || v->node < 0)
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
	c->refused.node = -1;
	if (grow(space, n_parts, room->s->topology.n_nodes) < 0)
		return -ENOMEM;
	sp = *space;
	count_slots(room, sp, c);
	sp->n_parts = take_parts(sp, c);
	c->gain = -c->now - nearness_now(room, sp);
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

/* How much of what is outside node @n takes: first its part of all, by vCPUs, then what it has
 * room for. */
static uint64_t take(const struct candidate_room *room, const struct candidate_vm *c, unsigned n,
	const uint64_t *gets, bool all_there_is, uint64_t left)
{
	uint64_t here = c->vm->mem_bytes[n] + gets[n], vcpus = 0, want = left;
	uint64_t space = (uint64_t)MAX2(room->free_bytes[n] - (int64_t)gets[n], (int64_t)0);

	for (unsigned i = 0; i < c->vm->n_vcpus; i++)
		vcpus += runs(&c->vm->vcpu[i]) && c->vcpu_target[i] == (int)n;
	if (!all_there_is) {
		uint64_t due = c->total_bytes / MAX2(c->running, 1u) * vcpus;

		want = due > here ? due - here : 0;
	}
	want = MIN2(want, left);
	return MIN2(want, space);
}

static unsigned pull_outside(
	struct candidate_room *room, const struct candidate_vm *c, struct plan_pull *ret)
{
	const struct topology *t = &room->s->topology;
	uint64_t gets[TOPOLOGY_NODES_MAX] = {0}, outside = 0, left;
	unsigned count = 0;

	topology_foreach (n, t) {
		outside += c->homes_then & NODE_BIT(n) ? 0 : c->vm->mem_bytes[n];
	}
	left = outside;
	for (unsigned pass = 0; pass < 2; pass++)
		for (unsigned n = 0; left && n < t->n_nodes; n++) {
			uint64_t more;

			if (!(c->homes_then & NODE_BIT(n)) || !candidate_may_bring(room, c, n))
				continue;
			more = take(room, c, n, gets, pass > 0, left);
			gets[n] += more;
			left -= more;
		}
	if (left) /* not all of it has room: what it is worth was weighed for all or nothing */
		return 0;
	topology_foreach (n, t) {
		room->free_bytes[n] += c->homes_then & NODE_BIT(n) ? -(int64_t)gets[n]
								   : (int64_t)c->vm->mem_bytes[n];
		if (gets[n])
			ret[count++] = (struct plan_pull){
				.cell = -1, .target = n, .stay = c->homes_then, .bytes = gets[n]};
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
