/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Why VMs that have just been started count as if they used everything already: ten VMs that start
 * together are otherwise all sent to the node that was the emptiest before the first of them.
 */
#include "policy/advise.h"

#include <string.h>

/* A set of nodes that would do, and what makes it better than another. */
struct choice {
	node_mask nodes;
	unsigned n_nodes;
	uint64_t spread; /* sum of the distances between its nodes */
	int64_t free;    /* permille of its CPUs that are left */
	int64_t bytes_left;
};

struct looking {
	const struct snapshot *s;
	const struct advise_request *req;
	const struct advice *left;
	bool overcommit;
	unsigned cpus[TOPOLOGY_NODES_MAX];
};

/* By CPUs, what is to come to a set of nodes. */
static void expect(const struct snapshot *s, struct advice *a, node_mask nodes, int64_t permille,
	int64_t bytes)
{
	int64_t cpus = 0, mems = 0;

	topology_foreach (n, &s->topology) {
		if (!(nodes & NODE_BIT(n)))
			continue;
		cpus += s->topology.known[n].n_cpus;
		mems += s->topology.node[n].has_memory;
	}
	topology_foreach (n, &s->topology) {
		if (!(nodes & NODE_BIT(n)))
			continue;
		if (cpus)
			a->cpus_left_permille[n] -=
				permille * (int64_t)s->topology.known[n].n_cpus / cpus;
		if (mems && s->topology.node[n].has_memory)
			a->bytes_left[n] -= bytes / mems;
	}
}

static node_mask nodes_of(const struct snapshot *s, const struct snap_vm *vm)
{
	node_mask nodes = 0;

	for (unsigned i = 0; i < vm->n_vcpus; i++)
		if (vm->vcpu[i].tid && vm->vcpu[i].node >= 0)
			nodes |= NODE_BIT(vm->vcpu[i].node);
	for (unsigned n = 0; !nodes && n < s->topology.n_nodes; n++)
		if (topology_count_cpus(&s->topology, n, &vm->allowed_cpus))
			nodes |= NODE_BIT(n);
	return nodes;
}

static void expect_young(const struct snapshot *s, bool hugetlb, struct advice *a)
{
	for (unsigned i = 0; i < s->n_vms; i++) {
		const struct snap_vm *vm = &s->vm[i];
		int64_t bytes = (int64_t)vm->ram_bytes, permille = 1000 * (int64_t)vm->n_vcpus;

		if (vm->data != DATA_WARMING_UP)
			continue;
		for (unsigned n = 0; vm->has_memory && n < s->topology.n_nodes; n++)
			bytes -= (int64_t)vm->mem_bytes[n];
		permille -= (int64_t)snap_vm_demand_permille(vm);
		expect(s, a, nodes_of(s, vm), MAX2(permille, INT64_C(0)),
			vm->memory_hugetlb == hugetlb ? MAX2(bytes, INT64_C(0)) : 0);
	}
}

static bool is_seen(const struct snapshot *s, const char *uuid)
{
	for (unsigned i = 0; uuid[0] && i < s->n_vms; i++)
		if (strcmp(s->vm[i].uuid, uuid) == 0)
			return true;
	return false;
}

static void what_is_left(const struct snapshot *s, const struct settings *set,
	const struct advise_request *req, const struct advise_start *starts, size_t n_starts,
	struct advice *a)
{
	topology_foreach (n, &s->topology) {
		const struct snap_node *node = &s->node[n];
		uint64_t part = node->mem_total_bytes / 1000 * set->reserve_permille;

		a->cpus_left_permille[n] =
			1000 * (int64_t)s->topology.known[n].n_cpus - (int64_t)node->busy_permille;
		a->bytes_left[n] = req->hugetlb ? (int64_t)node->huge_free_bytes
						: (int64_t)node->mem_free_bytes -
							  (int64_t)MAX2(part, set->reserve_bytes);
	}
	expect_young(s, req->hugetlb, a);
	for (size_t i = 0; i < n_starts; i++) {
		const struct advise_start *st = &starts[i];

		if (s->time_ns - st->time_ns < ADVISE_PENDING_NS && !is_seen(s, st->uuid))
			expect(s, a, st->nodes, 1000 * (int64_t)st->n_vcpus,
				st->hugetlb == req->hugetlb ? (int64_t)st->ram_bytes : 0);
	}
}

