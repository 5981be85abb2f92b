/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "controller/host/cgroup.h"

#include "tests/replay/hosts.h"

static struct idset ids(const char *list)
{
	struct idset s = {0};

	idset_parse_list(list, strlen(list), &s);
	return s;
}

static void groups_from_text(struct tap *tap_)
{
	static const struct {
		const char *text, *mount, *group;
		bool v2;
	} rows[] = {
		{"0::/machine.slice/machine-qemu\\x2d1\\x2da.scope/libvirt/emulator\n",
			"sys/fs/cgroup", "/machine.slice/machine-qemu\\x2d1\\x2da.scope/libvirt",
			true},
		{"0::/m.slice/x.scope/libvirt/vcpu12\n", "sys/fs/cgroup",
			"/m.slice/x.scope/libvirt", true},
		{"0::/m.slice/x.scope/libvirt\n", "sys/fs/cgroup", "/m.slice/x.scope/libvirt",
			true},
		{"0::/\n", "sys/fs/cgroup", "/", true},
		{"0::/user.slice/vcpuless\n", "sys/fs/cgroup", "/user.slice/vcpuless", true},
		{"3:cpuset:/machine/qemu-1-a.libvirt-qemu/emulator\n0::/x\n",
			"sys/fs/cgroup/cpuset", "/machine/qemu-1-a.libvirt-qemu", false},
		{"0::/x\n3:cpu,cpuset:/m/iothread2\n", "sys/fs/cgroup/cpuset", "/m", false},
		{"9:name=a:b:/y\n0::/a:b\n", "sys/fs/cgroup", "/a:b", true},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		_cleanup_vm_cgroup_ struct vm_cgroup cg = {0};

		REQUIRE(vm_cgroup_parse(rows[i].text, strlen(rows[i].text), &cg) == 0);
		CHECK_STR(cg.mount, rows[i].mount);
		CHECK_STR(cg.group, rows[i].group);
		CHECK_INT(cg.v2, rows[i].v2);
	}
}

static void groups_that_cannot_be_used(struct tap *tap_)
{
	struct vm_cgroup cg = {0};

	CHECK_INT(vm_cgroup_parse("", 0, &cg), HOST_E_FORMAT);
	CHECK_INT(vm_cgroup_parse("0::/machine.sl", 14, &cg), HOST_E_NOT_FOUND);
	CHECK_INT(vm_cgroup_parse("4:memory:/x\n", 12, &cg), HOST_E_NOT_FOUND);
	CHECK_INT(vm_cgroup_parse("0::/../../etc\n", 14, &cg), HOST_E_FORMAT);
	CHECK_INT(vm_cgroup_parse("0::/a\0b\n", 8, &cg), HOST_E_FORMAT);
	CHECK(!cg.mount);
}

static void D41_threads_of_version_2(struct tap *tap_)
{
	_cleanup_hostfs_ struct hostfs fs = host_made("cgroup-v2");
	_cleanup_vm_cgroup_ struct vm_cgroup cg = {0};
	_cleanup_cgroup_threads_ struct cgroup_threads t = {0};

	REQUIRE(vm_cgroup_find(&fs, 1000, &cg) == 0);
	CHECK(cg.v2 && cg.has_threads);
	REQUIRE(cgroup_threads_read(&fs, &cg, &t) == 0);
	REQUIRE(t.n == 5);
	CHECK_INT(t.thread[0].role, CGROUP_EMULATOR);
	CHECK_INT(t.thread[0].tid, 1000);
	CHECK_INT(t.thread[2].tid, 1004);
	CHECK_INT(t.thread[3].role, CGROUP_VCPU);
	CHECK_INT(t.thread[3].index, 0);
	CHECK_INT(t.thread[3].tid, 1001);
	CHECK_INT(t.thread[4].tid, 1002);
	CHECK_INT(t.anomalies, 0);
}

static void the_scope_is_found_too(struct tap *tap_)
{
	_cleanup_hostfs_ struct hostfs fs = host_made("cgroup-v2");
	_cleanup_vm_cgroup_ struct vm_cgroup cg = {0};
	_cleanup_cgroup_threads_ struct cgroup_threads t = {0};

	REQUIRE(vm_cgroup_find(&fs, 2000, &cg) == 0); /* the process itself is in the scope */
	CHECK(cg.has_threads);
	CHECK_STR(cg.group, "/machine.slice/machine-qemu\\x2d2\\x2dvm2.scope/libvirt");
	REQUIRE(cgroup_threads_read(&fs, &cg, &t) == 0);
	REQUIRE(t.n == 6);
	CHECK_INT(t.thread[5].role, CGROUP_IOTHREAD);
	CHECK_INT(t.thread[5].index, 1);
	CHECK_INT(t.thread[5].tid, 2009);
}

