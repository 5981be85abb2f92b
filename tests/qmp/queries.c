/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "qmp/queries.h"
#include "tests/qmp/samples.h"

#define CLEANUP(f) __attribute__((cleanup(f)))
#define MIB ((uint64_t)1 << 20)

static void status(struct tap *tap_)
{
	JSON old = sample_return("qemu-7.2/query-status");
	JSON new = sample_return("qemu-10.0/query-status");
	struct qmp_status s;

	REQUIRE(qmp_parse_status(old, &s, NULL) == 0);
	CHECK(!s.running);
	CHECK_STR(s.status, "prelaunch");
	REQUIRE(qmp_parse_status(new, &s, NULL) == 0);
	CHECK(s.running);
	CHECK_STR(s.status, "running");
}

static void version(struct tap *tap_)
{
	JSON old = sample_return("qemu-7.2/query-version");
	JSON new = sample_return("qemu-10.0/query-version");
	JSON bare = json_of("{'qemu':{'major':11,'minor':0,'micro':50}}");
	struct qmp_version v;

	REQUIRE(qmp_parse_version(old, &v, NULL) == 0);
	CHECK(v.major == 7 && v.minor == 2 && v.micro == 22);
	REQUIRE(qmp_parse_version(new, &v, NULL) == 0);
	CHECK(v.major == 10 && v.minor == 0 && v.micro == 13);
	CHECK_STR(v.package, "Debian 1:10.0.13+ds-0+deb13u1");
	REQUIRE(qmp_parse_version(bare, &v, NULL) == 0);
	CHECK_STR(v.package, "");
}

static void kvm(struct tap *tap_)
{
	JSON without = sample_return("qemu-7.2/query-kvm");
	JSON with = sample_return("qemu-10.0/query-kvm");
	struct qmp_kvm k;

	REQUIRE(qmp_parse_kvm(without, &k, NULL) == 0);
	CHECK(!k.enabled && k.present);
	REQUIRE(qmp_parse_kvm(with, &k, NULL) == 0);
	CHECK(k.enabled && k.present);
}

static void name_and_uuid_or_none(struct tap *tap_)
{
	JSON name = sample_return("qemu-7.2/query-name");
	JSON no_name = sample_return("qemu-7.2/bare-query-name");
	JSON uuid = sample_return("qemu-7.2/query-uuid");
	JSON no_uuid = sample_return("qemu-7.2/bare-query-uuid");
	struct qmp_name n;
	struct qmp_uuid u;

	REQUIRE(qmp_parse_name(name, &n, NULL) == 0);
	CHECK_STR(n.name, "vm one");
	REQUIRE(qmp_parse_name(no_name, &n, NULL) == 0);
	CHECK_STR(n.name, "");
	REQUIRE(qmp_parse_uuid(uuid, &u, NULL) == 0);
	CHECK_STR(u.uuid, "12345678-1234-1234-1234-123456789abc");
	REQUIRE(qmp_parse_uuid(no_uuid, &u, NULL) == 0);
	CHECK_STR(u.uuid, "00000000-0000-0000-0000-000000000000");
}

static void strings_are_cleaned_and_cut(struct tap *tap_)
{
	static const char evil[] = "a\tb\x1b[2J\0c\xc3\xa4";
	JSON name = json_object_new_object();
	struct qmp_name n;
	char longer[1000];

	json_object_object_add(name, "name", json_object_new_string_len(evil, sizeof(evil) - 1));
	REQUIRE(qmp_parse_name(name, &n, NULL) == 0);
	CHECK_STR(n.name, "a?b?[2J?c??");
	memset(longer, 'x', sizeof(longer));
	json_object_object_add(name, "name", json_object_new_string_len(longer, sizeof(longer)));
	REQUIRE(qmp_parse_name(name, &n, NULL) == 0);
	CHECK_INT(strlen(n.name), QMP_ID_MAX - 1);
}

