/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A whole look at a captured host: from files to a snapshot, and from there to a decision. */
#include "controller/host/threads.h"
#include "controller/source/collect.h"
#include "policy/decide.h"
#include "tests/replay/hosts.h"

static const struct settings set = SETTINGS_DEFAULT;

static struct virt_vm vm_of(const char *name, const char *uuid)
{
	struct virt_vm v = {.max_vcpus = 2, .ram_bytes = 256 << 20, .id = 1};

	snprintf(v.name, sizeof(v.name), "%s", name);
	snprintf(v.uuid, sizeof(v.uuid), "%s", uuid);
	return v;
}

struct fixture {
	struct hostfs fs;
	struct virt_vm vms[4];
	struct virt_list list;
	struct collect c;
};

static void setup(struct fixture *f)
{
	memset(f, 0, sizeof(*f));
	f->fs = host_captured("debian13-4node");
	f->vms[0] = vm_of("a", "ef1a7290-68fb-44f5-8d51-22024f44b939");
	f->vms[1] = vm_of("b", "a2aa705b-6d0f-4afc-a630-3b1d9f217ce0");
	f->vms[2] = vm_of("c", "f8376947-c612-4de1-8a7a-de4560a893cd");
	f->vms[3] = vm_of("gone", "00000000-0000-0000-0000-000000000000");
	f->list = (struct virt_list){.n_vms = 4, .vm = f->vms};
	f->c = (struct collect){
		.fs = &f->fs, .settings = &set, .vms = &f->list, .now_ns = UINT64_C(1000000000)};
}

static void teardown(struct fixture *f)
{
	snapshot_free(f->c.snapshot);
	observed_free(f->c.observed);
	hostfs_close(&f->fs);
}

/* The looks before the last one. */
struct earlier {
	struct snapshot *snapshot;
	struct observed *observed;
};

/* Another look, so much later; what the first one saw goes to *first. */
static int look_again(struct fixture *f, uint64_t after_ns, struct earlier *first)
{
	*first = (struct earlier){f->c.snapshot, f->c.observed};
	f->c.prev = first->snapshot;
	f->c.prev_observed = first->observed;
	f->c.now_ns += after_ns;
	return collect_run(&f->c);
}

static void forget(struct earlier *first)
{
	snapshot_free(first->snapshot);
	observed_free(first->observed);
}

static uint64_t sum(const struct snapshot *s, const uint64_t *v)
{
	uint64_t all = 0;

	for (unsigned n = 0; n < s->topology.n_nodes; n++)
		all += v[n];
	return all;
}

static void a_captured_host_becomes_a_snapshot(struct tap *tap_)
{
	const struct snapshot *s;
	struct fixture f;

	setup(&f);
	REQUIRE(collect_run(&f.c) == 0);
	s = f.c.snapshot;
	CHECK_INT(s->topology.n_nodes, 4);
	CHECK_INT(s->topology.type, TOPOLOGY_GLUELESS_MESH);
	CHECK_INT(s->balancing, 1);
	CHECK(s->kernel_pages_migrated > 0 && s->hint_faults > 0);
	REQUIRE(s->n_vms == 4);
	for (unsigned i = 0; i < 3; i++) {
		const struct snap_vm *vm = &s->vm[i];

		CHECK_STR(vm->problem, "");
		CHECK_INT(vm->n_vcpus, 2);
		CHECK(vm->has_memory);
		/* 256 MiB at most, and nothing of QEMU's own 100 MiB */
		CHECK(sum(s, vm->mem_bytes) > 100 << 20 && sum(s, vm->mem_bytes) <= 256 << 20);
		CHECK(vm->vcpu[0].node >= 0);
		CHECK(!vm->memory_fixed && !vm->memory_hugetlb);
	}
	teardown(&f);
}

static void one_vm_that_cannot_be_read_does_not_affect_the_others(struct tap *tap_)
{
	const struct snap_vm *vm;
	struct fixture f;

	setup(&f);
	REQUIRE(collect_run(&f.c) == 0);
	vm = &f.c.snapshot->vm[3];
	CHECK(strstr(vm->problem, "QEMU process was not found") != NULL);
	CHECK(strstr(vm->problem, "gone.pid") != NULL);
	CHECK_STR(f.c.snapshot->vm[2].problem, "");
	teardown(&f);
}

static void a_pid_file_of_another_process_is_not_believed(struct tap *tap_)
{
	struct fixture f;

	setup(&f);
	/* the process in a.pid is VM a's, whatever VM claims the name */
	snprintf(f.vms[0].uuid, sizeof(f.vms[0].uuid), "11111111-1111-1111-1111-111111111111");
	REQUIRE(collect_run(&f.c) == 0);
	CHECK(f.c.snapshot->vm[0].problem[0]);
	CHECK_INT(f.c.snapshot->vm[0].pid, 0);
	teardown(&f);
}

static void the_same_host_again_says_nothing_new(struct tap *tap_)
{
	struct earlier first;
	struct fixture f;

	setup(&f);
	REQUIRE(collect_run(&f.c) == 0);
	REQUIRE(look_again(&f, UINT64_C(10000000000), &first) == 0);
	for (unsigned i = 0; i < 3; i++) {
		const struct snap_vm *a = &first.snapshot->vm[i], *b = &f.c.snapshot->vm[i];

		CHECK_INT(b->windows, a->windows);
		CHECK_INT(b->data_age_ns, 10000000000);
		CHECK(b->vcpu[0].idle); /* its run time stood still */
		CHECK(memcmp(a->vcpu[0].faults, b->vcpu[0].faults, 8 * sizeof(uint64_t)) == 0);
	}
	forget(&first);
	teardown(&f);
}

