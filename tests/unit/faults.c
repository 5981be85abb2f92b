/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "policy/faults.h"
#include "tests/tap.h"

static void one_window_decays_s2(struct tap *tap_)
{
	static const uint64_t want[] = {1000, 500, 250, 125, 63, 32, 16, 8, 4, 2, 1, 1, 1};
	uint64_t v = faults_fold(0, 1000);

	for (size_t i = 0; i < ARRAY_LEN(want); i++, v = faults_fold(v, 0))
		CHECK_INT(v, want[i]);
}

static void a_steady_input_converges_s2(struct tap *tap_)
{
	static const uint64_t want[] = {
		1000, 1500, 1750, 1875, 1938, 1969, 1985, 1993, 1997, 1999, 2000, 2000};
	uint64_t v = 0, seven = 0, one = 0;

	for (size_t i = 0; i < ARRAY_LEN(want); i++) {
		v = faults_fold(v, 1000);
		CHECK_INT(v, want[i]);
	}
	for (unsigned i = 0; i < 100; i++) {
		seven = faults_fold(seven, 7);
		one = faults_fold(one, 1);
	}
	CHECK_INT(seven, 14);
	CHECK_INT(one, 2);
}

static void windows_100_0_0_50_50_s2(struct tap *tap_)
{
	static const uint64_t in[] = {100, 0, 0, 50, 50}, want[] = {100, 50, 25, 63, 82};
	uint64_t v = 0;

	for (size_t i = 0; i < ARRAY_LEN(in); i++) {
		v = faults_fold(v, in[i]);
		CHECK_INT(v, want[i]);
	}
}

static void it_saturates(struct tap *tap_)
{
	CHECK(faults_fold(UINT64_MAX, UINT64_MAX) == UINT64_MAX);
}

static void undoing_one_pass_s2(struct tap *tap_)
{
	bool inexact = false;

	CHECK_INT(faults_undo_decay(25, 63, 1, &inexact), 50);
	CHECK_INT(faults_undo_decay(0, 1000, 1, &inexact), 1000);
	CHECK_INT(faults_undo_decay(1000, 500, 1, &inexact), 0);
	CHECK_INT(faults_undo_decay(1000, 100, 1, &inexact), 0); /* it was reset */
	CHECK(!inexact);
	CHECK_INT(faults_undo_decay(1000, 1700, 0, &inexact), 0);
	for (uint64_t old = 0; old < 300; old++)
		for (uint64_t window = 0; window < 50; window++)
			CHECK(faults_undo_decay(old, faults_fold(old, window), 1, &inexact) ==
				window);
}

static void undoing_several_passes(struct tap *tap_)
{
	bool inexact = false;

	/* 1000, then 100 and 60 in two passes: 500 + 100 = 600, 300 + 60 = 360; 110 are not old */
	CHECK_INT(faults_undo_decay(1000, 360, 2, &inexact), 110);
	CHECK(inexact);
	CHECK_INT(faults_undo_decay(1000, 1, 1000, &inexact), 0);
}

TAP_MAIN(TEST(one_window_decays_s2), TEST(a_steady_input_converges_s2),
	TEST(windows_100_0_0_50_50_s2), TEST(it_saturates), TEST(undoing_one_pass_s2),
	TEST(undoing_several_passes))
