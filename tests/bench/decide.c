/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a decision costs, as a multiple of one plain pass over the fault matrix that it reads, for
 * hosts of 10 to 10,000 vCPUs with 4 and 16 nodes. Time alone says little on a shared machine: both
 * are taken in turns, and the shortest of each counts.
 *
 * Two states of each host: *at rest* (every VM has its home and its memory there), which is what
 * nearly all ticks of a daemon see and what is compared with the aims, and *scattered* (every VM
 * wants something), which is what the first tick after a start sees.
 */
#include <malloc.h>
#include <stdio.h>
#include <time.h>

#include "policy/decide.h"
#include "tests/property/gen.h"

#define VCPUS_PER_VM 4u
#define CPUS_PER_NODE 64u
#define MIB (UINT64_C(1) << 20)

/* -- every allocation of the program, counted (the linker puts these in the place of libc's) */

static struct {
	uint64_t calls;
	uint64_t live_bytes;
} heap;

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
void *__real_reallocarray(void *p, size_t n, size_t size);
void __real_free(void *p);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);
void *__wrap_reallocarray(void *p, size_t n, size_t size);
void __wrap_free(void *p);

static void *counted(void *p)
{
	heap.calls++;
	heap.live_bytes += malloc_usable_size(p);
	return p;
}

void *__wrap_malloc(size_t n)
{
	return counted(__real_malloc(n));
}

void *__wrap_calloc(size_t n, size_t size)
{
	return counted(__real_calloc(n, size));
}

void *__wrap_realloc(void *p, size_t n)
{
	heap.live_bytes -= malloc_usable_size(p);
	return counted(__real_realloc(p, n));
}

void *__wrap_reallocarray(void *p, size_t n, size_t size)
{
	heap.live_bytes -= malloc_usable_size(p);
	return counted(__real_reallocarray(p, n, size));
}

void __wrap_free(void *p)
{
	heap.live_bytes -= malloc_usable_size(p);
	__real_free(p);
}

/* -- hosts */

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

/* Groups of four nodes: near ones in a group, far ones across; a glueless mesh with four nodes. */
static void make_topology(struct topology *t, unsigned n_nodes)
{
	unsigned cpu = 0;

	t->n_nodes = n_nodes;
	topology_foreach (n, t) {
		t->node[n].id = n;
		t->node[n].has_cpu = t->node[n].has_memory = true;
		for (unsigned c = 0; c < CPUS_PER_NODE; c++)
			idset_add(&t->node[n].cpus, cpu++);
		topology_foreach (k, t) {
			unsigned hop = (n ^ k) & 3;

			t->distance[n][k] = n == k ? 10 : n / 4 != k / 4 ? 32 : hop == 3 ? 22 : 16;
		}
	}
	topology_finish(t);
}

/* A VM whose memory and faults are around @home; its vCPUs are there too, or anywhere. */
static void make_vm(struct gen *g, struct snapshot *s, unsigned i, unsigned n_vcpus,
	unsigned run_permille, bool at_rest)
{
	unsigned n_nodes = s->topology.n_nodes, home = i % n_nodes;
	struct snap_vm *vm = &s->vm[i];

	snprintf(vm->name, sizeof(vm->name), "vm%u", i);
	snprintf(vm->uuid, sizeof(vm->uuid), "00000000-0000-0000-0000-%012u", i);
	vm->pid = 1000 + (pid_t)i;
	vm->start_ticks = 1;
	vm->windows = 10;
	vm->data = DATA_OK;
	if (snap_vm_alloc(vm, n_vcpus, n_nodes) < 0)
		abort();
	topology_foreach (n, &s->topology) {
		idset_or(&vm->allowed_cpus, &s->topology.node[n].cpus);
		idset_add(&vm->allowed_mems, n);
		vm->mem_bytes[n] = (n == home ? 960 : 4) * MIB;
		vm->ram_bytes += vm->mem_bytes[n];
		s->node[n].mem_free_bytes -= vm->mem_bytes[n];
	}
	vm->has_memory = true;
	for (unsigned k = 0; k < n_vcpus; k++) {
		struct snap_vcpu *v = &vm->vcpu[k];
		unsigned on = at_rest ? home : (unsigned)gen_range(g, 0, n_nodes - 1);

		v->id = k;
		v->tid = 2000 + (pid_t)(i * VCPUS_PER_VM + k);
		v->node = (int)on;
		v->run_permille = run_permille;
		s->node[on].busy_permille += v->run_permille;
		topology_foreach (n, &s->topology) {
			uint64_t most = n == home ? 100000 : 1000;

			v->faults[2 * n + FAULT_PRIVATE] = gen_range(g, most / 2, most);
			v->faults[2 * n + FAULT_SHARED] = gen_range(g, most / 4, most / 2);
		}
	}
}