/* RAM mappings are looked up every half minute, and at once when memory was plugged. */
static void plugged_memory_is_looked_for_at_once(struct tap *tap_)
{
	struct earlier first;
	struct fixture f;

	setup(&f);
	REQUIRE(collect_run(&f.c) == 0);
	f.vms[0].ram_bytes += 128 << 20;
	REQUIRE(look_again(&f, UINT64_C(2000000000), &first) == 0);
	CHECK_INT(f.c.observed->vm[0].ram_read_ns, f.c.now_ns);
	CHECK_INT(f.c.observed->vm[1].ram_read_ns, first.observed->vm[1].ram_read_ns);
	CHECK_INT(f.c.observed->vm[1].ram.n, first.observed->vm[1].ram.n);
	forget(&first);
	teardown(&f);
}

static void strict_and_passed_through_memory_is_fixed_D04_D17(struct tap *tap_)
{
	struct fixture f;

	setup(&f);
	f.vms[0].pci_hostdev = true;
	f.vms[1].numatune_strict = f.vms[1].has_nodeset = true;
	idset_add(&f.vms[1].nodeset, 0);
	REQUIRE(collect_run(&f.c) == 0);
	CHECK(strstr(f.c.snapshot->vm[0].memory_fixed_why, "VFIO") != NULL);
	CHECK_STR(f.c.snapshot->vm[1].memory_fixed_why, "libvirt numatune strict nodeset 0");
	CHECK(f.c.snapshot->vm[0].memory_fixed && f.c.snapshot->vm[1].memory_fixed);
	IDS(&f.c.snapshot->vm[1].allowed_mems, "0");
	teardown(&f);
}

/* The same guest without libvirt: its process by its socket, its threads by its own word. */
static void as_bare(struct fixture *f, struct vcpu_thread *thread)
{
	struct thread_stat st;

	setup(f);
	f->list.n_vms = 1;
	snprintf(f->vms[0].name, sizeof(f->vms[0].name), "bare");
	f->vms[0].manager = VIRT_QMP;
	f->vms[0].pid = 594;
	if (thread_stat_read(&f->fs, 594, 0, &st) == 0)
		f->vms[0].start_ticks = st.start_ticks;
	f->vms[0].n_threads = 2;
	f->vms[0].thread = thread;
}

static void a_qemu_that_libvirt_does_not_know(struct tap *tap_)
{
	struct vcpu_thread said[] = {{0, 602}, {1, 603}}, lent[] = {{0, 602}, {1, 624}};
	const struct snap_vm *vm;
	struct fixture f;

	for (unsigned i = 0; i < 2; i++) {
		as_bare(&f, i ? lent : said);
		REQUIRE(collect_run(&f.c) == 0);
		REQUIRE(f.c.snapshot->n_vms == 1);
		vm = f.c.snapshot->vm;
		CHECK_STR(vm->problem, "");
		CHECK_INT(vm->n_vcpus, i ? 1 : 2);
		CHECK_INT(vm->vcpu[0].tid, 602);
		CHECK(vm->has_memory);
		CHECK(!f.c.observed->vm[0].needs_monitor);
		teardown(&f);
	}
}

static void a_qemu_that_has_ended_since_it_was_asked(struct tap *tap_)
{
	struct vcpu_thread said[] = {{0, 602}, {1, 603}};
	struct fixture f;

	for (unsigned i = 0; i < 2; i++) {
		as_bare(&f, said);
		if (i)
			f.vms[0].start_ticks++; /* its number is another process's by now */
		else
			f.vms[0].pid = 12345;
		REQUIRE(collect_run(&f.c) == 0);
		CHECK_INT(f.c.snapshot->n_vms, 0);
		teardown(&f);
	}
}

static void bare_qemus_that_must_be_left_alone(struct tap *tap_)
{
	struct vcpu_thread said[] = {{0, 602}, {1, 603}};
	struct fixture f;

	as_bare(&f, said);
	snprintf(f.vms[0].silent, sizeof(f.vms[0].silent), "its monitor is silent");
	REQUIRE(collect_run(&f.c) == 0 && f.c.snapshot->n_vms == 1);
	CHECK_STR(f.c.snapshot->vm[0].problem, "its monitor is silent");
	CHECK_INT(f.c.snapshot->vm[0].n_vcpus, 2); /* what was done to it can still be undone */
	teardown(&f);
	as_bare(&f, said);
	snprintf(f.vms[0].name, sizeof(f.vms[0].name), "a"); /* libvirt has a pid file of it */
	REQUIRE(collect_run(&f.c) == 0 && f.c.snapshot->n_vms == 1);
	CHECK(strstr(f.c.snapshot->vm[0].problem, "it is libvirt's") != NULL);
	teardown(&f);
}

static void an_empty_root_is_a_condition(struct tap *tap_)
{
	struct fixture f;

	setup(&f);
	hostfs_close(&f.fs);
	REQUIRE(hostfs_open(&f.fs, "/nonexistent") != 0);
	f.fs.fd = -1;
	CHECK(collect_run(&f.c) != 0);
	CHECK(!f.c.snapshot && !f.c.observed);
	teardown(&f);
}

TAP_MAIN(TEST(a_captured_host_becomes_a_snapshot),
	TEST(one_vm_that_cannot_be_read_does_not_affect_the_others),
	TEST(a_pid_file_of_another_process_is_not_believed),
	TEST(the_same_host_again_says_nothing_new), TEST(plugged_memory_is_looked_for_at_once),
	TEST(strict_and_passed_through_memory_is_fixed_D04_D17),
	TEST(a_qemu_that_libvirt_does_not_know), TEST(a_qemu_that_has_ended_since_it_was_asked),
	TEST(bare_qemus_that_must_be_left_alone), TEST(an_empty_root_is_a_condition))
