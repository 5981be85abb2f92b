/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "policy/rules.h"
#include "tests/tap.h"

static void idle_destination_s6_2(struct tap *tap_)
{
	static const struct {
		long imp, best;
		bool may, before, kernel, nh;
	} v[] = {
		{0, 0, true, true, true, false},
		{0, 1, true, true, false, false},
		{50, 50, true, true, true, false},
		{29, 0, true, true, true, false},
		{30, 0, true, true, true, true},
		{500, 0, false, true, false, false},
		{50, 50, false, false, false, false},
		{51, 50, false, true, false, false},
		{115, 100, true, true, true, false},
		{116, 100, true, true, true, true},
	};

	for (size_t i = 0; i < ARRAY_LEN(v); i++) {
		CHECK_INT(rules_idle_destination(
				  RULES_KERNEL_BEFORE_2018, v[i].may, v[i].imp, v[i].best),
			v[i].before ? RULES_MOVE : RULES_REJECT);
		CHECK_INT(rules_idle_destination(RULES_KERNEL_2018, v[i].may, v[i].imp, v[i].best),
			v[i].kernel ? RULES_MOVE : RULES_REJECT);
		CHECK_INT(rules_idle_destination(RULES_KERNEL, v[i].may, v[i].imp, v[i].best),
			v[i].kernel ? RULES_MOVE : RULES_REJECT);
		CHECK_INT(rules_idle_destination(RULES_NUMAHERD, v[i].may, v[i].imp, v[i].best),
			v[i].nh ? RULES_MOVE : RULES_REJECT);
	}
}

static void running_destination_s6_2(struct tap *tap_)
{
	static const struct {
		long imp, move_imp, best;
		bool may;
		enum rules_verdict kernel, nh;
		long kernel_imp;
	} v[] = {
		{29, 10, 0, false, RULES_REJECT, RULES_REJECT, 0},
		{30, 10, 0, false, RULES_SWAP, RULES_SWAP, 30},
		{114, 0, 100, false, RULES_REJECT, RULES_REJECT, 0},
		{115, 0, 100, false, RULES_REJECT, RULES_REJECT, 0},
		{116, 0, 100, false, RULES_SWAP, RULES_SWAP, 116},
		{40, 0, 25, false, RULES_REJECT, RULES_REJECT, 0},
		{41, 0, 25, false, RULES_SWAP, RULES_SWAP, 41},
		{50, 60, 0, true, RULES_MOVE, RULES_MOVE, 60},
		{50, 50, 0, true, RULES_SWAP, RULES_SWAP, 50},
		{10, 20, 0, true, RULES_MOVE, RULES_REJECT, 20},
		{50, 60, 60, true, RULES_REJECT, RULES_REJECT, 0},
	};

	for (size_t i = 0; i < ARRAY_LEN(v); i++) {
		static const enum rules_variant all[] = {
			RULES_KERNEL, RULES_KERNEL_2018, RULES_NUMAHERD};

		for (size_t k = 0; k < ARRAY_LEN(all); k++) {
			bool nh = all[k] == RULES_NUMAHERD;
			enum rules_verdict want = nh ? v[i].nh : v[i].kernel;
			long got = -7; /* stays so on a rejection */

			CHECK_INT(rules_running_destination(all[k], v[i].may, v[i].move_imp,
					  v[i].imp, v[i].best, &got),
				want);
			CHECK_INT(got, want == RULES_REJECT ? -7 : v[i].kernel_imp);
		}
	}
}

/* The order was another one: the swap against the best first, then the move, one point less. */
static void before_2018_s6_1(struct tap *tap_)
{
	static const struct {
		long imp, move_imp, best;
		bool may;
		enum rules_verdict want;
		long want_imp;
	} v[] = {
		{1, 0, 0, false, RULES_SWAP, 1}, /* no SMALLIMP */
		{0, 0, 0, false, RULES_REJECT, -7},
		{100, 0, 100, false, RULES_REJECT, -7},
		{101, 0, 100, false, RULES_SWAP, 101},
		{50, 60, 0, true, RULES_MOVE, 59},
		{50, 60, 0, false, RULES_SWAP, 50},
		{50, 50, 0, true, RULES_SWAP, 50},
		{10, 500, 10, true, RULES_REJECT, -7},
	};

	for (size_t i = 0; i < ARRAY_LEN(v); i++) {
		long got = -7;

		CHECK_INT(rules_running_destination(RULES_KERNEL_BEFORE_2018, v[i].may,
				  v[i].move_imp, v[i].imp, v[i].best, &got),
			v[i].want);
		CHECK_INT(got, v[i].want_imp);
	}
}

static void node_weights_510_490_s6_2(struct tap *tap_)
{
	long got = -7;

	CHECK_INT(rules_running_destination(RULES_KERNEL, false, 20, 20, 0, &got), RULES_REJECT);
	CHECK_INT(got, -7);
	CHECK_INT(rules_idle_destination(RULES_KERNEL, true, 20, 0), RULES_MOVE);
	CHECK_INT(rules_idle_destination(RULES_NUMAHERD, true, 20, 0), RULES_REJECT);
}

static void preference_terms_s6_2(struct tap *tap_)
{
	static const struct {
		long own, src, dst;
		bool same_group;
		long none, prefers_dst, prefers_src;
	} v[] = {
		{100, 60, 0, true, 150, 141, 168},
		{40, 0, 9, false, 31, 30, 34},
		{200, 150, 50, false, 300, 282, 337},
		{200, 90, 120, false, 170, 160, 191},
		{10, 0, 43, false, -33, -31, -37},
		{10, 0, 25, false, -15, -15, -16},
		{999, 999, 0, false, 1998, 1874, 2247},
	};

	for (size_t i = 0; i < ARRAY_LEN(v); i++) {
		long imp = rules_swap_improvement(v[i].own, v[i].src, v[i].dst, v[i].same_group);

		CHECK_INT(rules_preference_term(imp, RULES_PREFERS_NONE), v[i].none);
		CHECK_INT(rules_preference_term(imp, RULES_PREFERS_DST), v[i].prefers_dst);
		CHECK_INT(rules_preference_term(imp, RULES_PREFERS_SRC), v[i].prefers_src);
	}
}

TAP_MAIN(TEST(idle_destination_s6_2), TEST(running_destination_s6_2), TEST(before_2018_s6_1),
	TEST(node_weights_510_490_s6_2), TEST(preference_terms_s6_2))
