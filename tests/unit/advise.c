/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Where a VM that does not run yet should start. */
#include "policy/advise.h"
#include "tests/builder.h"
#include "tests/tap.h"

static const struct settings set = SETTINGS_DEFAULT;

struct fixture {
	struct snapshot *s;
	struct advise_request req;
	struct advise_start start[16];
	size_t n_starts;
	struct advice a;
};

static void setup(struct fixture *f, struct snapshot *s)
{
	*f = (struct fixture){.s = s, .req = {.n_vcpus = 2, .ram_bytes = 2 * GIB}};
}

static void teardown(struct fixture *f)
{
	snapshot_free(f->s);
}

static int ask(struct fixture *f)
{
	return advise(f->s, &set, &f->req, f->start, f->n_starts, &f->a);
}

/* What the daemon keeps of an answer. */
static void started(struct fixture *f)
{
	f->start[f->n_starts++] = (struct advise_start){.n_vcpus = f->req.n_vcpus,
		.ram_bytes = f->req.ram_bytes,
		.hugetlb = f->req.hugetlb,
		.nodes = f->a.nodes,
		.time_ns = f->s->time_ns};
}

static const struct gate *gate_of(const struct fixture *f, const char *name)
{
	for (unsigned i = 0; i < f->a.reason.n_gates; i++)
		if (strcmp(f->a.reason.gate[i].name, name) == 0)
			return &f->a.reason.gate[i];
	return NULL;
}

static void the_emptiest_node_or_the_fullest(struct tap *tap_)
{
	struct fixture f;

	setup(&f, build_two(0));
	f.s->node[0].busy_permille = 1000;
	CHECK_INT(ask(&f), 0);
	CHECK_INT(f.a.nodes, NODE_BIT(1));
	CHECK(f.a.fits_cpus);
	CHECK_INT(f.a.cpus_left_permille[0], 3000);
	CHECK_INT(f.a.cpus_left_permille[1], 4000);
	CHECK_INT(f.a.reason.why, WHY_READY);
	f.req.mode = ADVISE_PACK;
	CHECK_INT(ask(&f), 0);
	CHECK_INT(f.a.nodes, NODE_BIT(0));
	/* As many CPUs left on both: memory says which. */
	f.s->node[0].busy_permille = 0;
	f.s->node[0].mem_free_bytes = 11 * GIB;
	CHECK_INT(ask(&f), 0);
	CHECK_INT(f.a.nodes, NODE_BIT(0));
	f.req.mode = ADVISE_SPREAD;
	CHECK_INT(ask(&f), 0);
	CHECK_INT(f.a.nodes, NODE_BIT(1));
	teardown(&f);
}

static void ten_starts_go_round(struct tap *tap_)
{
	unsigned n[4] = {0};
	struct fixture f;

	setup(&f, build_mesh4(0));
	f.req.n_vcpus = 1;
	f.req.ram_bytes = GIB;
	for (unsigned i = 0; i < 10; i++) {
		REQUIRE(ask(&f) == 0);
		topology_foreach (k, &f.s->topology)
			n[k] += f.a.nodes == NODE_BIT(k);
		CHECK(f.a.fits_cpus == (i < 8));
		started(&f);
	}
	for (unsigned k = 0; k < 4; k++)
		CHECK(n[k] == 2 || n[k] == 3);
	CHECK_INT(n[0] + n[1] + n[2] + n[3], 10);
	teardown(&f);
}

static void a_wide_vm_gets_near_nodes(struct tap *tap_)
{
	struct fixture f;

	setup(&f, build_mesh4(0));
	f.req.n_vcpus = 4;
	/* Node 3 is full; of 0, 1, 2 the pairs 0 1 and 0 2 are near, 1 2 is far. */
	f.s->node[3].busy_permille = 2000;
	f.s->node[2].mem_free_bytes = 11 * GIB;
	CHECK_INT(ask(&f), 0);
	CHECK_INT(f.a.nodes, NODE_BIT(0) | NODE_BIT(1));
	CHECK(f.a.fits_cpus);
	/* Only the far pair has free CPUs: free CPUs first, then distance. */
	f.s->node[0].busy_permille = 2000;
	CHECK_INT(ask(&f), 0);
	CHECK_INT(f.a.nodes, NODE_BIT(1) | NODE_BIT(2));
	teardown(&f);
}

