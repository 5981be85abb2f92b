/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tests/builder.h"

#include <stdio.h>
#include <string.h>

static struct snapshot *build_host(
	unsigned n_nodes, unsigned cpus, const uint16_t *rows, unsigned n_vms)
{
	struct snapshot *s = snapshot_new();

	s->topology.n_nodes = n_nodes;
	for (unsigned i = 0; i < n_nodes; i++) {
		struct topology_node *node = &s->topology.node[i];

		node->id = i;
		node->has_cpu = node->has_memory = true;
		for (unsigned c = 0; c < cpus; c++)
			idset_add(&node->cpus, i * cpus + c);
		for (unsigned k = 0; k < n_nodes; k++)
			s->topology.distance[i][k] = rows[i * n_nodes + k];
		s->node[i].mem_total_bytes = 16 * GIB;
		s->node[i].mem_free_bytes = 12 * GIB;
	}
	topology_finish(&s->topology);
	s->balancing = 1;
	s->seq = 1;
	s->time_ns = UINT64_C(1000) * 1000000000;
	s->vm = calloc(n_vms ? n_vms : 1, sizeof(*s->vm));
	s->n_vms = n_vms;
	return s;
}

struct snapshot *build_two(unsigned n_vms)
{
	static const uint16_t rows[] = {10, 21, 21, 10};

	return build_host(2, 4, rows, n_vms);
}

struct snapshot *build_mesh4(unsigned n_vms)
{
	static const uint16_t rows[] = {
		10, 16, 16, 22, 16, 10, 22, 16, 16, 22, 10, 16, 22, 16, 16, 10};

	return build_host(4, 2, rows, n_vms);
}

struct snap_vm *build_vm(struct snapshot *s, unsigned i, const char *name, unsigned n_vcpus,
	uint64_t ram_bytes, const int *at, unsigned n_at)
{
	struct snap_vm *vm = &s->vm[i];

	snprintf(vm->name, sizeof(vm->name), "%s", name);
	snprintf(vm->uuid, sizeof(vm->uuid), "00000000-0000-0000-0000-%012u", i);
	vm->pid = 1000 + (pid_t)i * 100;
	vm->start_ticks = 1;
	vm->ram_bytes = ram_bytes;
	vm->page_size_bytes = 4096;
	vm->windows = 10;
	snap_vm_alloc(vm, n_vcpus, s->topology.n_nodes);
	for (unsigned k = 0; k < n_vcpus; k++) {
		vm->vcpu[k].id = k;
		vm->vcpu[k].tid = vm->pid + 1 + (pid_t)k;
		vm->vcpu[k].node = at[k % n_at];
		vm->vcpu[k].run_permille = 100;
	}
	topology_foreach (n, &s->topology) {
		idset_or(&vm->allowed_cpus, &s->topology.node[n].cpus);
		idset_add(&vm->allowed_mems, s->topology.node[n].id);
	}
	return vm;
}

void build_faults(
	struct snapshot *s, struct snap_vm *vm, enum fault_kind kind, const uint64_t *faults)
{
	for (unsigned k = 0; k < vm->n_vcpus; k++)
		for (unsigned n = 0; n < s->topology.n_nodes; n++)
			vm->vcpu[k].faults[2 * n + kind] = faults[n];
}

void build_memory(struct snapshot *s, struct snap_vm *vm, const uint64_t *bytes)
{
	memcpy(vm->mem_bytes, bytes, s->topology.n_nodes * sizeof(*bytes));
	vm->has_memory = true;
}

void build_decide(struct snapshot *s, const struct settings *set, struct history *h, unsigned times,
	struct plan *ret)
{
	_cleanup_(decide_space_clear) struct decide_space space = {0};

	memset(ret, 0, sizeof(*ret));
	for (unsigned i = 0; i < times; i++) {
		s->seq++;
		s->time_ns += UINT64_C(10) * 1000000000;
		if (decide(s, set, h, &space, ret) < 0)
			abort();
	}
}

const char *build_text(const struct snapshot *s, const struct plan *p, unsigned i)
{
	static char text[REASON_TEXT_MAX];

	return explain_text(s, p, i, text);
}