static struct snapshot *make_host(unsigned n_vcpus, unsigned n_nodes, bool at_rest)
{
	struct gen g = {7};
	struct snapshot *s = snapshot_new();
	/* half of the host is busy */
	unsigned run_permille = MIN2(900u, 500 * CPUS_PER_NODE * n_nodes / n_vcpus);

	if (!s)
		abort();
	make_topology(&s->topology, n_nodes);
	s->seq = 1;
	s->time_ns = UINT64_C(1000000000000);
	s->balancing = 1;
	topology_foreach (n, &s->topology) {
		s->node[n].mem_total_bytes = MIB << 20;
		s->node[n].mem_free_bytes = MIB << 20;
	}
	s->vm = calloc((n_vcpus + VCPUS_PER_VM - 1) / VCPUS_PER_VM, sizeof(*s->vm));
	if (!s->vm)
		abort();
	for (; n_vcpus; s->n_vms++) {
		unsigned n = MIN2(n_vcpus, VCPUS_PER_VM);

		make_vm(&g, s, s->n_vms, n, run_permille, at_rest);
		n_vcpus -= n;
	}
	return s;
}

/* -- measuring */

static uint64_t plain_pass(const struct snapshot *s)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < s->n_vms; i++)
		for (unsigned k = 0; k < s->vm[i].n_vcpus; k++) {
			const uint64_t *faults = s->vm[i].vcpu[k].faults;

			for (unsigned n = 0; n < s->topology.n_nodes * FAULT_KINDS; n++)
				sum += faults[n];
		}
	return sum;
}

struct row {
	unsigned vcpus, nodes;
	uint64_t plain_ns, rest_ns, scattered_ns;
	uint64_t allocations; /* of a tick at rest */
	uint64_t bytes_per_vcpu;
};

static volatile uint64_t sink;

/* The shortest decision and the shortest plain pass, in turns; and what a tick allocates. */
static void measure(struct snapshot *s, uint64_t *ret_decide_ns, uint64_t *ret_plain_ns,
	uint64_t *ret_allocations)
{
	const struct settings set = SETTINGS_DEFAULT;
	struct history h = {0};
	struct decide_space space = {0};
	struct plan p = {0};
	unsigned rounds = MAX2(40u, 40000 / (s->n_vms + 1)), repeat = MAX2(1u, 1000 / s->n_vms);

	*ret_decide_ns = *ret_plain_ns = UINT64_MAX;
	for (unsigned r = 0; r < rounds; r++) {
		uint64_t begin = now_ns(), calls;

		for (unsigned k = 0; k < repeat; k++)
			sink += plain_pass(s);
		*ret_plain_ns = MIN2(*ret_plain_ns, (now_ns() - begin) / repeat);
		s->seq++;
		s->time_ns += 1000000000;
		calls = heap.calls;
		begin = now_ns();
		if (decide(s, &set, &h, &space, &p) < 0)
			abort();
		*ret_decide_ns = MIN2(*ret_decide_ns, now_ns() - begin);
		*ret_allocations = heap.calls - calls;
	}
	*ret_plain_ns = MAX2(*ret_plain_ns, UINT64_C(1));
	plan_clear(&p);
	decide_space_clear(&space);
	history_clear(&h);
}

