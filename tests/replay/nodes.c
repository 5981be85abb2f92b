/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "controller/host/nodes.h"

#include "tests/replay/hosts.h"

#define GIB (UINT64_C(1) << 30)

/* Reads a host; NULL (and a failed check) if that does not work. */
static struct host_nodes *read_host(struct tap *tap_, struct hostfs fs)
{
	struct host_nodes *h = calloc(1, sizeof(*h));
	int r = nodes_read(&fs, h);

	hostfs_close(&fs);
	CHECK_INT(r, 0);
	if (r == 0)
		return h;
	free(h);
	return NULL;
}

static unsigned id_at(const struct host_nodes *h, unsigned idx)
{
	return h->topology.node[idx].id;
}

static void captured_host(struct tap *tap_)
{
	_cleanup_free_ struct host_nodes *h = read_host(tap_, host_captured("debian13-4node"));

	REQUIRE(h);
	CHECK_INT(h->topology.n_nodes, 4);
	CHECK(h->has_numa);
	IDS(&h->online, "0-3");
	IDS(&h->topology.node[2].cpus, "4-5");
	IDS(&h->cpus_online, "0-7"); /* cpu/online was not captured: from the nodes */
	CHECK_INT(h->n_warnings, 1);
	CHECK_INT(h->topology.distance[0][3], 22);
	CHECK_INT(h->topology.distance[2][1], 22);
	CHECK_INT(h->memory[1].total_bytes, UINT64_C(993072) << 10);
	CHECK_INT(h->memory[1].free_bytes, UINT64_C(843016) << 10);
	CHECK(h->topology.node[3].has_memory && h->topology.node[3].has_cpu);
}

static void D32_ids_with_gaps(struct tap *tap_)
{
	_cleanup_free_ struct host_nodes *h = read_host(tap_, host_made("power9"));

	REQUIRE(h && h->topology.n_nodes == 6);
	CHECK_INT(id_at(h, 1), 8);
	CHECK_INT(id_at(h, 2), 252);
	CHECK_INT(id_at(h, 5), 255);
	CHECK_INT(h->topology.distance[1][0], 40);
	CHECK_INT(h->topology.distance[1][1], 10);
	CHECK_INT(h->topology.distance[1][5], 80);
	CHECK(h->topology.node[1].has_cpu && !h->topology.node[2].has_cpu);
	CHECK(h->topology.node[2].has_memory);
	IDS(&h->has_cpu, "0,8");
	IDS(&h->has_memory, "0,8,252-255");
	CHECK_INT(h->n_warnings, 0);
}

static void D32_a_node_without_memory(struct tap *tap_)
{
	_cleanup_free_ struct host_nodes *h = read_host(tap_, host_made("power8"));

	REQUIRE(h && h->topology.n_nodes == 2);
	CHECK(h->topology.node[1].has_cpu && !h->topology.node[1].has_memory);
	CHECK(h->memory[1].known);
	CHECK_INT(h->memory[1].total_bytes, 0);
	CHECK_INT(h->memory[0].total_bytes, 32 * GIB);
}

static void D33_no_node_0(struct tap *tap_)
{
	_cleanup_free_ struct host_nodes *h = read_host(tap_, host_made("lpar"));

	REQUIRE(h && h->topology.n_nodes == 4);
	for (unsigned i = 0; i < 4; i++)
		CHECK_INT(id_at(h, i), 4 + i);
	CHECK_INT(h->topology.distance[0][0], 10);
	CHECK_INT(h->topology.distance[3][0], 20);
	CHECK_INT(h->topology.type, TOPOLOGY_DIRECT);
	CHECK_INT(h->n_warnings, 0);
}

static void D34_nodes_without_memory(struct tap *tap_)
{
	_cleanup_free_ struct host_nodes *a = read_host(tap_, host_made("threadripper"));
	_cleanup_free_ struct host_nodes *b = read_host(tap_, host_made("eight-two"));

	REQUIRE(a && b);
	CHECK_INT(topology_nearest_memory_node(&a->topology, 0, NULL), 1);
	CHECK(a->topology.node[0].has_cpu && !a->topology.node[0].has_memory);
	CHECK_INT(b->topology.type, TOPOLOGY_BACKPLANE);
	CHECK_INT(topology_nearest_memory_node(&b->topology, 1, NULL), 0);
	CHECK_INT(b->topology.distance[1][0], 16);
	CHECK_INT(b->topology.distance[1][4], 32);
}

static void D35_dozens_of_memory_nodes(struct tap *tap_)
{
	_cleanup_free_ struct host_nodes *h = read_host(tap_, host_made("gb200"));

	REQUIRE(h && h->topology.n_nodes == 30);
	CHECK_INT(id_at(h, 29), 33);
	CHECK_INT(h->topology.distance[0][1], 40);
	CHECK_INT(h->topology.distance[0][29], 80);
	CHECK_INT(h->topology.type, TOPOLOGY_DIRECT);
	IDS(&h->has_cpu, "0-1");
}

static void D36_both_directions_are_kept(struct tap *tap_)
{
	_cleanup_free_ struct host_nodes *h = read_host(tap_, host_made("asymmetric"));

	REQUIRE(h);
	CHECK_INT(h->topology.distance[0][1], 21);
	CHECK_INT(h->topology.distance[1][0], 28);
}

