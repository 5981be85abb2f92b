/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Why regret and then changing places: giving each the best that is left makes the last ones pay;
 * changing places mends what that leaves, and stops at once where nothing is to be gained.
 */
#include "policy/spread-private.h"

#define PASSES 4 /* of changing places, for each part: each one is linear in the parts */

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
bool spread_give_out(const struct candidate_room *room, struct spread_space *sp, node_mask set)
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
long spread_worth(const struct candidate_room *room, const struct spread_space *sp)
{
	long sum = 0;

	for (unsigned i = 0; i < sp->n_parts; i++)
		if (sp->part[i].node >= 0)
			sum += worth(sp, i, (unsigned)sp->part[i].node) +
			       nearness(room, sp, i, (unsigned)sp->part[i].node, -1);
	return sum / PPM;
}

/* What nearness is worth as things are. */
long spread_nearness_now(const struct candidate_room *room, struct spread_space *sp)
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
