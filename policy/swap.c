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

#include <errno.h>
#include <string.h>

#include "policy/load.h"
#include "policy/rules.h"

struct half {
	struct candidate_vm *c;
	unsigned from, to;
	long gain;
	bool bring;
};

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
static bool weigh_half(const struct candidate_room *room, struct half *h)
{
	long bonus =
		h->c->home >= 0 && (unsigned)h->c->home != h->to ? (long)room->set->home_bonus : 0;

	h->gain = candidate_gain(room, h->c, h->to, &h->bring);
	return h->gain >= candidate_least_gain(room, h->c, (int)h->to) &&
	       h->gain > candidate_worth_of_staying(room, h->c) + bonus &&
	       candidate_has_cpus(room, h->c, h->to);
}

/* Does the exchange leave both nodes with spare capacity, or not more out of balance than they are?
 */
static bool loads_fit(const struct candidate_room *room, const struct half *a, const struct half *b)
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
static bool better(const struct half pair[2], const struct half best[2])
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
	return c->open && c->known && !c->split && c->kind == PLAN_HOLD && c->demand;
}

static void set_choice(const struct half *h)
{
	struct candidate_vm *c = h->c;

	c->kind = PLAN_SWAP;
	c->target = h->to;
	c->gain = h->gain;
	c->move_bytes = h->bring ? c->total_bytes - c->vm->mem_bytes[h->to] : 0;
	c->refused_node = -1;
}

/*
 * All that would go, and where to: few, since most VMs are well placed or have room to go by
 * themselves.
 * @ret: room for n * n_nodes entries.
 */
static unsigned list_halves(
	const struct candidate_room *room, struct candidate_vm *cands, unsigned n, struct half *ret)
{
	unsigned count = 0;

	for (unsigned i = 0; i < n; i++) {
		int from = is_eligible(&cands[i]) ? place_of(room, &cands[i]) : -1;

		for (unsigned k = 0; from >= 0 && k < cands[i].n_order; k++) {
			struct half h = {
				.c = &cands[i], .from = (unsigned)from, .to = cands[i].order[k]};

			if (h.to != h.from && weigh_half(room, &h))
				ret[count++] = h;
		}
	}
	return count;
}

static bool pair_up(const struct candidate_room *room, const struct half *x, const struct half *y,
	struct half ret[2])
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

int swap_find(
	const struct candidate_room *room, struct candidate_vm *cands, unsigned n, unsigned ret[2])
{
	_cleanup_free_ struct half *halves =
		calloc((size_t)n * room->s->topology.n_nodes, sizeof(*halves));
	struct half best[2] = {{0}}, pair[2];
	unsigned count;

	if (!halves)
		return -ENOMEM;
	count = list_halves(room, cands, n, halves);
	for (unsigned i = 0; i < count; i++)
		for (unsigned k = i + 1; k < count; k++)
			if (pair_up(room, &halves[i], &halves[k], pair) && better(pair, best))
				memcpy(best, pair, sizeof(best));
	if (!best[0].c)
		return 0;
	for (unsigned i = 0; i < 2; i++) {
		set_choice(&best[i]);
		ret[i] = (unsigned)(best[i].c - cands);
	}
	return 1;
}