static void cpus_of_10_0(struct tap *tap_)
{
	JSON reply = sample_return("qemu-10.0/query-cpus-fast");
	CLEANUP(qmp_cpus_clear) struct qmp_cpus cpus = {0};

	REQUIRE(qmp_parse_cpus_fast(reply, &cpus, NULL) == 0);
	REQUIRE(cpus.n == 2);
	CHECK(!cpus.shared_thread);
	CHECK_INT(cpus.cpu[0].index, 0);
	CHECK_INT(cpus.cpu[0].tid, 602);
	CHECK_INT(cpus.cpu[1].index, 1);
	CHECK_INT(cpus.cpu[1].tid, 603);
	CHECK_INT(cpus.cpu[1].props.thread_id, 0);
	CHECK_INT(cpus.cpu[1].props.socket_id, 1);
	CHECK_INT(cpus.cpu[1].props.core_id, 0);
	CHECK_INT(cpus.cpu[1].props.node_id, -1);
	CHECK_INT(cpus.cpu[1].props.die_id, -1);
	CHECK_INT(cpus.cpu[1].props.cluster_id, -1);
	CHECK_STR(cpus.cpu[1].qom_path, "/machine/unattached/device[2]");
	CHECK_STR(cpus.cpu[1].target, "x86_64");
}

static void cpus_of_7_2_have_their_guest_node(struct tap *tap_)
{
	JSON reply = sample_return("qemu-7.2/query-cpus-fast");
	CLEANUP(qmp_cpus_clear) struct qmp_cpus cpus = {0};

	REQUIRE(qmp_parse_cpus_fast(reply, &cpus, NULL) == 0);
	REQUIRE(cpus.n == 2);
	CHECK_INT(cpus.cpu[0].tid, 17376);
	CHECK_INT(cpus.cpu[1].tid, 17377);
	CHECK_INT(cpus.cpu[1].props.node_id, 0);
	CHECK_INT(cpus.cpu[1].props.core_id, 1);
}

static void one_thread_for_all_vcpus_is_said(struct tap *tap_)
{
	JSON reply = sample_return("qemu-7.2/bare-query-cpus-fast");
	CLEANUP(qmp_cpus_clear) struct qmp_cpus cpus = {0};

	REQUIRE(qmp_parse_cpus_fast(reply, &cpus, NULL) == 0);
	CHECK_INT(cpus.n, 2);
	CHECK(cpus.shared_thread);
	CHECK_INT(cpus.cpu[0].tid, cpus.cpu[1].tid);
}

static void two_of_three_share_a_thread(struct tap *tap_)
{
	JSON reply = json_of("[{'cpu-index':0,'thread-id':7,'qom-path':'/a'},"
			     "{'cpu-index':1,'thread-id':9,'qom-path':'/b'},"
			     "{'cpu-index':2,'thread-id':7,'qom-path':'/c'}]");
	CLEANUP(qmp_cpus_clear) struct qmp_cpus cpus = {0};

	REQUIRE(qmp_parse_cpus_fast(reply, &cpus, NULL) == 0);
	CHECK(cpus.shared_thread);
}

static void sparse_and_unsorted_indexes(struct tap *tap_)
{
	JSON reply = json_of(
		"[{'cpu-index':7,'thread-id':107,'qom-path':'/machine/peripheral/c7',"
		"'props':{'node-id':1,'die-id':2,'cluster-id':3,'thread-id':4194305,'book-id':9}},"
		"{'cpu-index':0,'thread-id':100,'qom-path':'/machine/unattached/device[0]'},"
		"{'cpu-index':65535,'thread-id':4194304,'qom-path':'/z','new':[1,{}]},"
		"{'cpu-index':3,'thread-id':1,'qom-path':'','target':'s390x'}]");
	static const unsigned index[] = {0, 3, 7, 65535};
	static const pid_t tid[] = {100, 1, 107, 4194304};
	CLEANUP(qmp_cpus_clear) struct qmp_cpus cpus = {0};

	REQUIRE(qmp_parse_cpus_fast(reply, &cpus, NULL) == 0);
	REQUIRE(cpus.n == 4);
	for (size_t i = 0; i < 4; i++) {
		CHECK_INT(cpus.cpu[i].index, index[i]);
		CHECK_INT(cpus.cpu[i].tid, tid[i]);
	}
	CHECK_INT(cpus.cpu[2].props.node_id, 1);
	CHECK_INT(cpus.cpu[2].props.die_id, 2);
	CHECK_INT(cpus.cpu[2].props.cluster_id, 3);
	CHECK_INT(cpus.cpu[2].props.thread_id, 4194305);
	CHECK_INT(cpus.cpu[0].props.thread_id, -1);
	CHECK_STR(cpus.cpu[0].target, "");
	CHECK(!cpus.shared_thread);
}

