/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tests/matrices.h"
#include "tests/tap.h"

static void types_of_known_hosts_s4(struct tap *tap_)
{
	static const struct {
		const uint16_t *rows;
		unsigned n, cpu_nodes;
		enum topology_type type;
		unsigned max;
	} v[] = {
		{pair, 2, 2, TOPOLOGY_DIRECT, 21},
		{ring, 4, 4, TOPOLOGY_GLUELESS_MESH, 30},
		{chassis, 4, 4, TOPOLOGY_BACKPLANE, 40},
		{mesh4, 4, 4, TOPOLOGY_GLUELESS_MESH, 22},
		{nomad, 4, 4, TOPOLOGY_BACKPLANE, 32},
		{chain, 3, 3, TOPOLOGY_GLUELESS_MESH, 30},
		{pmem, 4, 4, TOPOLOGY_GLUELESS_MESH, 28}, /* the bug, if CPU-less nodes counted */
		{asymmetric, 2, 2, TOPOLOGY_GLUELESS_MESH, 28},
		{subnuma, 6, 6, TOPOLOGY_GLUELESS_MESH, 28},
	};
	struct topology t;

	for (size_t i = 0; i < ARRAY_LEN(v); i++) {
		fill_topology(&t, v[i].n, v[i].rows, v[i].cpu_nodes);
		CHECK_INT(t.type, v[i].type);
		CHECK_INT(t.max_distance, v[i].max);
	}
	fill_eight(&t, 20, 20);
	CHECK_INT(t.type, TOPOLOGY_DIRECT);
	CHECK_INT(t.max_distance, 20);
	fill_eight(&t, 16, 32);
	CHECK_INT(t.type, TOPOLOGY_BACKPLANE);
	CHECK_INT(t.max_distance, 32);
}

static void cpuless_nodes_make_no_mesh_D05(struct tap *tap_)
{
	struct topology t;

	fill_topology(&t, 4, pmem, 2);
	CHECK_INT(t.type, TOPOLOGY_DIRECT);
	CHECK_INT(t.max_distance, 21);
	CHECK_INT(topology_nearest_cpu_node(&t, 2), 0);
	CHECK_INT(topology_nearest_cpu_node(&t, 3), 1);
	CHECK_INT(topology_nearest_cpu_node(&t, 1), 1);
}

static void memory_is_no_bridge_D05(struct tap *tap_)
{
	/* two chassis, and node 4 is near to all of them */
	static const uint16_t rows[] = {10, 20, 40, 40, 15, 20, 10, 40, 40, 15, 40, 40, 10, 20, 15,
		40, 40, 20, 10, 15, 15, 15, 15, 15, 10};
	struct topology t;

	fill_topology(&t, 5, rows, 4);
	CHECK_INT(t.type, TOPOLOGY_BACKPLANE);
	CHECK_INT(t.max_distance, 40);
	fill_topology(&t, 5, rows, 5); /* with CPUs it is one */
	CHECK_INT(t.type, TOPOLOGY_GLUELESS_MESH);
}

static void the_first_far_row_tells_the_type_s4(struct tap *tap_)
{
	struct topology t;

	/* 0 to 2 is the first far pair, and nothing bridges it; 1 to 0, which 1 bridges, is later
	 */
	fill_topology(&t, 3, (uint16_t[]){10, 20, 40, 40, 10, 40, 40, 40, 10}, 3);
	CHECK_INT(t.type, TOPOLOGY_BACKPLANE);
	fill_topology(&t, 3, (uint16_t[]){10, 40, 40, 20, 10, 40, 40, 40, 10}, 3);
	CHECK_INT(t.type, TOPOLOGY_GLUELESS_MESH);
}

static void no_node_0_D33(struct tap *tap_)
{
	uint16_t rows[16];
	struct topology t;

	for (unsigned i = 0; i < 16; i++)
		rows[i] = i / 4 == i % 4 ? 10 : 20;
	fill_topology(&t, 4, rows, 4);
	for (unsigned i = 0; i < 4; i++)
		t.node[i].id = i + 4;
	topology_finish(&t);
	CHECK_INT(t.type, TOPOLOGY_DIRECT);
	CHECK_INT(topology_index(&t, 7), 3);
	CHECK_INT(topology_index(&t, 0), -1);
	CHECK_INT(t.distance[topology_index(&t, 7)][topology_index(&t, 4)], 20);
}

static void memory_on_two_of_eight_D34(struct tap *tap_)
{
	struct idset only4 = {0};
	struct topology t;

	fill_eight(&t, 16, 32);
	for (unsigned i = 0; i < 8; i++)
		t.node[i].has_memory = i % 4 == 0;
	topology_finish(&t);
	CHECK_INT(t.type, TOPOLOGY_BACKPLANE);
	CHECK_INT(t.distance[1][0], 16);
	CHECK_INT(topology_nearest_cpu_node(&t, 1), 1); /* it may still run there */
	CHECK_INT(topology_nearest_memory_node(&t, 1, NULL), 0);
	CHECK_INT(topology_nearest_memory_node(&t, 6, NULL), 4);
	idset_add(&only4, 4);
	CHECK_INT(topology_nearest_memory_node(&t, 1, &only4), 4);
	/* (a) four nodes, memory on 1 and 2, all 12: a tie goes to the lowest id */
	fill_topology(&t, 4,
		(uint16_t[]){10, 12, 12, 12, 12, 10, 12, 12, 12, 12, 10, 12, 12, 12, 12, 10}, 4);
	t.node[0].has_memory = t.node[3].has_memory = false;
	CHECK_INT(t.type, TOPOLOGY_DIRECT);
	CHECK_INT(topology_nearest_memory_node(&t, 0, NULL), 1);
	idset_clear(&only4);
	CHECK_INT(topology_nearest_memory_node(&t, 0, &only4), -1);
}