static void more_memory_than_a_node_has(struct tap *tap_)
{
	struct fixture f;

	setup(&f, build_mesh4(0));
	f.req.ram_bytes = 20 * GIB;
	f.s->node[1].mem_free_bytes = f.s->node[2].mem_free_bytes = 13 * GIB;
	f.s->node[3].mem_free_bytes = 14 * GIB;
	CHECK_INT(ask(&f), 0);
	/* 3 has most, and of its neighbours 1 and 2 the lower id. */
	CHECK_INT(f.a.nodes, NODE_BIT(1) | NODE_BIT(3));
	teardown(&f);
}

static void a_full_host_is_overcommitted_where_it_hurts_least(struct tap *tap_)
{
	struct fixture f;

	setup(&f, build_two(0));
	f.s->node[0].busy_permille = 4000;
	f.s->node[1].busy_permille = 3100;
	CHECK_INT(ask(&f), 0);
	CHECK_INT(f.a.nodes, NODE_BIT(1));
	CHECK(!f.a.fits_cpus);
	REQUIRE(gate_of(&f, "free-cpus"));
	CHECK_INT(gate_of(&f, "free-cpus")->value, 0);
	CHECK_INT(gate_of(&f, "free-cpus")->threshold, 2);
	CHECK(!gate_of(&f, "free-cpus")->met);
	CHECK_INT(f.a.reason.why, WHY_READY);
	teardown(&f);
}

static void what_cannot_be_is_refused(struct tap *tap_)
{
	struct fixture f;

	setup(&f, build_two(0));
	f.req.n_vcpus = 9;
	CHECK_INT(ask(&f), ADVISE_E_CPUS);
	CHECK_INT(f.a.nodes, 0);
	CHECK_INT(f.a.reason.why, WHY_REFUSED);
	REQUIRE(gate_of(&f, "cpus"));
	CHECK_INT(gate_of(&f, "cpus")->value, 8);
	CHECK_INT(gate_of(&f, "cpus")->threshold, 9);
	f.req.n_vcpus = 8;
	CHECK_INT(ask(&f), 0);
	CHECK_INT(f.a.nodes, NODE_BIT(0) | NODE_BIT(1));
	f.req.ram_bytes = 25 * GIB;
	CHECK_INT(ask(&f), ADVISE_E_MEMORY);
	CHECK_INT(f.a.nodes, 0);
	CHECK_INT(f.a.cpus_left_permille[0], 4000);
	CHECK_INT(gate_of(&f, "memory-headroom")->threshold, 25 * 1024);
	teardown(&f);
}

static void the_reserve_stays_free(struct tap *tap_)
{
	struct fixture f;
	uint64_t part;

	setup(&f, build_two(0));
	part = MAX2(16 * GIB / 1000 * set.reserve_permille, set.reserve_bytes);
	f.s->node[1].busy_permille = 4000;
	f.req.ram_bytes = 12 * GIB - part;
	CHECK_INT(ask(&f), 0);
	CHECK_INT(f.a.nodes, NODE_BIT(0));
	CHECK_INT(f.a.bytes_left[0], 12 * GIB - part);
	f.req.ram_bytes++;
	CHECK_INT(ask(&f), 0);
	CHECK_INT(f.a.nodes, NODE_BIT(0) | NODE_BIT(1));
	teardown(&f);
}

static void only_where_it_may(struct tap *tap_)
{
	struct fixture f;

	setup(&f, build_mesh4(0));
	f.s->node[2].busy_permille = 1000;
	idset_add(&f.req.allowed_cpus, 4);
	idset_add(&f.req.allowed_cpus, 5);
	idset_add(&f.req.allowed_cpus, 6);
	f.req.n_vcpus = 1;
	CHECK_INT(ask(&f), 0);
	CHECK_INT(f.a.nodes, NODE_BIT(3));
	f.req.n_vcpus = 2;
	CHECK_INT(ask(&f), 0);
	CHECK_INT(f.a.nodes, NODE_BIT(2) | NODE_BIT(3));
	idset_add(&f.req.allowed_mems, 0);
	f.req.n_vcpus = 1;
	CHECK_INT(ask(&f), 0);
	/* Node 2 is nearer to the memory. */
	CHECK_INT(f.a.nodes, NODE_BIT(2) | NODE_BIT(0));
	teardown(&f);
}