static void D37_broken_tables(struct tap *tap_)
{
	_cleanup_free_ struct host_nodes *a = read_host(tap_, host_made("slit-garbage"));
	_cleanup_free_ struct host_nodes *b = read_host(tap_, host_made("slit-flat"));
	_cleanup_free_ struct host_nodes *c = read_host(tap_, host_made("slit-ten"));

	REQUIRE(a && b && c);
	CHECK_INT(a->topology.distance[0][1], 20);
	CHECK_INT(a->topology.type, TOPOLOGY_DIRECT);
	CHECK_INT(a->n_warnings, 1);
	CHECK(strstr(a->warning[0], "distance"));
	CHECK_INT(b->topology.type, TOPOLOGY_DIRECT);
	CHECK_INT(b->n_warnings, 0);
	CHECK_INT(c->topology.distance[0][1], 10);
	CHECK_INT(c->topology.type, TOPOLOGY_DIRECT);
	CHECK_INT(c->n_warnings, 0);
}

static void D39_index_is_not_id(struct tap *tap_)
{
	_cleanup_free_ struct host_nodes *h = read_host(tap_, host_made("gap"));

	REQUIRE(h && h->topology.n_nodes == 2);
	CHECK_INT(id_at(h, 1), 2);
	CHECK_INT(topology_index(&h->topology, 2), 1);
	CHECK_INT(topology_index(&h->topology, 1), -1);
	CHECK_INT(h->topology.distance[1][0], 20);
	IDS(&h->topology.node[1].cpus, "4-7");
}

static void D10_offline_cpus_are_in_no_node(struct tap *tap_)
{
	_cleanup_free_ struct host_nodes *h = read_host(tap_, host_made("offline-cpu"));

	REQUIRE(h);
	IDS(&h->cpus_online, "0-2,4-7");
	IDS(&h->topology.node[0].cpus, "0-2");
}

static void pools_of_huge_pages(struct tap *tap_)
{
	_cleanup_free_ struct host_nodes *h = read_host(tap_, host_made("hugepages"));
	const struct huge_pool *pool;

	REQUIRE(h);
	CHECK_INT(h->huge_default_bytes, 2 << 20);
	REQUIRE(h->memory[1].n_pools == 2);
	CHECK_INT(h->memory[1].pool[0].page_bytes, 2 << 20);
	pool = nodes_pool(h, 1, GIB);
	REQUIRE(pool);
	CHECK_INT(pool->total_pages, 4);
	CHECK_INT(pool->free_pages, 1);
	CHECK(!nodes_pool(h, 1, 4096));
	CHECK(!nodes_pool(h, 7, GIB));
}

static void one_odd_node_does_not_end_it(struct tap *tap_)
{
	_cleanup_free_ struct host_nodes *h = read_host(tap_, host_made("broken-node"));

	REQUIRE(h && h->topology.n_nodes == 2);
	IDS(&h->online, "0-2");
	CHECK_INT(id_at(h, 1), 2);
	CHECK(h->topology.node[0].has_cpu);
	CHECK(!h->topology.node[1].has_cpu && h->topology.node[1].has_memory);
	CHECK_INT(h->topology.distance[0][1], 32); /* the third column */
	CHECK_INT(h->topology.distance[1][0], 20); /* its own row cannot be read */
	CHECK_INT(h->topology.distance[1][1], 10);
	CHECK(h->n_warnings >= 3);
}

static void no_numa_is_one_node(struct tap *tap_)
{
	_cleanup_free_ struct host_nodes *h = read_host(tap_, host_made("uma"));

	REQUIRE(h && h->topology.n_nodes == 1);
	CHECK(!h->has_numa);
	CHECK_INT(id_at(h, 0), 0);
	IDS(&h->topology.node[0].cpus, "0-3");
	IDS(&h->online, "0");
	CHECK_INT(h->memory[0].total_bytes, 8 * GIB);
	CHECK_INT(h->memory[0].free_bytes, 4 * GIB);
	REQUIRE(nodes_pool(h, 0, 2 << 20));
	CHECK_INT(nodes_pool(h, 0, 2 << 20)->free_pages, 12);
	CHECK_INT(h->topology.distance[0][0], 10);
}

static void distance_lines(struct tap *tap_)
{
	uint16_t row[4] = {1, 2, 3, 4};

	CHECK_INT(nodes_parse_distance(" 10 20 20 20\n", 13, 4, row), 0);
	CHECK_INT(row[0], 10);
	CHECK_INT(nodes_parse_distance("10 4294967295\n", 14, 2, row), 0);
	CHECK_INT(row[1], 65535);
	CHECK_INT(nodes_parse_distance("10 20\n", 6, 3, row), HOST_E_FORMAT);
	CHECK_INT(nodes_parse_distance("10 20 30\n", 9, 2, row), HOST_E_FORMAT);
	CHECK_INT(nodes_parse_distance("10 2x\n", 6, 2, row), HOST_E_FORMAT);
	CHECK_INT(nodes_parse_distance("", 0, 1, row), HOST_E_FORMAT);
	CHECK_INT(row[0], 10);
}

TAP_MAIN(TEST(captured_host), TEST(D32_ids_with_gaps), TEST(D32_a_node_without_memory),
	TEST(D33_no_node_0), TEST(D34_nodes_without_memory), TEST(D35_dozens_of_memory_nodes),
	TEST(D36_both_directions_are_kept), TEST(D37_broken_tables), TEST(D39_index_is_not_id),
	TEST(D10_offline_cpus_are_in_no_node), TEST(pools_of_huge_pages),
	TEST(one_odd_node_does_not_end_it), TEST(no_numa_is_one_node), TEST(distance_lines))