static void no_vcpus_are_none(struct tap *tap_)
{
	JSON reply = json_of("[]");
	CLEANUP(qmp_cpus_clear) struct qmp_cpus cpus = {0};

	CHECK_INT(qmp_parse_cpus_fast(reply, &cpus, NULL), 0);
	CHECK_INT(cpus.n, 0);
}

static void the_host_thread_is_never_that_of_props(struct tap *tap_)
{
	JSON reply = json_of("[{'cpu-index':0,'qom-path':'/a','props':{'thread-id':1}}]");
	struct qmp_cpus cpus;
	struct qmp_error err;

	CHECK_INT(qmp_parse_cpus_fast(reply, &cpus, &err), QMP_E_SHAPE);
	CHECK_STR(err.text, "query-cpus-fast: item 0: thread-id is missing");
}

static void an_index_that_comes_twice_is_refused(struct tap *tap_)
{
	JSON reply = json_of("[{'cpu-index':5,'thread-id':7,'qom-path':'/a'},"
			     "{'cpu-index':1,'thread-id':8,'qom-path':'/b'},"
			     "{'cpu-index':5,'thread-id':9,'qom-path':'/c'}]");
	struct qmp_cpus cpus;
	struct qmp_error err;

	CHECK_INT(qmp_parse_cpus_fast(reply, &cpus, &err), QMP_E_SHAPE);
	CHECK_INT(err.code, QMP_E_SHAPE);
	CHECK_STR(err.text, "query-cpus-fast: two items have the cpu-index 5");
}

static void cpu_slots(struct tap *tap_)
{
	JSON old = sample_return("qemu-7.2/query-hotpluggable-cpus");
	JSON new = sample_return("qemu-10.0/query-hotpluggable-cpus");
	CLEANUP(qmp_cpu_slots_clear) struct qmp_cpu_slots slots = {0};

	REQUIRE(qmp_parse_hotpluggable_cpus(old, &slots, NULL) == 0);
	REQUIRE(slots.n == 4);
	CHECK(!slots.slot[0].present && slots.slot[3].present);
	CHECK_STR(slots.slot[0].qom_path, "");
	CHECK_STR(slots.slot[3].qom_path, "/machine/unattached/device[0]");
	CHECK_STR(slots.slot[0].type, "max-x86_64-cpu");
	CHECK_INT(slots.slot[0].vcpus, 1);
	CHECK_INT(slots.slot[0].props.core_id, 3);
	qmp_cpu_slots_clear(&slots);
	CHECK_INT(slots.n, 0);
	REQUIRE(qmp_parse_hotpluggable_cpus(new, &slots, NULL) == 0);
	CHECK_INT(slots.n, 2);
	CHECK(slots.slot[0].present && slots.slot[0].props.node_id == -1);
}

static void memdev_of_10_0(struct tap *tap_)
{
	JSON reply = sample_return("qemu-10.0/query-memdev");
	CLEANUP(qmp_memdevs_clear) struct qmp_memdevs m = {0};

	REQUIRE(qmp_parse_memdev(reply, &m, NULL) == 0);
	REQUIRE(m.n == 1);
	CHECK_STR(m.memdev[0].id, "pc.ram");
	CHECK_INT(m.memdev[0].size_bytes, 256 * MIB);
	CHECK(m.memdev[0].merge && !m.memdev[0].dump && !m.memdev[0].prealloc);
	CHECK(!m.memdev[0].share && m.memdev[0].reserve);
	CHECK_INT(m.memdev[0].policy, QMP_POLICY_DEFAULT);
	CHECK_INT(m.memdev[0].n_host_nodes, 0);
}

static void memdev_of_7_2_with_all_policies(struct tap *tap_)
{
	static const enum qmp_host_policy policy[] = {QMP_POLICY_DEFAULT, QMP_POLICY_PREFERRED,
		QMP_POLICY_DEFAULT, QMP_POLICY_INTERLEAVE, QMP_POLICY_BIND};
	JSON reply = sample_return("qemu-7.2/query-memdev");
	CLEANUP(qmp_memdevs_clear) struct qmp_memdevs m = {0};

	REQUIRE(qmp_parse_memdev(reply, &m, NULL) == 0);
	REQUIRE(m.n == 5);
	for (size_t i = 0; i < 5; i++)
		CHECK_INT(m.memdev[i].policy, policy[i]);
	CHECK(m.memdev[0].share && !m.memdev[0].reserve);
	CHECK(m.memdev[4].prealloc);
	REQUIRE(m.memdev[4].n_host_nodes == 1);
	CHECK_INT(m.memdev[4].host_node[0], 0);
}