/* CPUs of node @n that others leave free, one for a vCPU each. */
static int64_t free_slots(const struct looking *l, unsigned n)
{
	int64_t left = MAX2(l->left->cpus_left_permille[n] / 1000, INT64_C(0));

	return MIN2(left, (int64_t)l->cpus[n]);
}

static int64_t slots_of(const struct looking *l, unsigned n)
{
	return l->overcommit ? l->cpus[n] : free_slots(l, n);
}

static int64_t bytes_of(const struct looking *l, unsigned n)
{
	const struct topology_node *node = &l->s->topology.node[n];
	bool may = node->has_memory && (idset_empty(&l->req->allowed_mems) ||
					       idset_has(&l->req->allowed_mems, node->id));

	return may ? MAX2(l->left->bytes_left[n], INT64_C(0)) : 0;
}

/* More CPUs for each vCPU, then more memory; the other way round when VMs are packed. */
static bool is_emptier(const struct choice *a, const struct choice *b)
{
	return a->free != b->free ? a->free > b->free : a->bytes_left > b->bytes_left;
}

static bool is_better(enum advise_mode mode, const struct choice *a, const struct choice *b)
{
	if (!b->nodes || a->n_nodes != b->n_nodes)
		return !b->nodes || a->n_nodes < b->n_nodes;
	if (a->spread != b->spread)
		return a->spread < b->spread;
	return mode == ADVISE_PACK ? is_emptier(b, a) : is_emptier(a, b);
}

struct sum {
	int64_t slots, bytes;
};

static struct sum sum_of(const struct looking *l, node_mask nodes)
{
	struct sum sum = {0};

	topology_foreach (n, &l->s->topology) {
		if (!(nodes & NODE_BIT(n)))
			continue;
		sum.slots += slots_of(l, n);
		sum.bytes += bytes_of(l, n);
	}
	return sum;
}

static bool suffices(const struct looking *l, const struct sum *sum)
{
	return sum->slots >= (int64_t)l->req->n_vcpus && sum->bytes >= (int64_t)l->req->ram_bytes;
}

/*
 * Of the nodes that give what @sum lacks the nearest to @from; of those equally near the one with
 * most CPUs to give, then most memory.
 */
static int next_near(
	const struct looking *l, unsigned from, node_mask without, const struct sum *sum)
{
	bool lacks_cpus = sum->slots < (int64_t)l->req->n_vcpus;
	bool lacks_bytes = sum->bytes < (int64_t)l->req->ram_bytes;
	const uint16_t *distance = l->s->topology.distance[from];
	int best = -1;

	topology_foreach (n, &l->s->topology) {
		int64_t more;

		if (without & NODE_BIT(n))
			continue;
		if (!(lacks_cpus && slots_of(l, n)) && !(lacks_bytes && bytes_of(l, n)))
			continue;
		if (best < 0 || distance[n] != distance[best]) {
			if (best < 0 || distance[n] < distance[best])
				best = (int)n;
			continue;
		}
		more = slots_of(l, n) - slots_of(l, (unsigned)best);
		if (more > 0 || (more == 0 && bytes_of(l, n) > bytes_of(l, (unsigned)best)))
			best = (int)n;
	}
	return best;
}

/* Leaves out what others made needless. */
static node_mask prune(const struct looking *l, node_mask nodes)
{
	topology_foreach (n, &l->s->topology) {
		struct sum sum = sum_of(l, nodes & ~NODE_BIT(n));

		if ((nodes & NODE_BIT(n)) && suffices(l, &sum))
			nodes &= ~NODE_BIT(n);
	}
	return nodes;
}

