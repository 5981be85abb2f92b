/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Why a cell's memory counts with its vCPUs and a vCPU's does not: which pages are a cell's is
 * known; which are one vCPU's is not.
 */
#include "policy/spread-private.h"

#include <errno.h>
#include <string.h>

#include "policy/weight.h"

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

long *spread_value(struct spread_space *sp, unsigned part)
{
	return &sp->value[(size_t)part * sp->n_nodes];
}

int spread_grow(struct spread_space **space, unsigned n_parts, unsigned n_nodes)
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
void spread_count_slots(
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

bool spread_runs(const struct snap_vcpu *v)
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
unsigned spread_take_parts(struct spread_space *sp, const struct candidate_vm *c)
{
	unsigned n = 0;

	for (unsigned k = 0; k < c->vm->n_cells; k++)
		sp->part[k] = (struct part){.cell = (int)k, .node = -1, .present = -1};
	for (unsigned i = 0; i < c->vm->n_vcpus; i++) {
		const struct snap_vcpu *v = &c->vm->vcpu[i];

		if (!spread_runs(v))
			continue;
		if (!c->vm->n_cells)
			sp->part[n] = (struct part){.cell = -1, .node = -1};
		add_to_part(&sp->part[c->vm->n_cells ? v->cell : n], v, i);
		n++;
	}
	return c->vm->n_cells ? c->vm->n_cells : n;
}

/* Blind, each running vCPU counts the same. */
static long mass_of(const struct candidate_vm *c, const struct part *p, uint64_t faults)
{
	if (c->blind)
		return (long)p->n_vcpus * PPM / (long)c->running;
	return (long)((wide)faults * PPM / c->faults);
}

uint64_t spread_faults(
	const struct snapshot *s, const struct candidate_vm *c, struct part *p, uint64_t *ret)
{
	const uint64_t *bytes = p->cell < 0 ? c->vm->mem_bytes : c->vm->cell[p->cell].mem_bytes;
	uint64_t task[TOPOLOGY_NODES_MAX], sum = 0;

	memset(ret, 0, s->topology.n_nodes * sizeof(*ret));
	for (unsigned i = p->first; !c->blind && i < c->vm->n_vcpus; i++) {
		const struct snap_vcpu *v = &c->vm->vcpu[i];

		if (!spread_runs(v) || (p->cell >= 0 && v->cell != (unsigned)p->cell))
			continue;
		sum += candidate_task_faults(s, c, v, task);
		topology_foreach (n, &s->topology) {
			ret[n] += task[n];
		}
		if (p->cell < 0)
			break;
	}
	p->mass_ppm = mass_of(c, p, sum);
	if (sum)
		return sum;
	topology_foreach (n, &s->topology) {
		sum += ret[n] = bytes[n];
	}
	return sum;
}

/*
 * What a cell would have on each node: what is there already, or all of it once its memory has been
 * brought, less the price of the bytes.
 */
void spread_weigh_cell(const struct candidate_room *room, const struct candidate_vm *c,
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
 * node its part.
 */
void spread_weigh_vcpu(const struct candidate_room *room, uint64_t *faults, uint64_t sum,
	const struct set *set, long *ret)
{
	const struct topology *t = &room->s->topology;
	uint64_t outside = 0;

	topology_foreach (n, t) {
		outside += set->nodes & NODE_BIT(n) ? 0 : faults[n];
	}
	for (unsigned n = 0; set->pulls && outside && n < t->n_nodes; n++)
		faults[n] = set->nodes & NODE_BIT(n)
				    ? faults[n] + (uint64_t)((wide)outside * set->gets[n] /
							     set->outside_bytes)
				    : 0;
	topology_foreach (n, t) {
		ret[n] = weight_within(t, faults, sum, n, t->max_distance);
	}
}
