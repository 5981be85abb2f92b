/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "policy/load.h"
#include "tests/tap.h"

static void classes_s5(struct tap *tap_)
{
	static const struct {
		struct node_load load; /* weight, nr_running, capacity, util, runnable */
		unsigned pct;
		enum node_class want;
	} v[] = {
		{{8, 9, 8192, 7315, 8000}, 112, NODE_OVERLOADED},
		{{8, 9, 8192, 7314, 9175}, 112, NODE_HAS_SPARE},
		{{8, 9, 8192, 7314, 9176}, 112, NODE_OVERLOADED},
		{{8, 8, 8192, 7400, 9000}, 112, NODE_FULLY_BUSY},
		{{8, 7, 8192, 9000, 20000}, 112, NODE_HAS_SPARE},
		{{8, 9, 8192, 7586, 8000}, 108, NODE_OVERLOADED},
		/* exactly at the limits: neither the one nor the other */
		{{1, 2, 112, 100, 100}, 112, NODE_FULLY_BUSY},
		{{1, 2, 100, 50, 112}, 112, NODE_FULLY_BUSY},
		{{1, 2, 100, 50, 113}, 112, NODE_OVERLOADED},
		{{1, 2, 100, 50, 111}, 112, NODE_HAS_SPARE},
	};

	for (size_t i = 0; i < ARRAY_LEN(v); i++)
		CHECK_INT(load_classify(v[i].pct, &v[i].load), v[i].want);
}

static void imbalance_that_is_allowed_s5(struct tap *tap_)
{
	static const struct {
		long imb;
		unsigned dst, nr;
		long want;
	} v[] = {{3, 5, 4, 3}, {2, 4, 4, 0}, {3, 4, 4, 3}, {2, 5, 4, 2}, {1, 1, 0, 1}};

	for (size_t i = 0; i < ARRAY_LEN(v); i++)
		CHECK_INT(load_adjust_imbalance(v[i].imb, v[i].dst, v[i].nr), v[i].want);
}

static void moving_to_a_node_with_spare_s6(struct tap *tap_)
{
	static const struct {
		unsigned src, dst, nr;
		bool want;
	} v[] = {{4, 2, 4, true}, {2, 2, 4, true}, {1, 3, 4, false}, {2, 3, 4, false},
		{2, 1, 1, false}, {3, 1, 1, true}, {2, 2, 2, false},
		{5, 1, 0, true} /* below 0 is 0 */};

	for (size_t i = 0; i < ARRAY_LEN(v); i++)
		CHECK_INT(load_may_move_to_spare(v[i].src, v[i].dst, v[i].nr), v[i].want);
}

static void too_imbalanced_s5(struct tap *tap_)
{
	static const struct {
		uint64_t src, dst;
		int64_t moved;
		uint64_t src_cap, dst_cap;
		bool refused;
	} v[] = {
		{2048, 1024, 1024, 1024, 1024, false},
		{2048, 0, 1024, 1024, 1024, false},
		{1024, 1024, 512, 1024, 1024, true},
		{1024, 0, 1024, 1024, 1024, false}, /* mirror image */
		{1024, 0, 1025, 1024, 1024, true},
		{2048, 2048, 512, 4096, 8192, false},
		{2048, 2048, 1024, 4096, 8192, false},
		{2048, 1024, 1024, 2048, 1024, true},
		{2048, 1024, 512, 2048, 1024, true},
	};

	for (size_t i = 0; i < ARRAY_LEN(v); i++) {
		bool r = load_too_imbalanced(
			v[i].src, v[i].dst, v[i].moved, v[i].src_cap, v[i].dst_cap);

		if (r != v[i].refused)
			printf("# row %zu\n", i);
		CHECK_INT(r, v[i].refused);
	}
}

static void load_test_of_a_swap_s6_2(struct tap *tap_)
{
	static const struct {
		uint64_t src, dst;
		int64_t p, cur;
		bool refused;
	} v[] = {
		{2048, 2048, 1024, 512, true},
		{2048, 2048, 512, 512, false}, /* nothing moves: accepted */
		{2048, 2048, 512, 1024, true},
		{3072, 2048, 1024, 512, false},
	};

	for (size_t i = 0; i < ARRAY_LEN(v); i++)
		CHECK_INT(load_too_imbalanced(v[i].src, v[i].dst, v[i].p - v[i].cur, 1024, 1024),
			v[i].refused);
}

static void more_moves_than_is_there(struct tap *tap_)
{
	/* measured at different times: the emptied side is 0, not a huge number */
	CHECK(load_too_imbalanced(100, 0, 200, 1024, 1024));
	CHECK(!load_too_imbalanced(100, 0, 150, 100, 1000));
	CHECK(!load_too_imbalanced(100, 5000, -200, 1024, 1024));
	CHECK(!load_too_imbalanced(0, 100, -150, 1000, 100));
	CHECK(load_too_imbalanced(0, 100, -200, 1024, 1024));
	CHECK(load_too_imbalanced(0, 0, INT64_MIN, 1024, 1024));
}

static void large_numbers(struct tap *tap_)
{
	const uint64_t big = UINT64_C(1) << 40;

	CHECK(!load_too_imbalanced(big, 0, (int64_t)big, big, big));
	CHECK(load_too_imbalanced(big, big, (int64_t)big / 2, big, big));
	/* both imbalances are above 2^64 */
	CHECK(load_too_imbalanced(big / 2, big, (int64_t)big / 4, big, big));
	CHECK(!load_too_imbalanced(big, big / 2, (int64_t)big / 4, big, big));
}

TAP_MAIN(TEST(classes_s5), TEST(imbalance_that_is_allowed_s5), TEST(moving_to_a_node_with_spare_s6),
	TEST(too_imbalanced_s5), TEST(load_test_of_a_swap_s6_2), TEST(more_moves_than_is_there),
	TEST(large_numbers))