static void memdev_of_old_qemu_and_a_policy_to_come(struct tap *tap_)
{
	JSON reply = json_of("[{'size':536870912,'merge':false,'dump':true,'prealloc':false,"
			     "'host-nodes':[9,1,1023,1,9,0],'policy':'weighted-interleave-x'}]");
	static const unsigned nodes[] = {0, 1, 9, 1023};
	CLEANUP(qmp_memdevs_clear) struct qmp_memdevs m = {0};

	REQUIRE(qmp_parse_memdev(reply, &m, NULL) == 0);
	REQUIRE(m.n == 1);
	CHECK_STR(m.memdev[0].id, "");
	CHECK(!m.memdev[0].share && m.memdev[0].reserve);
	CHECK_INT(m.memdev[0].policy, QMP_POLICY_OTHER);
	REQUIRE(m.memdev[0].n_host_nodes == 4);
	for (size_t i = 0; i < 4; i++)
		CHECK_INT(m.memdev[0].host_node[i], nodes[i]);
}

static void memory_devices_of_each_kind(struct tap *tap_)
{
	JSON reply = sample_return("qemu-7.2/query-memory-devices");
	CLEANUP(qmp_memory_devices_clear) struct qmp_memory_devices m = {0};
	const struct qmp_memory_device *d;

	REQUIRE(qmp_parse_memory_devices(reply, &m, NULL) == 0);
	REQUIRE(m.n == 4);
	d = m.device;
	CHECK_INT(d[0].kind, QMP_MEMORY_DIMM);
	CHECK_INT(d[1].kind, QMP_MEMORY_VIRTIO_MEM);
	CHECK_INT(d[2].kind, QMP_MEMORY_VIRTIO_PMEM);
	CHECK_INT(d[3].kind, QMP_MEMORY_NVDIMM);
	CHECK_STR(d[0].id, "d1");
	CHECK_STR(d[0].memdev, "/objects/m1");
	CHECK_INT(d[0].address, 4096 * MIB);
	CHECK_INT(d[0].size_bytes, 128 * MIB);
	CHECK(d[0].hotpluggable && !d[0].hotplugged);
	CHECK(d[0].slot == 0 && d[0].node == 0 && d[3].slot == 1);
	CHECK_INT(d[1].size_bytes, 0);
	CHECK_INT(d[1].address, 4429185024);
	CHECK(d[1].slot == -1 && d[1].node == 0);
	CHECK(d[2].slot == -1 && d[2].node == -1 && !d[2].hotpluggable);
}

static void memory_devices_to_come_and_none(struct tap *tap_)
{
	JSON reply = json_of("[{'type':'hv-balloon','data':{'max-size':1}},"
			     "{'type':'sgx-epc','data':{'memaddr':4096,'size':8192,'node':3}},"
			     "{'type':'virtio-mem','data':{'size':1,'memdev':'/m'}}]");
	JSON none = sample_return("qemu-10.0/query-memory-devices");
	CLEANUP(qmp_memory_devices_clear) struct qmp_memory_devices m = {0};

	REQUIRE(qmp_parse_memory_devices(none, &m, NULL) == 0);
	CHECK_INT(m.n, 0);
	qmp_memory_devices_clear(&m);
	REQUIRE(qmp_parse_memory_devices(reply, &m, NULL) == 0);
	REQUIRE(m.n == 3);
	CHECK_INT(m.device[0].kind, QMP_MEMORY_OTHER);
	CHECK_STR(m.device[0].memdev, "");
	CHECK_INT(m.device[1].kind, QMP_MEMORY_OTHER);
	CHECK_INT(m.device[1].size_bytes, 8192);
	CHECK_INT(m.device[1].address, 4096);
	CHECK_INT(m.device[1].node, 3);
	CHECK_STR(m.device[2].id, "");
	CHECK_INT(m.device[2].address, 0);
}