/* What snapshot, history, plan and working space of such a host hold. */
static uint64_t bytes_held(unsigned vcpus, unsigned nodes)
{
	const struct settings set = SETTINGS_DEFAULT;
	uint64_t before = heap.live_bytes, held;
	struct snapshot *s = make_host(vcpus, nodes, false);
	struct history h = {0};
	struct decide_space space = {0};
	struct plan p = {0};

	if (decide(s, &set, &h, &space, &p) < 0)
		abort();
	held = heap.live_bytes - before;
	plan_clear(&p);
	decide_space_clear(&space);
	history_clear(&h);
	snapshot_free(s);
	return held;
}

static void run_row(struct row *row)
{
	struct snapshot *s = make_host(row->vcpus, row->nodes, true);
	uint64_t unused;

	measure(s, &row->rest_ns, &row->plain_ns, &row->allocations);
	snapshot_free(s);
	s = make_host(row->vcpus, row->nodes, false);
	measure(s, &row->scattered_ns, &unused, &unused);
	snapshot_free(s);
	row->bytes_per_vcpu = bytes_held(row->vcpus, row->nodes) / row->vcpus;
}

/* How much more than in proportion a row takes than the one before it: 1.00 is linear. */
static double growth(const struct row *row, const struct row *before)
{
	return (double)row->rest_ns * before->vcpus / ((double)before->rest_ns * row->vcpus);
}

int main(void)
{
	static const unsigned sizes[] = {10, 100, 1000, 10000}, nodes[] = {4, 16};
	struct row row[ARRAY_LEN(sizes) * ARRAY_LEN(nodes)];
	unsigned n_rows = 0;
	double growth_max = 0;
	uint64_t allocations = 0;

	printf("%6s %5s %12s %14s %6s %7s %14s %6s %6s %10s\n", "vCPUs", "nodes", "plain pass ns",
		"at rest ns", "ratio", "growth", "scattered ns", "ratio", "allocs", "bytes/vCPU");
	for (size_t k = 0; k < ARRAY_LEN(nodes); k++)
		for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
			struct row *r = &row[n_rows++];
			double g;

			r->vcpus = sizes[i];
			r->nodes = nodes[k];
			run_row(r);
			g = i ? growth(r, r - 1) : 0;
			growth_max = MAX2(growth_max, g);
			allocations = MAX2(allocations, r->allocations);
			printf("%6u %5u %12" PRIu64 " %14" PRIu64 " %6.1f %7.2f %14" PRIu64
			       " %6.1f %6" PRIu64 " %10" PRIu64 "\n",
				r->vcpus, r->nodes, r->plain_ns, r->rest_ns,
				(double)r->rest_ns / (double)r->plain_ns, g, r->scattered_ns,
				(double)r->scattered_ns / (double)r->plain_ns, r->allocations,
				r->bytes_per_vcpu);
		}
	printf("{\"bench\":\"decide\"");
	for (unsigned i = 0; i < n_rows; i++) {
		const struct row *r = &row[i];
		double plain = (double)r->plain_ns;

		printf(",\"ratio_%ux%u\":%.2f,\"ratio_scattered_%ux%u\":%.2f", r->vcpus, r->nodes,
			(double)r->rest_ns / plain, r->vcpus, r->nodes,
			(double)r->scattered_ns / plain);
	}
	printf(",\"growth_max\":%.3f,\"allocations_steady\":%" PRIu64 ",\"bytes_per_vcpu\":%" PRIu64
	       "}\n",
		growth_max, allocations, row[n_rows - 1].bytes_per_vcpu);
	return 0;
}
