/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "controller/host/balancer.h"

#include "tests/replay/hosts.h"

static void captured_counters(struct tap *tap_)
{
	_cleanup_hostfs_ struct hostfs fs = host_captured("debian13-4node");
	struct balancer b = {0};

	REQUIRE(balancer_read(&fs, &b) == 0);
	CHECK_INT(b.mode, 1);
	CHECK(b.has_counters && b.has_faults);
	CHECK_INT(b.pte_updates, 84647);
	CHECK_INT(b.hint_faults, 7475);
	CHECK_INT(b.hint_faults_local, 3362);
	CHECK_INT(b.pages_migrated, 25464);
	CHECK_INT(b.migrate_success, 25464);
	CHECK_INT(b.migrate_fail, 0);
}

static void a_kernel_without_it(struct tap *tap_)
{
	_cleanup_hostfs_ struct hostfs fs = host_made("uma");
	struct balancer b = {0};

	REQUIRE(balancer_read(&fs, &b) == 0);
	CHECK_INT(b.mode, -1);
	CHECK(!b.has_counters && !b.has_faults);
}

static void odd_counters_are_left_out(struct tap *tap_)
{
	static const char text[] = "numa_hint_faults x\nnuma_hint_faults_local 7 more\n"
				   "numa_pages_migrated\n\npgmigrate_fail 1";
	struct balancer b = {0};

	balancer_parse_vmstat(text, strlen(text), &b);
	CHECK(!b.has_faults);
	CHECK_INT(b.hint_faults_local, 7);
	CHECK_INT(b.migrate_fail, 0);
}

TAP_MAIN(TEST(captured_counters), TEST(a_kernel_without_it), TEST(odd_counters_are_left_out))
