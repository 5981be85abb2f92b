/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tests/property/gen.h"

#include <time.h>

#define SIZE 8u

uint64_t gen_next(struct gen *g)
{
	uint64_t z = g->state += UINT64_C(0x9e3779b97f4a7c15); /* splitmix64 */

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

uint64_t gen_range(struct gen *g, uint64_t min, uint64_t max)
{
	return min + gen_next(g) % (max - min + 1);
}

bool gen_chance(struct gen *g, unsigned permille)
{
	return gen_range(g, 0, 999) < permille;
}

static void gen_distances(struct gen *g, struct topology *t)
{
	uint16_t near = (uint16_t)gen_range(g, 11, 21),
		 far = (uint16_t)(near + gen_range(g, 1, 15));
	unsigned kind = (unsigned)gen_range(g, 0, 3);

	topology_foreach (i, t) {
		topology_foreach (k, t) {
			unsigned hop = i > k ? i - k : k - i;

			t->distance[i][k] =
				i == k      ? 10
				: kind == 0 ? near
				: kind == 1 ? (hop == 1 || hop == t->n_nodes - 1 ? near : far)
				: kind == 2 ? (i / 2 == k / 2 ? near : far)
					    : (uint16_t)gen_range(g, 0, 300);
		}
	}
}

void gen_topology(struct gen *g, struct topology *t)
{
	gen_topology_of(g, 8, t);
}

void gen_topology_of(struct gen *g, unsigned max_nodes, struct topology *t)
{
	unsigned id = (unsigned)gen_range(g, 0, 3), cpu = 0;

	memset(t, 0, sizeof(*t));
	t->n_nodes = (unsigned)gen_range(g, 1, max_nodes);
	topology_foreach (n, t) {
		struct topology_node *node = &t->node[n];
		bool plain = n == 0;

		node->id = id;
		id += (unsigned)gen_range(g, 1, gen_chance(g, 100) ? 100 : 1);
		node->has_cpu = plain || gen_chance(g, 850);
		node->has_memory = plain || gen_chance(g, 900);
		for (uint64_t c = gen_range(g, 2, 8); node->has_cpu && c > 0; c--)
			idset_add(&node->cpus, cpu++);
	}
	gen_distances(g, t);
	topology_finish(t);
}

void gen_permute(struct gen *g, const struct topology *t, struct topology *ret, unsigned *ret_to)
{
	topology_foreach (i, t) {
		unsigned k = (unsigned)gen_range(g, 0, i);

		ret_to[i] = i;
		ret_to[i] = ret_to[k];
		ret_to[k] = i;
	}
	memset(ret, 0, sizeof(*ret));
	ret->n_nodes = t->n_nodes;
	topology_foreach (i, t) {
		ret->node[ret_to[i]] = t->node[i];
		ret->node[ret_to[i]].id = t->node[ret_to[i]].id; /* ids stay ascending */
		topology_foreach (k, t) {
			ret->distance[ret_to[i]][ret_to[k]] = t->distance[i][k];
		}
	}
	topology_finish(ret);
}

void gen_faults(struct gen *g, const struct topology *t, uint64_t max, uint64_t *ret)
{
	topology_foreach (n, t) {
		ret[n] = gen_chance(g, 300) ? 0 : gen_range(g, 0, max);
	}
}

void gen_idset(struct gen *g, struct idset *ret)
{
	unsigned ranges = (unsigned)gen_range(g, 0, 20);

	idset_clear(ret);
	if (gen_chance(g, 30))
		for (unsigned id = 0; id < IDSET_MAX; id++)
			idset_add(ret, id);
	for (unsigned i = 0; i < ranges; i++) {
		unsigned first = (unsigned)gen_range(g, 0, IDSET_MAX - 1);
		unsigned last = first + (unsigned)(gen_chance(g, 500) ? 0 : gen_range(g, 0, 200));

		for (unsigned id = first; id <= last; id++)
			idset_add(ret, id);
	}
	/* every other id: the longest text there is */
	if (gen_chance(g, 30))
		for (unsigned id = 0; id < IDSET_MAX; id += 2)
			idset_remove(ret, id);
}

static int gen_cpu_node(struct gen *g, const struct snapshot *s)
{
	unsigned n;

	do
		n = (unsigned)gen_range(g, 0, s->topology.n_nodes - 1);
	while (!s->topology.node[n].has_cpu);
	return (int)n;
}

/* All of its memory on one node. */
static void gather_memory(struct gen *g, const struct snapshot *s, struct snap_vm *vm)
{
	unsigned n;

	do
		n = (unsigned)gen_range(g, 0, s->topology.n_nodes - 1);
	while (!s->topology.node[n].has_memory);
	memset(vm->mem_bytes, 0, s->topology.n_nodes * sizeof(*vm->mem_bytes));
	vm->mem_bytes[n] = vm->ram_bytes;
}

/* Guest NUMA: each cell has a part of the memory and some of the vCPUs. */
static void gen_cells(struct gen *g, const struct snapshot *s, struct snap_vm *vm)
{
	unsigned n = (unsigned)gen_range(g, 2, 4);
	uint64_t left[TOPOLOGY_NODES_MAX];

	if (snap_vm_alloc_cells(vm, n, s->topology.n_nodes) < 0)
		abort();
	memcpy(left, vm->mem_bytes, s->topology.n_nodes * sizeof(*left));
	for (unsigned k = 0; k < n; k++)
		topology_foreach (m, &s->topology) {
			uint64_t part = k + 1 == n ? left[m] : gen_range(g, 0, left[m] >> 12) << 12;

			vm->cell[k].mem_bytes[m] = part;
			vm->cell[k].ram_bytes += part;
			left[m] -= part;
		}
	for (unsigned k = 0; k < vm->n_vcpus; k++)
		vm->vcpu[k].cell = k * n / vm->n_vcpus;
}

static void gen_vm(struct gen *g, struct snapshot *s, unsigned i)
{
	struct snap_vm *vm = &s->vm[i];
	unsigned n_vcpus = (unsigned)gen_range(g, 1, gen_chance(g, 200) ? 16 : 6);
	uint64_t ram = gen_range(g, 64, 4096) << 20, left = ram;
	bool private_only = gen_chance(g, 200), together = gen_chance(g, 600);

	snprintf(vm->name, sizeof(vm->name), "vm%u", i);
	snprintf(vm->uuid, sizeof(vm->uuid), "00000000-0000-0000-0000-%012u", i);
	vm->pid = 1000 + (pid_t)i;
	vm->start_ticks = 1;
	vm->ram_bytes = ram;
	vm->windows = 10;
	vm->data = gen_chance(g, 250) ? DATA_STALE : DATA_OK;
	vm->memory_fixed = gen_chance(g, 100);
	vm->foreign_pin = gen_chance(g, 100);
	vm->followers_permille = gen_chance(g, 300) ? (unsigned)gen_range(g, 0, 500) : 0;
	if (snap_vm_alloc(vm, n_vcpus, s->topology.n_nodes) < 0)
		abort();
	topology_foreach (n, &s->topology) {
		if (s->topology.node[n].has_cpu && (n == 0 || gen_chance(g, 900)))
			idset_or(&vm->allowed_cpus, &s->topology.node[n].cpus);
		if (s->topology.node[n].has_memory && s->topology.node[n].has_cpu &&
			(n == 0 || gen_chance(g, 900)))
			idset_add(&vm->allowed_mems, s->topology.node[n].id);
		if (s->topology.node[n].has_memory) {
			vm->mem_bytes[n] =
				gen_chance(g, 500) ? 0 : gen_range(g, 0, left >> 12) << 12;
			left -= vm->mem_bytes[n];
		}
	}
	vm->mem_bytes[0] += left;
	vm->has_memory = true;
	if (gen_chance(g, 400))
		gather_memory(g, s, vm);
	for (unsigned k = 0; k < n_vcpus; k++) {
		struct snap_vcpu *v = &vm->vcpu[k];

		v->id = k;
		v->tid = 2000 + (pid_t)(i * 100 + k);
		if (k && together)
			v->node = vm->vcpu[0].node;
		else
			v->node = gen_cpu_node(g, s);
		v->run_permille = (unsigned)gen_range(g, 1, 900);
		for (unsigned n = 0; n < s->topology.n_nodes; n++) {
			/* where it has hardly any memory, faults are old news, and are not counted
			 */
			if (vm->mem_bytes[n] * 50 < vm->ram_bytes)
				continue;
			v->faults[2 * n + FAULT_PRIVATE] = FAULT_UNIT * gen_range(g, 0, 1000);
			v->faults[2 * n + FAULT_SHARED] =
				private_only ? 0 : FAULT_UNIT * gen_range(g, 0, 1000);
		}
	}
	if (gen_chance(g, 150))
		gen_cells(g, s, vm);
	for (unsigned k = 1; k < n_vcpus && gen_chance(g, 100); k++) {
		vm->vcpu[k].idle = gen_chance(g, 500);
		vm->vcpu[k].run_permille = vm->vcpu[k].idle ? 0 : vm->vcpu[k].run_permille;
		vm->vcpu[k].tid = gen_chance(g, 700) ? vm->vcpu[k].tid : 0;
		vm->vcpu[k].node = vm->vcpu[k].tid ? vm->vcpu[k].node : -1;
	}
	if (gen_chance(g, 100))
		vm->device_node = (int)gen_range(g, 0, s->topology.n_nodes - 1);
}

struct snapshot *gen_snapshot(struct gen *g, unsigned size)
{
	struct snapshot *s = snapshot_new();
	bool full; /* no room to spare: VMs can only change places */

	if (!s)
		abort();
	gen_topology(g, &s->topology);
	s->seq = 1;
	s->time_ns = UINT64_C(1000000000000);
	s->balancing = 1;
	s->n_vms = (unsigned)gen_range(g, 1, size ? size : 1);
	s->vm = calloc(s->n_vms, sizeof(*s->vm));
	if (!s->vm)
		abort();
	for (unsigned i = 0; i < s->n_vms; i++)
		gen_vm(g, s, i);
	full = gen_chance(g, 400);
	topology_foreach (n, &s->topology) {
		uint64_t used = 0;

		for (unsigned i = 0; i < s->n_vms; i++) {
			used += s->vm[i].mem_bytes[n];
			for (unsigned k = 0; k < s->vm[i].n_vcpus; k++)
				if (s->vm[i].vcpu[k].tid && s->vm[i].vcpu[k].node == (int)n)
					s->node[n].busy_permille += s->vm[i].vcpu[k].run_permille;
		}
		s->node[n].mem_free_bytes =
			s->topology.node[n].has_memory && !full ? gen_range(g, 0, 8192) << 20 : 0;
		s->node[n].mem_total_bytes = used + s->node[n].mem_free_bytes;
		/* others keep its CPUs busy */
		if (full)
			s->node[n].busy_permille = MAX2(s->node[n].busy_permille,
				1000 * idset_count(&s->topology.node[n].cpus));
	}
	return s;
}

void property_run(struct tap *tap_, property_fn fn)
{
	const char *only = getenv("NUMAHERD_SEED"), *cases = getenv("NUMAHERD_CASES");
	const char *from = getenv("NUMAHERD_FROM");
	uint64_t n = cases ? strtoull(cases, NULL, 10) : 400,
		 from_clock = from ? strtoull(from, NULL, 10) : (uint64_t)time(NULL);
	char why[512] = "";

	for (uint64_t i = 0; i < (only ? 1 : n); i++) {
		/* half of the seeds are always the same, half are new each time */
		uint64_t seed = only ? strtoull(only, NULL, 10) : i % 2 ? from_clock + i : i;
		unsigned size = SIZE;

		if (fn(seed, size, why, sizeof(why)))
			continue;
		while (size > 1 && !fn(seed, size / 2, why, sizeof(why)))
			size /= 2;
		fn(seed, size, why, sizeof(why));
		printf("# NUMAHERD_SEED=%" PRIu64 " size %u: %s\n", seed, size, why);
		tap_->failures++;
		return;
	}
}
