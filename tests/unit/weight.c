/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "policy/weight.h"
#include "tests/matrices.h"
#include "tests/tap.h"

#define ANY 0

struct vector {
	uint64_t faults[8];
	unsigned limit; /* ANY: the largest distance */
	unsigned want[8];
};

static void check(struct tap *tap_, const struct topology *t, const struct vector *v)
{
	for (unsigned n = 0; n < t->n_nodes; n++)
		CHECK_INT(weight_of(t, v->faults, n, v->limit ? v->limit : t->max_distance),
			v->want[n]);
}

static void direct_s4(struct tap *tap_)
{
	struct topology t;

	fill_topology(&t, 2, pair, 2);
	check(tap_, &t, &(struct vector){{700, 300}, ANY, {700, 300}});
	check(tap_, &t, &(struct vector){{0, 0}, ANY, {0, 0}});
}

static void on_a_ring_s4(struct tap *tap_)
{
	static const struct vector v[] = {
		{{600, 200, 0, 200}, ANY, {800, 500, 200, 500}},
		{{300, 0, 310, 200}, ANY, {493, 376, 506, 623}},
		{{100, 100, 100, 100}, ANY, {500, 500, 500, 500}},
	};
	struct topology t;

	fill_topology(&t, 4, ring, 4);
	for (size_t i = 0; i < ARRAY_LEN(v); i++)
		check(tap_, &t, &v[i]);
}

static void on_two_chassis_s4(struct tap *tap_)
{
	struct topology t;

	fill_topology(&t, 4, chassis, 4);
	check(tap_, &t, &(struct vector){{600, 200, 0, 200}, 20, {600, 200, 0, 200}});
	check(tap_, &t, &(struct vector){{600, 200, 0, 200}, 40, {800, 800, 200, 200}});
}

static void on_mesh4_s4(struct tap *tap_)
{
	struct topology t;

	fill_topology(&t, 4, mesh4, 4);
	check(tap_, &t, &(struct vector){{0, 5, 0, 3561}, ANY, {0, 500, 499, 999}});
	check(tap_, &t, &(struct vector){{7, 3, 2, 1}, ANY, {692, 461, 384, 230}});
}

static void on_eight_nodes_s4(struct tap *tap_)
{
	struct topology t;

	fill_eight(&t, 16, 32);
	check(tap_, &t, &(struct vector){{0, 500, 0, 0, 0, 500}, 16, {0, 500, 0, 0, 0, 500}});
	check(tap_, &t,
		&(struct vector){
			{0, 500, 0, 0, 0, 500}, 32, {500, 500, 500, 500, 500, 500, 500, 500}});
}

static void on_subnuma_s4(struct tap *tap_)
{
	struct topology t;

	fill_topology(&t, 6, subnuma, 6);
	check(tap_, &t,
		&(struct vector){
			{100, 100, 100, 100, 100, 100}, ANY, {470, 515, 515, 470, 515, 515}});
}

static void all_distances_10_D37(struct tap *tap_)
{
	struct topology t;

	fill_topology(&t, 2, (uint16_t[]){10, 10, 10, 10}, 2);
	check(tap_, &t, &(struct vector){{700, 300}, ANY, {700, 300}});
}

static void cpuless_nodes_D05(struct tap *tap_)
{
	struct topology t;

	fill_topology(&t, 4, pmem, 2);
	check(tap_, &t, &(struct vector){{700, 300, 0, 0}, ANY, {700, 300, 0, 0}});
}

static void values_near_the_top_do_not_overflow(struct tap *tap_)
{
	const uint64_t top = UINT64_C(1) << 61;
	struct topology t;

	fill_topology(&t, 4, mesh4, 4);
	check(tap_, &t, &(struct vector){{top, 0, 0, 0}, ANY, {1000, 500, 500, 0}});
	check(tap_, &t, &(struct vector){{top, top, top, top}, ANY, {500, 500, 500, 500}});
}

static void sums_above_the_top_do_not_overflow(struct tap *tap_)
{
	static uint16_t rows[64 * 64];
	uint64_t faults[64];
	struct topology t;

	/* two chassis: 62 nodes that are near each other, and two */
	for (unsigned a = 0; a < 64; a++)
		for (unsigned b = 0; b < 64; b++)
			rows[a * 64 + b] = a == b ? 10 : (a < 62) == (b < 62) ? 20 : 40;
	fill_topology(&t, 64, rows, 64);
	for (unsigned n = 0; n < 64; n++)
		faults[n] = UINT64_MAX;
	CHECK(weight_sum(&t, faults) == UINT64_MAX);
	CHECK_INT(t.type, TOPOLOGY_BACKPLANE);
	CHECK_INT(weight_of(&t, faults, 0, 40), 968); /* 62 of 64 */
	CHECK_INT(weight_of(&t, faults, 63, 40), 31); /* 2 of 64 */
	CHECK_INT(weight_of(&t, faults, 0, 20), 15);
}

