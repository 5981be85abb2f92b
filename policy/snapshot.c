/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Why snapshots own everything they point to: a reader may keep one for as long as it likes while
 * the next one is being filled, so nothing in it may belong to anybody else.
 */
#include "policy/snapshot.h"

#include <errno.h>
#include <string.h>

#include "policy/weight.h"

static const char *const data_names[DATA_STATES] = {
	[DATA_OK] = "ok",
	[DATA_WARMING_UP] = "warming-up",
	[DATA_STALE] = "stale",
	[DATA_NO_SCAN] = "no-scan",
	[DATA_HUGETLB] = "hugetlb",
	[DATA_BOUND] = "bound",
	[DATA_PINNED] = "pinned",
	[DATA_BALANCING_OFF] = "balancing-off",
	[DATA_NO_PERMISSION] = "no-permission",
};

static const char *const data_sentences[DATA_STATES] = {
	[DATA_OK] = "hint faults are coming in",
	[DATA_WARMING_UP] = "too few hint faults yet; where its pages lie is used instead",
	[DATA_STALE] = "no new hint faults; where its pages lie is used instead",
	[DATA_NO_SCAN] = "the kernel does not scan it; where its pages lie is used instead",
	[DATA_HUGETLB] = "hugetlb memory has no hint faults; where its pages lie is used instead",
	[DATA_BOUND] = "its memory is bound by policy; where its pages lie is used instead",
	[DATA_PINNED] = "a passed-through device holds its pages",
	[DATA_BALANCING_OFF] =
		"kernel.numa_balancing is 0, so there are no hint faults; where its pages lie is used",
	[DATA_NO_PERMISSION] = "its fault counters may not be read; where its pages lie is used",
};

const char *data_state_name(enum data_state s)
{
	return s < DATA_STATES ? data_names[s] : "?";
}

const char *data_state_sentence(enum data_state s)
{
	return s < DATA_STATES ? data_sentences[s] : "?";
}

struct snapshot *snapshot_new(void)
{
	return calloc(1, sizeof(struct snapshot));
}

void snap_vm_clear(struct snap_vm *vm)
{
	for (unsigned i = 0; i < vm->n_vcpus; i++) {
		free(vm->vcpu[i].faults);
		free(vm->vcpu[i].raw);
	}
	for (unsigned i = 0; i < vm->n_cells; i++)
		free(vm->cell[i].mem_bytes);
	free(vm->cell);
	free(vm->vcpu);
	free(vm->mem_bytes);
	memset(vm, 0, sizeof(*vm));
}

struct snapshot *snapshot_free(struct snapshot *s)
{
	if (!s)
		return NULL;
	for (unsigned i = 0; i < s->n_vms; i++)
		snap_vm_clear(&s->vm[i]);
	free(s->vm);
	free(s);
	return NULL;
}

int snap_vm_alloc(struct snap_vm *vm, unsigned n_vcpus, unsigned n_nodes)
{
	size_t cells = (size_t)n_nodes * FAULT_KINDS;

	/* calloc(0) may return NULL, which is not an error here: never ask for 0 */
	vm->vcpu = calloc(n_vcpus ? n_vcpus : 1, sizeof(*vm->vcpu));
	vm->mem_bytes = calloc(n_nodes ? n_nodes : 1, sizeof(*vm->mem_bytes));
	if (!vm->vcpu || !vm->mem_bytes)
		return -ENOMEM;
	vm->n_vcpus = n_vcpus;
	vm->device_node = -1;
	for (unsigned i = 0; i < n_vcpus; i++) {
		vm->vcpu[i].node = -1;
		vm->vcpu[i].faults = calloc(cells ? cells : 1, sizeof(uint64_t));
		vm->vcpu[i].raw = calloc(cells ? cells : 1, sizeof(uint64_t));
		if (!vm->vcpu[i].faults || !vm->vcpu[i].raw)
			return -ENOMEM;
	}
	return 0;
}