static void D12_threads_of_version_1(struct tap *tap_)
{
	_cleanup_hostfs_ struct hostfs fs = host_made("cgroup-v1");
	_cleanup_vm_cgroup_ struct vm_cgroup cg = {0};
	_cleanup_cgroup_threads_ struct cgroup_threads t = {0};

	REQUIRE(vm_cgroup_find(&fs, 1010, &cg) == 0);
	CHECK(!cg.v2 && cg.has_threads);
	CHECK_STR(cg.mount, "sys/fs/cgroup/cpuset");
	REQUIRE(cgroup_threads_read(&fs, &cg, &t) == 0);
	CHECK_INT(t.n, 7);
	CHECK_INT(t.thread[6].index, 5);
	CHECK_INT(t.thread[6].tid, 1016);
}

static void no_groups_of_threads(struct tap *tap_)
{
	_cleanup_hostfs_ struct hostfs fs = host_captured("debian13-4node");
	_cleanup_vm_cgroup_ struct vm_cgroup cg = {0};
	struct cgroup_threads t = {0};

	REQUIRE(vm_cgroup_find(&fs, 594, &cg) == 0);
	CHECK(!cg.has_threads);
	CHECK_INT(cgroup_threads_read(&fs, &cg, &t), HOST_E_NOT_FOUND);
	CHECK_INT(vm_cgroup_find(&fs, 1, &cg), HOST_E_GONE);
}

/* One version of D11: the file's name says which CPU is excluded where. */
static void check_D11(struct tap *tap_, const char *host, pid_t pid, const char *want_file)
{
	struct idset cpus = ids("0-7"), mems = ids("0-1");
	_cleanup_hostfs_ struct hostfs fs = host_made(host);
	_cleanup_cgroup_allowed_ struct cgroup_allowed a = {0};
	_cleanup_vm_cgroup_ struct vm_cgroup cg = {0};
	_cleanup_free_ char *file = NULL, *none = NULL;

	REQUIRE(vm_cgroup_find(&fs, pid, &cg) == 0);
	REQUIRE(cgroup_allowed_read(&fs, &cg, &cpus, &mems, &a) == 0);
	IDS(&a.cpus, "0-6");
	IDS(&a.mems, "0-1");
	CHECK_STR(a.cpus_file, want_file);
	CHECK(!a.mems_file);
	CHECK_INT(a.anomalies, 0);
	REQUIRE(cgroup_who_excludes(&fs, &cg, CGROUP_CPUS, 7, &file) == 0);
	CHECK_STR(file, want_file);
	CHECK_INT(cgroup_who_excludes(&fs, &cg, CGROUP_CPUS, 6, &none), HOST_E_NOT_FOUND);
	CHECK_INT(cgroup_who_excludes(&fs, &cg, CGROUP_MEMS, 1, &none), HOST_E_NOT_FOUND);
}

static void D11_version_2(struct tap *tap_)
{
	check_D11(tap_, "cgroup-v2", 1000, "/sys/fs/cgroup/machine.slice/cpuset.cpus.effective");
}

static void D11_version_1(struct tap *tap_)
{
	check_D11(tap_, "cgroup-v1", 1010, "/sys/fs/cgroup/cpuset/machine.slice/cpuset.cpus");
}

static void D22_nodes_are_narrowed_too(struct tap *tap_)
{
	struct idset cpus = ids("0-7"), mems = ids("0-1");
	_cleanup_hostfs_ struct hostfs fs = host_made("cgroup-v2");
	_cleanup_cgroup_allowed_ struct cgroup_allowed a = {0};
	_cleanup_vm_cgroup_ struct vm_cgroup cg = {0};

	REQUIRE(vm_cgroup_find(&fs, 2000, &cg) == 0);
	REQUIRE(cgroup_allowed_read(&fs, &cg, &cpus, &mems, &a) == 0);
	IDS(&a.mems, "1");
	CHECK_STR(a.mems_file, "/sys/fs/cgroup/machine.slice/machine-qemu\\x2d2\\x2dvm2.scope/"
			       "cpuset.mems.effective");
}

static void without_a_hierarchy_nothing_is_taken_away(struct tap *tap_)
{
	struct idset cpus = ids("0-7"), mems = ids("0-3");
	_cleanup_hostfs_ struct hostfs fs = host_captured("debian13-4node");
	_cleanup_cgroup_allowed_ struct cgroup_allowed a = {0};
	_cleanup_vm_cgroup_ struct vm_cgroup cg = {0};

	REQUIRE(vm_cgroup_find(&fs, 594, &cg) == 0);
	REQUIRE(cgroup_allowed_read(&fs, &cg, &cpus, &mems, &a) == 0);
	IDS(&a.cpus, "0-7");
	IDS(&a.mems, "0-3");
	CHECK(!a.cpus_file && !a.mems_file);
}

TAP_MAIN(TEST(groups_from_text), TEST(groups_that_cannot_be_used), TEST(D41_threads_of_version_2),
	TEST(the_scope_is_found_too), TEST(D12_threads_of_version_1), TEST(no_groups_of_threads),
	TEST(D11_version_2), TEST(D11_version_1), TEST(D22_nodes_are_narrowed_too),
	TEST(without_a_hierarchy_nothing_is_taken_away))