static void iothreads(struct tap *tap_)
{
	JSON some = sample_return("qemu-7.2/query-iothreads");
	JSON none = sample_return("qemu-10.0/query-iothreads");
	CLEANUP(qmp_iothreads_clear) struct qmp_iothreads t = {0};

	REQUIRE(qmp_parse_iothreads(none, &t, NULL) == 0);
	CHECK_INT(t.n, 0);
	qmp_iothreads_clear(&t);
	REQUIRE(qmp_parse_iothreads(some, &t, NULL) == 0);
	REQUIRE(t.n == 1);
	CHECK_STR(t.iothread[0].id, "io0");
	CHECK_INT(t.iothread[0].tid, 17372);
}

static void balloon(struct tap *tap_)
{
	JSON reply = sample_return("qemu-7.2/query-balloon");
	struct qmp_balloon b = {0};

	REQUIRE(qmp_parse_balloon(reply, &b, NULL) == 0);
	CHECK(b.has_balloon);
	CHECK_INT(b.actual_bytes, 256 * MIB);
}

static void migration_never_and_done(struct tap *tap_)
{
	JSON never = sample_return("qemu-7.2/query-migrate");
	JSON setup = sample_return("qemu-7.2/query-migrate-setup");
	JSON active = sample_return("qemu-7.2/query-migrate-active");
	JSON completed = sample_return("qemu-7.2/query-migrate-completed");
	struct qmp_migrate m;

	REQUIRE(qmp_parse_migrate(never, &m, NULL) == 0);
	CHECK_STR(m.status, "");
	CHECK(!m.under_way && m.ram_total_bytes == 0 && m.ram_remaining_bytes == 0);
	REQUIRE(qmp_parse_migrate(setup, &m, NULL) == 0);
	CHECK(m.under_way && m.ram_total_bytes == 0);
	REQUIRE(qmp_parse_migrate(active, &m, NULL) == 0);
	CHECK(m.under_way);
	CHECK_INT(m.ram_total_bytes, 268967936);
	CHECK_INT(m.ram_remaining_bytes, 252211200);
	REQUIRE(qmp_parse_migrate(completed, &m, NULL) == 0);
	CHECK_STR(m.status, "completed");
	CHECK(!m.under_way && m.ram_remaining_bytes == 0);
}

static void migration_is_under_way_in_each_of_its_phases(struct tap *tap_)
{
	static const struct {
		const char *status;
		bool under_way;
	} v[] = {{"none", false}, {"setup", true}, {"cancelling", true}, {"cancelled", false},
		{"active", true}, {"postcopy-active", true}, {"postcopy-paused", true},
		{"postcopy-recover-setup", true}, {"postcopy-recover", true}, {"completed", false},
		{"failed", false}, {"colo", true}, {"pre-switchover", true}, {"device", true},
		{"wait-unplug", true}, {"a-phase-to-come", true}};

	for (size_t i = 0; i < sizeof(v) / sizeof(v[0]); i++) {
		JSON reply = json_object_new_object();
		struct qmp_migrate m = {0};

		json_object_object_add(reply, "status", json_object_new_string(v[i].status));
		CHECK_INT(qmp_parse_migrate(reply, &m, NULL), 0);
		CHECK_STR(m.status, v[i].status);
		if (m.under_way != v[i].under_way)
			printf("# %s\n", v[i].status);
		CHECK(m.under_way == v[i].under_way);
	}
}

TAP_MAIN(TEST(status), TEST(version), TEST(kvm), TEST(name_and_uuid_or_none),
	TEST(strings_are_cleaned_and_cut), TEST(cpus_of_10_0),
	TEST(cpus_of_7_2_have_their_guest_node), TEST(one_thread_for_all_vcpus_is_said),
	TEST(two_of_three_share_a_thread), TEST(sparse_and_unsorted_indexes),
	TEST(no_vcpus_are_none), TEST(the_host_thread_is_never_that_of_props),
	TEST(an_index_that_comes_twice_is_refused), TEST(cpu_slots), TEST(memdev_of_10_0),
	TEST(memdev_of_7_2_with_all_policies), TEST(memdev_of_old_qemu_and_a_policy_to_come),
	TEST(memory_devices_of_each_kind), TEST(memory_devices_to_come_and_none), TEST(iothreads),
	TEST(balloon), TEST(migration_never_and_done),
	TEST(migration_is_under_way_in_each_of_its_phases))
