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

static void direct(struct tap *tap_)
{
	struct topology t;

	fill_topology(&t, 2, pair, 2);
	check(tap_, &t, &(struct vector){{700, 300}, ANY, {700, 300}});
	check(tap_, &t, &(struct vector){{0, 0}, ANY, {0, 0}});
}

static void on_a_ring(struct tap *tap_)
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

static void on_two_chassis(struct tap *tap_)
{
	struct topology t;

	fill_topology(&t, 4, chassis, 4);
	check(tap_, &t, &(struct vector){{600, 200, 0, 200}, 20, {600, 200, 0, 200}});
	check(tap_, &t, &(struct vector){{600, 200, 0, 200}, 40, {800, 800, 200, 200}});
}

static void on_mesh4(struct tap *tap_)
{
	struct topology t;

	fill_topology(&t, 4, mesh4, 4);
	check(tap_, &t, &(struct vector){{0, 5, 0, 3561}, ANY, {0, 500, 499, 999}});
	check(tap_, &t, &(struct vector){{7, 3, 2, 1}, ANY, {692, 461, 384, 230}});
}

static void on_eight_nodes(struct tap *tap_)
{
	struct topology t;

	fill_eight(&t, 16, 32);
	check(tap_, &t, &(struct vector){{0, 500, 0, 0, 0, 500}, 16, {0, 500, 0, 0, 0, 500}});
	check(tap_, &t,
		&(struct vector){
			{0, 500, 0, 0, 0, 500}, 32, {500, 500, 500, 500, 500, 500, 500, 500}});
}

static void on_subnuma(struct tap *tap_)
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

static void preferred_group(struct tap *tap_)
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

static void active_nodes(struct tap *tap_)
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
}

TAP_MAIN(TEST(direct), TEST(on_a_ring), TEST(on_two_chassis), TEST(on_mesh4), TEST(on_eight_nodes),
	TEST(on_subnuma), TEST(all_distances_10_D37), TEST(cpuless_nodes_D05),
	TEST(values_near_the_top_do_not_overflow), TEST(preferred_group), TEST(active_nodes))