static void huge_pages_come_from_their_pool(struct tap *tap_)
{
	struct fixture f;

	setup(&f, build_two(0));
	f.req.hugetlb = true;
	CHECK_INT(ask(&f), ADVISE_E_MEMORY);
	f.s->node[1].huge_free_bytes = 2 * GIB;
	f.s->node[1].busy_permille = 1500;
	CHECK_INT(ask(&f), 0);
	CHECK_INT(f.a.nodes, NODE_BIT(1));
	started(&f);
	CHECK_INT(ask(&f), ADVISE_E_MEMORY);
	/* One of small pages takes nothing from the pool. */
	f.start[0].hugetlb = false;
	CHECK_INT(ask(&f), 0);
	teardown(&f);
}

static void a_start_counts_for_a_minute_or_until_it_is_seen(struct tap *tap_)
{
	struct fixture f;

	setup(&f, build_two(1));
	build_vm(f.s, 0, "a", 1, GIB, (int[]){0}, 1);
	f.s->node[0].busy_permille = 100;
	REQUIRE(ask(&f) == 0);
	CHECK_INT(f.a.nodes, NODE_BIT(1));
	started(&f);
	f.s->time_ns += ADVISE_PENDING_NS - 1;
	CHECK_INT(ask(&f), 0);
	CHECK_INT(f.a.nodes, NODE_BIT(0));
	CHECK_INT(f.a.cpus_left_permille[1], 2000);
	snprintf(f.start[0].uuid, sizeof(f.start[0].uuid), "%s", f.s->vm[0].uuid);
	CHECK_INT(ask(&f), 0);
	CHECK_INT(f.a.nodes, NODE_BIT(1));
	f.start[0].uuid[0] = 0;
	f.s->time_ns++;
	CHECK_INT(ask(&f), 0);
	CHECK_INT(f.a.nodes, NODE_BIT(1));
	teardown(&f);
}

static void a_young_vm_counts_whole(struct tap *tap_)
{
	struct snap_vm *vm;
	struct fixture f;

	setup(&f, build_two(1));
	vm = build_vm(f.s, 0, "a", 4, 6 * GIB, (int[]){0}, 1);
	vm->data = DATA_WARMING_UP;
	build_memory(f.s, vm, (uint64_t[]){2 * GIB, 0});
	f.s->node[0].busy_permille = 400;
	f.s->node[1].busy_permille = 1500;
	REQUIRE(ask(&f) == 0);
	CHECK_INT(f.a.nodes, NODE_BIT(1));
	CHECK_INT(f.a.cpus_left_permille[0], 0);
	CHECK_INT(f.a.bytes_left[1] - f.a.bytes_left[0], 4 * GIB);
	vm->data = DATA_OK;
	CHECK_INT(ask(&f), 0);
	CHECK_INT(f.a.nodes, NODE_BIT(0));
	CHECK_INT(f.a.cpus_left_permille[0], 3600);
	teardown(&f);
}

static void nodes_without_memory_give_none(struct tap *tap_)
{
	struct fixture f;

	setup(&f, build_mesh4(0));
	f.s->topology.node[0].has_memory = false;
	f.s->node[0].mem_free_bytes = f.s->node[0].mem_total_bytes = 0;
	for (unsigned n = 1; n < 4; n++)
		f.s->node[n].busy_permille = 2000;
	topology_finish(&f.s->topology);
	CHECK_INT(ask(&f), 0);
	/* Its CPUs are the only free ones, and its neighbour has the memory. */
	CHECK_INT(f.a.nodes, NODE_BIT(0) | NODE_BIT(1));
	CHECK(f.a.fits_cpus);
	teardown(&f);
}

TAP_MAIN(TEST(the_emptiest_node_or_the_fullest), TEST(ten_starts_go_round),
	TEST(a_wide_vm_gets_near_nodes), TEST(more_memory_than_a_node_has),
	TEST(a_full_host_is_overcommitted_where_it_hurts_least), TEST(what_cannot_be_is_refused),
	TEST(the_reserve_stays_free), TEST(only_where_it_may),
	TEST(huge_pages_come_from_their_pool),
	TEST(a_start_counts_for_a_minute_or_until_it_is_seen), TEST(a_young_vm_counts_whole),
	TEST(nodes_without_memory_give_none))