int snap_vm_alloc_cells(struct snap_vm *vm, unsigned n_cells, unsigned n_nodes)
{
	struct snap_cell *cell = calloc(n_cells ? n_cells : 1, sizeof(*cell));
	bool ok = cell != NULL;

	for (unsigned i = 0; ok && i < n_cells; i++) {
		cell[i].id = i;
		cell[i].mem_bytes = calloc(n_nodes ? n_nodes : 1, sizeof(uint64_t));
		ok = cell[i].mem_bytes != NULL;
	}
	if (!ok) {
		for (unsigned i = 0; cell && i < n_cells; i++)
			free(cell[i].mem_bytes);
		free(cell);
		return -ENOMEM;
	}
	vm->cell = cell;
	vm->n_cells = n_cells;
	return 0;
}

const struct snap_vm *snapshot_find(
	const struct snapshot *s, const char *uuid, pid_t pid, uint64_t start_ticks)
{
	for (unsigned i = 0; s && i < s->n_vms; i++)
		if (s->vm[i].pid == pid && s->vm[i].start_ticks == start_ticks &&
			strcmp(s->vm[i].uuid, uuid) == 0)
			return &s->vm[i];
	return NULL;
}

void snap_vcpu_task_faults(const struct snapshot *s, const struct snap_vcpu *vcpu, uint64_t *ret)
{
	topology_foreach (n, &s->topology) {
		ret[n] = vcpu->faults[2 * n + FAULT_SHARED] + vcpu->faults[2 * n + FAULT_PRIVATE];
	}
}

void snap_vm_group_faults(const struct snapshot *s, const struct snap_vm *vm, uint64_t *ret)
{
	uint64_t task[TOPOLOGY_NODES_MAX];

	memset(ret, 0, s->topology.n_nodes * sizeof(*ret));
	for (unsigned i = 0; i < vm->n_vcpus; i++) {
		if (!vm->vcpu[i].tid || vm->vcpu[i].idle)
			continue;
		snap_vcpu_task_faults(s, &vm->vcpu[i], task);
		topology_foreach (n, &s->topology) {
			ret[n] += task[n];
		}
	}
}

/* a * 1000 / b without overflow for any a <= b. */
static int permille(uint64_t a, uint64_t b)
{
	if (b > UINT64_MAX / 1000)
		return (int)(a / (b / 1000));
	return (int)(a * 1000 / b);
}

int snap_vm_memory_locality_permille(const struct snapshot *s, const struct snap_vm *vm)
{
	bool here[TOPOLOGY_NODES_MAX] = {false};
	uint64_t local = 0, total = 0;
	bool any = false;

	for (unsigned i = 0; i < vm->n_vcpus; i++)
		if (vm->vcpu[i].tid && !vm->vcpu[i].idle && vm->vcpu[i].node >= 0)
			any = here[vm->vcpu[i].node] = true;
	topology_foreach (n, &s->topology) {
		total += vm->mem_bytes[n];
		local += here[n] ? vm->mem_bytes[n] : 0;
	}
	return !any || !vm->has_memory || !total ? -1 : permille(local, total);
}

int snap_vm_fault_locality_permille(const struct snapshot *s, const struct snap_vm *vm)
{
	uint64_t task[TOPOLOGY_NODES_MAX], local = 0, total = 0;

	for (unsigned i = 0; i < vm->n_vcpus; i++) {
		const struct snap_vcpu *vcpu = &vm->vcpu[i];

		if (!vcpu->tid || vcpu->idle || vcpu->node < 0)
			continue;
		snap_vcpu_task_faults(s, vcpu, task);
		total += weight_sum(&s->topology, task);
		local += task[vcpu->node];
	}
	return total ? permille(local, total) : -1;
}

unsigned snap_vm_running_vcpus(const struct snap_vm *vm)
{
	unsigned n = 0;

	for (unsigned i = 0; i < vm->n_vcpus; i++)
		n += vm->vcpu[i].tid && !vm->vcpu[i].idle;
	return n;
}

unsigned snap_vm_demand_permille(const struct snap_vm *vm)
{
	unsigned sum = 0;

	for (unsigned i = 0; i < vm->n_vcpus; i++)
		if (vm->vcpu[i].tid)
			sum += vm->vcpu[i].run_permille + vm->vcpu[i].wait_permille;
	return sum;
}