static void dozens_of_memory_only_nodes_D35(struct tap *tap_)
{
	static const uint16_t rows[30 * 30] = {0};
	static const char online[] = "0-1,3-9,11-17,19-25,27-33";
	struct topology t;
	struct idset ids;
	unsigned i = 0;

	REQUIRE(idset_parse_list(online, strlen(online), &ids) == 0);
	fill_topology(&t, 30, rows, 2);
	idset_foreach (id, &ids) {
		REQUIRE(i < 30);
		t.node[i++].id = (unsigned)id;
	}
	CHECK_INT(i, 30);
	topology_foreach (a, &t) {
		topology_foreach (b, &t) {
			t.distance[a][b] = a == b ? 10 : a < 2 && b < 2 ? 40 : 80;
		}
	}
	topology_finish(&t);
	CHECK_INT(t.type, TOPOLOGY_DIRECT);
	CHECK_INT(t.max_distance, 40);
	CHECK_INT(t.mended, 0);
	CHECK_INT(topology_index(&t, 33), 29);
	CHECK_INT(topology_index(&t, 2), -1);
	CHECK_INT(topology_nearest_cpu_node(&t, 29), 0);
	CHECK_INT(topology_nearest_memory_node(&t, 1, NULL), 1);
}

static void direction_counts_D36(struct tap *tap_)
{
	struct topology t;

	fill_topology(&t, 2, asymmetric, 2);
	CHECK_INT(t.distance[0][1], 21);
	CHECK_INT(t.distance[1][0], 28);
	CHECK_INT(t.mended, 0);
	/* stable: finishing it again finds nothing to mend and the same type */
	CHECK_INT(t.type, TOPOLOGY_GLUELESS_MESH);
	topology_finish(&t);
	CHECK_INT(t.type, TOPOLOGY_GLUELESS_MESH);
	CHECK_INT(t.mended, 0);
}

static void broken_tables_D37(struct tap *tap_)
{
	struct topology t;

	fill_topology(&t, 2, (uint16_t[]){10, 65535, 65535, 10}, 2);
	CHECK_INT(t.distance[0][1], 20);
	CHECK_INT(t.type, TOPOLOGY_DIRECT);
	CHECK_INT(t.mended, 2);
	fill_eight(&t, 20, 20);
	CHECK_INT(t.mended, 0);
	fill_topology(&t, 2, (uint16_t[]){10, 10, 10, 10}, 2);
	CHECK_INT(t.type, TOPOLOGY_DIRECT);
	CHECK_INT(t.max_distance, 10);
	CHECK_INT(t.mended, 0);
	fill_topology(&t, 3, (uint16_t[]){0, 21, 5, 21, 10, 21, 21, 21, 99}, 3);
	CHECK_INT(t.distance[0][0], 10);
	CHECK_INT(t.distance[0][2], 20);
	CHECK_INT(t.distance[2][2], 10);
	CHECK_INT(t.mended, 3);
}

static void limits_of_an_entry_D37(struct tap *tap_)
{
	static const struct {
		uint16_t in, out;
	} v[] = {{0, 20}, {9, 20}, {10, 20}, {11, 11}, {254, 254}, {255, 20}, {65535, 20}};
	struct topology t;

	for (size_t i = 0; i < ARRAY_LEN(v); i++) {
		/* the other entry is not 10, so this is no table of equally near nodes */
		fill_topology(&t, 2, (uint16_t[]){10, v[i].in, 21, 10}, 2);
		CHECK_INT(t.distance[0][1], v[i].out);
		CHECK_INT(t.distance[1][0], 21);
		CHECK_INT(t.mended, v[i].in != v[i].out);
	}
}

static void one_node_and_no_cpus(struct tap *tap_)
{
	struct topology t;

	fill_topology(&t, 1, (uint16_t[]){10}, 1);
	CHECK_INT(t.type, TOPOLOGY_DIRECT);
	CHECK_INT(t.max_distance, 10);
	fill_topology(&t, 2, pair, 0);
	CHECK_INT(t.type, TOPOLOGY_DIRECT);
	CHECK_INT(t.max_distance, 10);
	CHECK_INT(topology_nearest_cpu_node(&t, 1), -1);
	CHECK_INT(topology_node_of_cpu(&t, 0), -1);
}

static void cpus_belong_to_nodes(struct tap *tap_)
{
	struct topology t;

	fill_topology(&t, 4, mesh4, 4);
	CHECK_INT(topology_node_of_cpu(&t, 5), 2);
	CHECK_INT(topology_node_of_cpu(&t, 8), -1);
	CHECK_STR(topology_type_name(t.type), "mesh");
	CHECK_STR(topology_type_name(TOPOLOGY_DIRECT), "direct");
	CHECK_STR(topology_type_name(TOPOLOGY_BACKPLANE), "backplane");
}

TAP_MAIN(TEST(types_of_known_hosts_s4), TEST(cpuless_nodes_make_no_mesh_D05),
	TEST(memory_is_no_bridge_D05), TEST(the_first_far_row_tells_the_type_s4),
	TEST(no_node_0_D33), TEST(memory_on_two_of_eight_D34),
	TEST(dozens_of_memory_only_nodes_D35), TEST(direction_counts_D36), TEST(broken_tables_D37),
	TEST(limits_of_an_entry_D37), TEST(one_node_and_no_cpus), TEST(cpus_belong_to_nodes))