static struct choice grow(const struct looking *l, unsigned from)
{
	const struct topology *t = &l->s->topology;
	struct choice c = {.nodes = NODE_BIT(from)};
	struct sum sum = sum_of(l, c.nodes);
	int64_t cpus = 0, left = 0;

	while (!suffices(l, &sum)) {
		int n = next_near(l, from, c.nodes, &sum);

		if (n < 0)
			return (struct choice){0};
		c.nodes |= NODE_BIT(n);
		sum = sum_of(l, c.nodes);
	}
	c.nodes = prune(l, c.nodes);
	c.bytes_left = sum_of(l, c.nodes).bytes;
	topology_foreach (n, t) {
		if (!(c.nodes & NODE_BIT(n)))
			continue;
		c.n_nodes++;
		cpus += t->known[n].n_cpus;
		left += l->left->cpus_left_permille[n];
		topology_foreach (k, t) {
			if (c.nodes & NODE_BIT(k))
				c.spread += t->distance[n][k];
		}
	}
	c.free = cpus ? left / cpus : 0;
	return c;
}

static node_mask look(struct looking *l)
{
	struct choice best = {0};

	topology_foreach (n, &l->s->topology) {
		struct choice c;

		if (!l->cpus[n])
			continue;
		c = grow(l, n);
		if (c.nodes && is_better(l->req->mode, &c, &best))
			best = c;
	}
	return best.nodes;
}

static int explain(const struct looking *l, const struct settings *set, struct advice *a)
{
	int64_t slots = 0, bytes = 0, cpus = 0;
	bool cpus_met, bytes_met;

	topology_foreach (n, &l->s->topology) {
		cpus += l->cpus[n];
		if (a->nodes && !(a->nodes & NODE_BIT(n)))
			continue;
		slots += free_slots(l, n);
		bytes += bytes_of(l, n);
	}
	reason_begin(&a->reason);
	cpus_met = reason_gate(&a->reason, &(struct gate){.name = "cpus",
						   .unit = "CPUs",
						   .source = "its vCPUs",
						   .value = cpus,
						   .threshold = l->req->n_vcpus,
						   .node = -1,
						   .met = cpus >= (int64_t)l->req->n_vcpus});
	a->fits_cpus = reason_gate(&a->reason, &(struct gate){.name = "free-cpus",
						       .unit = "CPUs",
						       .source = "its vCPUs",
						       .value = slots,
						       .threshold = l->req->n_vcpus,
						       .node = -1,
						       .met = slots >= (int64_t)l->req->n_vcpus});
	bytes_met = reason_gate(&a->reason, &(struct gate){.name = "memory-headroom",
						    .unit = "MiB",
						    .source = settings_source(set, SETTING_RESERVE),
						    .value = bytes >> 20,
						    .threshold = (int64_t)(l->req->ram_bytes >> 20),
						    .node = -1,
						    .met = bytes >= (int64_t)l->req->ram_bytes});
	a->reason.why = cpus_met && bytes_met ? WHY_READY : WHY_REFUSED;
	return !cpus_met ? ADVISE_E_CPUS : !bytes_met ? ADVISE_E_MEMORY : 0;
}

int advise(const struct snapshot *s, const struct settings *set, const struct advise_request *req,
	const struct advise_start *starts, size_t n_starts, struct advice *ret)
{
	struct looking l = {.s = s, .req = req, .left = ret};

	memset(ret, 0, sizeof(*ret));
	what_is_left(s, set, req, starts, n_starts, ret);
	topology_foreach (n, &s->topology) {
		l.cpus[n] = idset_empty(&req->allowed_cpus)
				    ? s->topology.known[n].n_cpus
				    : topology_count_cpus(&s->topology, n, &req->allowed_cpus);
	}
	for (unsigned pass = 0; !ret->nodes && pass < 2; pass++) {
		l.overcommit = pass;
		ret->nodes = look(&l);
	}
	return explain(&l, set, ret);
}