static void tasks_prefer_nodes_with_cpus_D05(struct tap *tap_)
{
	struct topology t;

	fill_topology(&t, 4, pmem, 2);
	CHECK_INT(weight_preferred_task(&t, (uint64_t[]){100, 50, 0, 400}), 1);
	CHECK_INT(weight_preferred_group(&t, (uint64_t[]){50, 100, 400, 0}), 0);
	CHECK_INT(weight_preferred_task(&t, (uint64_t[]){100, 100, 0, 0}), 0);
}

/* Nodes 0-3 as they are and a memory-only node 4 that is far from all, nearest to node 2. */
static void add_far_memory(struct topology *t, const uint16_t *rows)
{
	uint16_t five[25];

	for (unsigned a = 0; a < 5; a++)
		for (unsigned b = 0; b < 5; b++)
			five[a * 5 + b] = a < 4 && b < 4     ? rows[a * 4 + b]
					  : a == b           ? 10
					  : a == 2 || b == 2 ? 80
							     : 90;
	fill_topology(t, 5, five, 4);
}

static void groups_with_all_faults_on_far_memory(struct tap *tap_)
{
	static const uint64_t far[] = {0, 0, 0, 0, 700}, some[] = {0, 1, 0, 0, 700};
	struct topology t;

	add_far_memory(&t, ring);
	CHECK_INT(t.type, TOPOLOGY_GLUELESS_MESH);
	CHECK_INT(weight_preferred_group(&t, far), 2);
	CHECK_INT(weight_preferred_group(&t, some), 1);
	add_far_memory(&t, chassis);
	CHECK_INT(t.type, TOPOLOGY_BACKPLANE);
	CHECK_INT(weight_preferred_group(&t, far), 2);
	CHECK_INT(weight_preferred_group(&t, some), 1);
}

static void preferred_group_s8(struct tap *tap_)
{
	static const struct {
		uint64_t faults[4];
		int want;
	} on_ring[] = {{{600, 200, 0, 200}, 0}, {{300, 0, 310, 200}, 3}, {{100, 100, 100, 100}, 0}},
	  on_chassis[] = {{{300, 250, 400, 0}, 0}, {{250, 300, 400, 100}, 1}};
	static const uint64_t eight_a[] = {100, 100, 100, 100, 0, 390, 0, 0};
	static const uint64_t eight_b[] = {90, 90, 90, 90, 0, 390, 0, 0};
	static const uint64_t on_mesh[] = {400, 190, 190, 450}, none[8] = {0};
	struct topology t;

	fill_topology(&t, 4, ring, 4);
	for (size_t i = 0; i < ARRAY_LEN(on_ring); i++)
		CHECK_INT(weight_preferred_group(&t, on_ring[i].faults), on_ring[i].want);
	CHECK_INT(weight_preferred_task(&t, on_ring[1].faults), 2);
	fill_topology(&t, 4, mesh4, 4);
	CHECK_INT(weight_preferred_group(&t, on_mesh), 3);
	fill_topology(&t, 4, chassis, 4);
	for (size_t i = 0; i < ARRAY_LEN(on_chassis); i++)
		CHECK_INT(weight_preferred_group(&t, on_chassis[i].faults), on_chassis[i].want);
	CHECK_INT(weight_preferred_task(&t, on_chassis[0].faults), 2);
	fill_eight(&t, 16, 32);
	CHECK_INT(weight_preferred_group(&t, eight_a), 0);
	CHECK_INT(weight_preferred_group(&t, eight_b), 5);
	CHECK_INT(weight_preferred_group(&t, none), -1);
	CHECK_INT(weight_preferred_task(&t, none), -1);
}

static void active_nodes_s8(struct tap *tap_)
{
	static const struct {
		uint64_t faults[4];
		const char *want;
	} v[] = {{{900, 300, 301, 0}, "0,2"}, {{10, 3, 4, 0}, "0,2"}, {{100, 100, 100, 100}, "0-3"},
		{{0, 0, 0, 0}, ""}};
	struct topology t;
	struct idset s;
	char buf[64];

	fill_topology(&t, 4, ring, 4);
	for (size_t i = 0; i < ARRAY_LEN(v); i++) {
		weight_active_nodes(&t, v[i].faults, &s);
		CHECK_STR(idset_format(&s, buf, sizeof(buf)), v[i].want);
	}
	weight_active_nodes(
		&t, (uint64_t[]){UINT64_MAX, UINT64_MAX / 3, UINT64_MAX / 3 + 1, 1}, &s);
	CHECK_STR(idset_format(&s, buf, sizeof(buf)), "0,2");
	fill_topology(&t, 4, pmem, 2);
	weight_active_nodes(&t, (uint64_t[]){30, 11, 900, 900}, &s);
	CHECK_STR(idset_format(&s, buf, sizeof(buf)), "0-1");
}

TAP_MAIN(TEST(direct_s4), TEST(on_a_ring_s4), TEST(on_two_chassis_s4), TEST(on_mesh4_s4),
	TEST(on_eight_nodes_s4), TEST(on_subnuma_s4), TEST(all_distances_10_D37),
	TEST(cpuless_nodes_D05), TEST(values_near_the_top_do_not_overflow),
	TEST(sums_above_the_top_do_not_overflow), TEST(tasks_prefer_nodes_with_cpus_D05),
	TEST(groups_with_all_faults_on_far_memory), TEST(preferred_group_s8), TEST(active_nodes_s8))
