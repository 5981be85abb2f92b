/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Why both must gain: the kernel adds the two improvements, so that one task may pay for another. A
 * VM is somebody's machine, and its owner does not care for the other's gain.
 *
 * Why memory is no matter here: what a VM gains by following its memory is what makes it want to
 * go. If some of it must come along, it has to fit as things are; the rest is a later pull's
 * business.
 */
#include "policy/swap.h"

#include <string.h>

#include "policy/load.h"
#include "policy/rules.h"

/* Of all that would go from one node to another only so many, those with the largest gains, are
 * looked at: a host full of misplaced VMs must not cost the square of their number. */
#define TRIED_MAX 16

/* The one node that all of its running vCPUs are on, or -1. */
static int place_of(const struct candidate_room *room, const struct candidate_vm *c)
{
	topology_foreach (n, &room->s->topology) {
		if (c->demand_on[n])
			return c->demand_on[n] == c->demand ? (int)n : -1;
	}
	return -1;
}

/* What VM @h->c gains by going from one place to the other; false: it would not go. */
static bool weigh_half(const struct candidate_room *room, struct swap_half *h)
{
	long bonus =
		h->c->home >= 0 && (unsigned)h->c->home != h->to ? (long)room->set->home_bonus : 0;

	h->gain = candidate_gain(room, h->c, h->to, &h->bring);
	return h->gain >= candidate_least_gain(room, h->c, (int)h->to) &&
	       h->gain > candidate_worth_of_staying(room, h->c) + bonus &&
	       h->c->cpus_on[h->to] >= h->c->running;
}

/* Does the exchange leave both nodes with spare capacity, or not more out of balance than they are?
 */
static bool loads_fit(
	const struct candidate_room *room, const struct swap_half *a, const struct swap_half *b)
{
	const struct topology *t = &room->s->topology;
	int64_t cap_a = 1000 * (int64_t)idset_count(&t->node[a->from].cpus);
	int64_t cap_b = 1000 * (int64_t)idset_count(&t->node[b->from].cpus);
	int64_t moved = (int64_t)a->c->demand - (int64_t)b->c->demand;
	int64_t after_a = room->busy[a->from] - moved, after_b = room->busy[b->from] + moved;

	if (moved == 0 || (cap_a * 100 > after_a * room->set->cpu_pct &&
				  cap_b * 100 > after_b * room->set->cpu_pct))
		return true;
	/* the busier of the two must not get busier, whatever their sizes are */
	if (MAX2(after_a * cap_b, after_b * cap_a) >
		MAX2(room->busy[a->from] * cap_b, room->busy[b->from] * cap_a))
		return false;
	return !load_too_imbalanced((uint64_t)MAX2(room->busy[a->from], INT64_C(0)),
		(uint64_t)MAX2(room->busy[b->from], INT64_C(0)), moved, (uint64_t)cap_a,
		(uint64_t)cap_b);
}

/* Better than the best pair so far: by gain, then by UUIDs, so that the order of VMs does not
 * matter. */
static bool better(const struct swap_half pair[2], const struct swap_half best[2])
{
	long gain = pair[0].gain + pair[1].gain, most = best[0].c ? best[0].gain + best[1].gain : 0;
	int order;

	if (!best[0].c || gain != most)
		return gain > most;
	order = strcmp(pair[0].c->vm->uuid, best[0].c->vm->uuid);
	return order ? order < 0 : strcmp(pair[1].c->vm->uuid, best[1].c->vm->uuid) < 0;
}

static bool is_eligible(const struct candidate_vm *c)
{
	return c->open && c->known && !c->split && !c->spread && c->kind == PLAN_HOLD && c->demand;
}

static void set_choice(const struct swap_half *h)
{
	struct candidate_vm *c = h->c;

	c->kind = PLAN_SWAP;
	c->target = h->to;
	c->gain = h->gain;
	c->homes_then = NODE_BIT(h->to);
	c->move_bytes = h->bring ? c->total_bytes - c->vm->mem_bytes[h->to] : 0;
	c->refused.node = -1;
}

/*
 * All that would go, and where to: few, since most VMs are well placed or have room to go by
 * themselves.
 */
static unsigned list_halves(const struct candidate_room *room, struct candidate_vm *cands,
	unsigned n, struct swap_half *ret)
{
	unsigned count = 0;

	for (unsigned i = 0; i < n; i++) {
		int from = is_eligible(&cands[i]) ? place_of(room, &cands[i]) : -1;

		for (unsigned k = 0; from >= 0 && k < cands[i].n_order; k++) {
			struct swap_half h = {
				.c = &cands[i], .from = (unsigned)from, .to = cands[i].order[k]};

			if (h.to != h.from && weigh_half(room, &h))
				ret[count++] = h;
		}
	}
	return count;
}

static bool pair_up(const struct candidate_room *room, const struct swap_half *x,
	const struct swap_half *y, struct swap_half ret[2])
{
	bool swapped = strcmp(x->c->vm->uuid, y->c->vm->uuid) > 0;
	long sum;

	if (x->to != y->from || y->to != x->from)
		return false;
	ret[0] = swapped ? *y : *x;
	ret[1] = swapped ? *x : *y;
	return rules_running_destination(RULES_NUMAHERD, false, 0, x->gain + y->gain, 0, &sum) ==
		       RULES_SWAP &&
	       loads_fit(room, &ret[0], &ret[1]);
}

/* Those between the same two nodes together, one direction after the other, best first. */
static int by_nodes(const void *a, const void *b)
{
	const struct swap_half *x = a, *y = b;
	unsigned lx = MIN2(x->from, x->to), ly = MIN2(y->from, y->to);
	unsigned hx = MAX2(x->from, x->to), hy = MAX2(y->from, y->to);

	if (lx != ly)
		return lx < ly ? -1 : 1;
	if (hx != hy)
		return hx < hy ? -1 : 1;
	if (x->from != y->from)
		return x->from < y->from ? -1 : 1;
	if (x->gain != y->gain)
		return x->gain > y->gain ? -1 : 1;
	return strcmp(x->c->vm->uuid, y->c->vm->uuid);
}

static unsigned end_of_direction(const struct swap_half *half, unsigned count, unsigned at)
{
	unsigned end = at;

	while (end < count && half[end].from == half[at].from && half[end].to == half[at].to)
		end++;
	return end;
}

bool swap_find(const struct candidate_room *room, struct candidate_vm *cands, unsigned n,
	struct swap_half *half, unsigned ret[2])
{
	struct swap_half best[2] = {{0}}, pair[2];
	unsigned count = list_halves(room, cands, n, half);

	if (count > 1)
		qsort(half, count, sizeof(*half), by_nodes);
	for (unsigned at = 0, back, end; at < count; at = back) {
		back = end_of_direction(half, count, at);
		if (back == count || half[back].from != half[at].to ||
			half[back].to != half[at].from)
			continue;
		end = end_of_direction(half, count, back);
		for (unsigned i = at; i < MIN2(back, at + TRIED_MAX); i++)
			for (unsigned k = back; k < MIN2(end, back + TRIED_MAX); k++)
				if (pair_up(room, &half[i], &half[k], pair) && better(pair, best))
					memcpy(best, pair, sizeof(best));
	}
	for (unsigned i = 0; best[0].c && i < 2; i++) {
		set_choice(&best[i]);
		ret[i] = (unsigned)(best[i].c - cands);
	}
	return best[0].c != NULL;
}
