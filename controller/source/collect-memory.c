/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Why so little is read: numa_maps walks page tables under the process's mmap lock, and a guest of
 * hundreds of gigabytes stands still meanwhile. So it is read rarely, and where it takes long never
 * again; where pages lie is asked of the kernel page by page, for a sample.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "controller/host/memuse.h"
#include "controller/source/collect-private.h"

#define MAPS_INTERVAL_NS (UINT64_C(300) * 1000000000) /* numa_maps: once in five minutes */
#define RAM_INTERVAL_NS (UINT64_C(30) * 1000000000)   /* looking for RAM mappings again */
#define MAPS_COST_MAX_NS (UINT64_C(2) * 1000000000)   /* and never again where it takes longer */

static uint64_t clock_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

/* numa_maps: whether RAM is bound or hugetlb, and, on a captured host, where it lies. */
static void read_numa_maps(struct collecting *x, struct snap_vm *vm, struct observed_vm *obs)
{
	_cleanup_free_ struct memory_use *use = calloc(1, sizeof(*use));
	struct numa_maps_units units = {.page_bytes = (uint64_t)sysconf(_SC_PAGESIZE),
		.huge_bytes = x->nodes->huge_default_bytes};
	_cleanup_ram_backends_ struct ram_backends backends = {0};
	uint64_t begin = clock_now_ns();

	obs->maps_read_ns = x->c->now_ns;
	ram_backends_read(x->c->fs, vm->pid, &backends); /* without it cells stay unnamed */
	if (!use || memory_use_read(x->c->fs, vm->pid, &x->s->topology, &units, &obs->ram,
			    &backends, use) != 0)
		return;
	obs->maps_cost_ns = clock_now_ns() - begin;
	obs->bound = use->bound;
	vm->memory_hugetlb |= use->hugetlb;
	if (x->c->pages)
		return;
	topology_foreach (n, &x->s->topology) {
		vm->mem_bytes[n] = use->bytes[MEMORY_GUEST_RAM][n];
	}
	vm->has_memory = true;
}

static const struct observed_vm *observed_before(const struct collect *c, const struct snap_vm *vm)
{
	const struct observed *o = c->prev_observed;

	for (unsigned i = 0; o && i < o->n_vms; i++)
		if (o->vm[i].pid == vm->pid && o->vm[i].start_ticks == vm->start_ticks)
			return &o->vm[i];
	return NULL;
}

/* The backends of the command line, and those that QEMU says were plugged in since. */
static int all_backends(struct collecting *x, const struct virt_vm *v, const struct snap_vm *vm,
	struct ram_backends *ret)
{
	int r = ram_backends_read(x->c->fs, vm->pid, ret);

	/* without them paths may still betray which mappings are guest RAM */
	for (unsigned i = 0; r >= 0 && v->manager == VIRT_QMP && i < v->n_backends; i++)
		r = ram_backends_complete(ret, v->backend_id[i], v->backend_bytes[i]);
	return r < 0 ? r : 0;
}

/*
 * Where guest RAM is mapped. It changes with memory hot-plug only, so the mappings found before are
 * used for a while: reading maps takes the process's mmap lock.
 */
static int find_ram(struct collecting *x, const struct virt_vm *v, const struct snap_vm *vm,
	const struct guestram_units *units, const struct observed_vm *before,
	struct observed_vm *obs)
{
	_cleanup_ram_backends_ struct ram_backends backends = {0};
	int r;

	obs->ram_bytes = vm->ram_bytes;
	if (before && before->ram.n && before->ram_bytes == vm->ram_bytes &&
		x->c->now_ns - before->ram_read_ns < RAM_INTERVAL_NS) {
		obs->ram = before->ram;
		obs->ram_read_ns = before->ram_read_ns;
		obs->ram.range = calloc(before->ram.n, sizeof(*obs->ram.range));
		if (!obs->ram.range) {
			obs->ram.n = 0;
			return -ENOMEM;
		}
		memcpy(obs->ram.range, before->ram.range, before->ram.n * sizeof(*obs->ram.range));
		return 0;
	}
	r = all_backends(x, v, vm, &backends);
	if (r < 0)
		return r;
	r = guestram_read(x->c->fs, vm->pid, &backends, units, &obs->ram);
	obs->ram_read_ns = x->c->now_ns;
	return r;
}

void collect_memory(
	struct collecting *x, const struct virt_vm *v, struct snap_vm *vm, struct observed_vm *obs)
{
	struct guestram_units units = {.page_bytes = (uint64_t)sysconf(_SC_PAGESIZE),
		.huge_bytes = x->nodes->huge_default_bytes};
	const struct observed_vm *before = observed_before(x->c, vm);
	int r;

	r = find_ram(x, v, vm, &units, before, obs);
	if (r != 0) {
		snprintf(vm->problem, sizeof(vm->problem),
			"its guest RAM was not found among its mappings (%s)", host_strerror(r));
		return;
	}
	for (size_t i = 0; i < obs->ram.n; i++)
		vm->memory_hugetlb |= obs->ram.range[i].kind == GUESTRAM_HUGETLB;
	if (before) {
		obs->bound = before->bound;
		obs->maps_read_ns = before->maps_read_ns;
		obs->maps_cost_ns = before->maps_cost_ns;
	}
	if (!x->c->pages || !obs->maps_read_ns ||
		(x->c->now_ns - obs->maps_read_ns > MAPS_INTERVAL_NS &&
			obs->maps_cost_ns < MAPS_COST_MAX_NS))
		read_numa_maps(x, vm, obs);
	if (!x->c->pages)
		return;
	r = source_residency_read(x->c->pages, vm->pid, &obs->ram, &x->s->topology,
		RESIDENCY_SAMPLES_DEFAULT, (unsigned)x->s->seq, vm->mem_bytes);
	vm->has_memory = r == 0;
	if (r == HOST_E_PERM)
		snprintf(vm->memory_fixed_why, sizeof(vm->memory_fixed_why),
			"no permission to look at its pages (CAP_SYS_PTRACE is missing)");
}

void collect_fixed_memory(const struct virt_vm *v, bool bound, struct snap_vm *vm)
{
	char nodes[64];

	vm->memory_hugetlb |= v->hugepages;
	if (v->pci_hostdev)
		snprintf(vm->memory_fixed_why, sizeof(vm->memory_fixed_why),
			"a passed-through PCI device (VFIO) holds its memory");
	else if (v->numatune_strict)
		snprintf(vm->memory_fixed_why, sizeof(vm->memory_fixed_why), "%s %s",
			v->manager == VIRT_QMP ? "QEMU's policy=bind host-nodes"
					       : "libvirt numatune strict nodeset",
			idset_format(&v->nodeset, nodes, sizeof(nodes)));
	else if (bound && !vm->memory_fixed_why[0])
		snprintf(vm->memory_fixed_why, sizeof(vm->memory_fixed_why),
			"its memory is bound to nodes by policy");
	vm->memory_fixed = vm->memory_fixed_why[0] != '\0';
}
