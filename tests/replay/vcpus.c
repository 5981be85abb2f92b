/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "controller/host/vcpus.h"

#include "tests/replay/hosts.h"

static int find(struct hostfs *fs, pid_t pid, struct vcpu_threads *ret)
{
	_cleanup_vm_cgroup_ struct vm_cgroup cg = {0};
	int r = vm_cgroup_find(fs, pid, &cg);

	return r ? r : vcpu_threads_find(fs, pid, &cg, ret);
}

static void D41_threads_without_names(struct tap *tap_)
{
	_cleanup_hostfs_ struct hostfs fs = host_made("cgroup-v2");
	_cleanup_vcpu_threads_ struct vcpu_threads v = {0};
	struct vcpu_threads none = {0};

	REQUIRE(find(&fs, 1000, &v) == 0);
	REQUIRE(v.n == 2);
	CHECK_INT(v.source, VCPUS_FROM_CGROUP);
	CHECK_INT(v.vcpu[0].id, 0);
	CHECK_INT(v.vcpu[0].tid, 1001);
	CHECK_INT(v.vcpu[1].tid, 1002);
	CHECK_INT(v.anomalies, 0);
	/* without the cgroups nothing tells them apart */
	CHECK_INT(vcpu_threads_find(&fs, 1000, NULL, &none), HOST_E_NOT_FOUND);
}

static void D41_by_the_word_of_qemu(struct tap *tap_)
{
	static const struct vcpu_thread said[] = {{1, 1002}, {0, 1001}, {2, 2001}, {3, 1}};
	_cleanup_hostfs_ struct hostfs fs = host_made("cgroup-v2");
	_cleanup_vcpu_threads_ struct vcpu_threads v = {0};
	struct vcpu_threads none = {0};

	/* 2001 is a thread of another QEMU, 1 of another user: nobody can lend us those */
	REQUIRE(vcpu_threads_check(&fs, 1000, said, ARRAY_LEN(said), &v) == 0);
	CHECK_INT(v.source, VCPUS_FROM_QMP);
	REQUIRE(v.n == 2);
	CHECK_INT(v.vcpu[0].tid, 1001);
	CHECK_INT(v.vcpu[1].tid, 1002);
	CHECK_INT(v.anomalies, 2);
	CHECK(!v.one_for_all);
	CHECK_INT(vcpu_threads_check(&fs, 1000, said + 2, 2, &none), HOST_E_NOT_FOUND);
	CHECK_INT(vcpu_threads_check(&fs, 1, said, 2, &none), HOST_E_GONE);
}

static void two_vcpus_of_one_thread_are_not_told_apart(struct tap *tap_)
{
	static const struct vcpu_thread said[] = {{0, 1001}, {1, 1001}};
	_cleanup_hostfs_ struct hostfs fs = host_made("cgroup-v2");
	_cleanup_vcpu_threads_ struct vcpu_threads v = {0};

	REQUIRE(vcpu_threads_check(&fs, 1000, said, 2, &v) == 0);
	CHECK(v.one_for_all);
}

static void D15_ids_have_gaps(struct tap *tap_)
{
	static const struct vcpu_thread want[] = {{0, 2001}, {1, 2002}, {4, 2005}, {5, 2006}};
	_cleanup_hostfs_ struct hostfs fs = host_made("cgroup-v2");

	for (unsigned names = 0; names < 2; names++) {
		_cleanup_vcpu_threads_ struct vcpu_threads v = {0};

		REQUIRE((names ? vcpu_threads_find(&fs, 2000, NULL, &v) : find(&fs, 2000, &v)) ==
			0);
		CHECK_INT(v.source, names ? VCPUS_FROM_NAMES : VCPUS_FROM_CGROUP);
		REQUIRE(v.n == ARRAY_LEN(want));
		for (size_t i = 0; i < v.n; i++) {
			CHECK_INT(v.vcpu[i].id, want[i].id);
			CHECK_INT(v.vcpu[i].tid, want[i].tid);
		}
	}
}

static void D12_only_those_plugged_in(struct tap *tap_)
{
	_cleanup_hostfs_ struct hostfs fs = host_made("cgroup-v1");
	_cleanup_vcpu_threads_ struct vcpu_threads v = {0};

	REQUIRE(find(&fs, 1010, &v) == 0);
	REQUIRE(v.n == 6);
	CHECK_INT(v.vcpu[5].id, 5);
	CHECK_INT(v.vcpu[5].tid, 1016);
}

static void captured_guests_by_name(struct tap *tap_)
{
	_cleanup_hostfs_ struct hostfs fs = host_captured("debian13-4node");
	_cleanup_vcpu_threads_ struct vcpu_threads v = {0};
	struct vcpu_threads none = {0};

	REQUIRE(find(&fs, 594, &v) == 0); /* its cgroups were not captured */
	CHECK_INT(v.source, VCPUS_FROM_NAMES);
	REQUIRE(v.n == 2);
	CHECK_INT(v.vcpu[0].tid, 602);
	CHECK_INT(v.vcpu[1].tid, 603);
	CHECK(!v.one_for_all);
	CHECK_INT(vcpu_threads_find(&fs, 1, NULL, &none), HOST_E_GONE);
}

static void one_thread_for_all_vcpus(struct tap *tap_)
{
	_cleanup_hostfs_ struct hostfs fs = host_made("cgroup-v2");
	_cleanup_vcpu_threads_ struct vcpu_threads v = {0};

	REQUIRE(find(&fs, 3000, &v) == 0);
	REQUIRE(v.n == 1);
	CHECK_INT(v.vcpu[0].tid, 3001);
	CHECK(v.one_for_all);
}

TAP_MAIN(TEST(D41_threads_without_names), TEST(D41_by_the_word_of_qemu),
	TEST(two_vcpus_of_one_thread_are_not_told_apart), TEST(D15_ids_have_gaps),
	TEST(D12_only_those_plugged_in), TEST(captured_guests_by_name),
	TEST(one_thread_for_all_vcpus))
