/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * vCPUs and memory that come and go. A guest would have to let them go, and there is none: the test
 * writes to the I/O ports that a guest's ACPI code writes to (QEMU: docs/specs/acpi_cpu_hotplug,
 * acpi_mem_hotplug).
 */
#include <unistd.h>

#include "tests/qmp/real.h"

#define MIB (UINT64_C(1) << 20)
#define CLEANUP(f) __attribute__((cleanup(f)))

/* Every vCPU: its index, a thread of QEMU of its own, and that thread's name. */
void real_check_cpus(struct tap *tap_, const struct real *r, const struct qmp_cpus *cpus)
{
	CHECK(!cpus->shared_thread);
	for (size_t i = 0; i < cpus->n; i++) {
		const struct qmp_cpu *c = &cpus->cpu[i];
		char path[64], name[32] = "", want[32];
		FILE *comm;

		CHECK_INT(c->index, i);
		CHECK_STR(c->target, "x86_64");
		CHECK(real_is_thread(r, c->tid) && c->tid != r->pid);
		CHECK_INT(c->props.core_id, i);
		CHECK_INT(c->props.socket_id, 0);
		CHECK_INT(c->props.thread_id, 0);
		snprintf(path, sizeof(path), "/proc/%d/task/%d/comm", (int)r->pid, (int)c->tid);
		comm = fopen(path, "re");
		if (comm && !fgets(name, sizeof(name), comm))
			name[0] = '\0';
		if (comm)
			fclose(comm);
		snprintf(want, sizeof(want), "CPU %zu/%s\n", i, real_is_kvm(r) ? "KVM" : "TCG");
		CHECK_STR(name, want);
	}
}

void real_its_memory_is_what_it_was_given(struct tap *tap_, struct real *r)
{
	CLEANUP(qmp_memdevs_clear) struct qmp_memdevs memdevs = {0};
	CLEANUP(qmp_memory_devices_clear) struct qmp_memory_devices devices = {0};

	REQUIRE(qmp_query_memdev(r->q, r->patience_ns, &memdevs, NULL) == 0);
	REQUIRE(memdevs.n == 1);
	CHECK_INT(memdevs.memdev[0].size_bytes, 128 * MIB);
	CHECK(memdevs.memdev[0].policy == QMP_POLICY_DEFAULT);
	CHECK_INT(memdevs.memdev[0].n_host_nodes, 0);
	CHECK(!memdevs.memdev[0].share && !memdevs.memdev[0].prealloc);
	REQUIRE(qmp_query_memory_devices(r->q, r->patience_ns, &devices, NULL) == 0);
	CHECK_INT(devices.n, 0);
}

void real_a_vcpu_is_added_to_a_slot_that_is_free(struct tap *tap_, struct real *r)
{
	CLEANUP(qmp_cpu_slots_clear) struct qmp_cpu_slots slots = {0};
	CLEANUP(qmp_cpus_clear) struct qmp_cpus cpus = {0};
	const struct qmp_cpu_slot *first = NULL;
	unsigned present = 0;
	char arguments[512];

	REQUIRE(qmp_query_hotpluggable_cpus(r->q, r->patience_ns, &slots, NULL) == 0);
	REQUIRE(slots.n == 4);
	for (size_t i = 0; i < slots.n; i++) {
		const struct qmp_cpu_slot *s = &slots.slot[i];

		present += s->present;
		CHECK(s->present == (s->qom_path[0] != '\0'));
		CHECK_INT(s->vcpus, 1);
		if (!s->present && (!first || s->props.core_id < first->props.core_id))
			first = s;
	}
	CHECK_INT(present, 2);
	REQUIRE(first);
	CHECK_INT(first->props.core_id, 2);
	snprintf(arguments, sizeof(arguments),
		"{\"driver\": \"%s\", \"id\": \"vcpu2\", \"socket-id\": %d, \"core-id\": %d, "
		"\"thread-id\": %d}",
		first->type, first->props.socket_id, first->props.core_id, first->props.thread_id);
	REQUIRE(real_ask(r, "device_add", arguments, NULL, NULL) == 0);
	REQUIRE(qmp_query_cpus_fast(r->q, r->patience_ns, &cpus, NULL) == 0);
	REQUIRE(cpus.n == 3);
	real_check_cpus(tap_, r, &cpus);
	CHECK_STR(cpus.cpu[2].qom_path, "/machine/peripheral/vcpu2");
}

/*
 * q35 speaks the old interface for vCPUs until a guest asks for the new one, and the old one cannot
 * take one away: refused at once (machine types of QEMU 10.1 and later have only the new one).
 */
void real_a_vcpu_stays_when_no_guest_lets_it_go(struct tap *tap_, struct real *r)
{
	CLEANUP(qmp_cpus_clear) struct qmp_cpus cpus = {0};
	struct qmp_version version = {0};
	struct qmp_error err = {0};
	int result = real_ask(r, "device_del", "{\"id\": \"vcpu2\"}", NULL, &err);

	REQUIRE(qmp_query_version(r->q, r->patience_ns, &version, NULL) == 0);
	if (version.major * 100 + version.minor < 1001) {
		CHECK_INT(result, QMP_E_REMOTE);
		CHECK_STR(err.class_name, "GenericError");
	} else {
		CHECK_INT(result, 0);
	}
	REQUIRE(qmp_query_cpus_fast(r->q, r->patience_ns, &cpus, NULL) == 0);
	CHECK_INT(cpus.n, 3);
	real_check_cpus(tap_, r, &cpus);
}

void real_a_dimm_is_added(struct tap *tap_, struct real *r)
{
	CLEANUP(qmp_memdevs_clear) struct qmp_memdevs memdevs = {0};
	CLEANUP(qmp_memory_devices_clear) struct qmp_memory_devices devices = {0};
	const struct qmp_memdev *m = NULL;

	REQUIRE(real_ask(r, "object-add",
			"{\"qom-type\": \"memory-backend-ram\", \"id\": \"more\", \"size\": 134217728, "
			"\"host-nodes\": [0], \"policy\": \"bind\"}",
			NULL, NULL) == 0);
	REQUIRE(real_ask(r, "device_add",
			"{\"driver\": \"pc-dimm\", \"id\": \"dimm0\", \"memdev\": \"more\"}", NULL,
			NULL) == 0);
	REQUIRE(qmp_query_memory_devices(r->q, r->patience_ns, &devices, NULL) == 0);
	REQUIRE(devices.n == 1);
	CHECK(devices.device[0].kind == QMP_MEMORY_DIMM);
	CHECK_STR(devices.device[0].id, "dimm0");
	CHECK_STR(devices.device[0].memdev, "/objects/more");
	CHECK_INT(devices.device[0].size_bytes, 128 * MIB);
	CHECK_INT(devices.device[0].slot, 0);
	CHECK_INT(devices.device[0].node, 0);
	CHECK(devices.device[0].address >= 128 * MIB);
	CHECK(devices.device[0].hotplugged && devices.device[0].hotpluggable);
	REQUIRE(qmp_query_memdev(r->q, r->patience_ns, &memdevs, NULL) == 0);
	CHECK_INT(memdevs.n, 2);
	for (size_t i = 0; i < memdevs.n; i++)
		if (strcmp(memdevs.memdev[i].id, "more") == 0)
			m = &memdevs.memdev[i];
	REQUIRE(m);
	CHECK_INT(m->size_bytes, 128 * MIB);
	CHECK(m->policy == QMP_POLICY_BIND);
	REQUIRE(m->n_host_nodes == 1);
	CHECK_INT(m->host_node[0], 0);
}

static size_t count_dimms(struct real *r)
{
	CLEANUP(qmp_memory_devices_clear) struct qmp_memory_devices devices = {0};

	if (qmp_query_memory_devices(r->q, r->patience_ns, &devices, NULL) != 0)
		return SIZE_MAX;
	return devices.n;
}

/* Asking is one thing, the guest's answer another one, and only its eject takes the DIMM out. */
void real_a_dimm_goes_when_the_guest_ejects_it(struct tap *tap_, struct real *r)
{
	struct qmp_error err = {0};

	CHECK_INT(real_ask(r, "device_del", "{\"id\": \"dimm0\"}", NULL, NULL), 0);
	CHECK_INT(count_dimms(r), 1);
	CHECK_INT(real_ask(r, "object-del", "{\"id\": \"more\"}", NULL, &err), QMP_E_REMOTE);
	/* ACPI: slot 0; _OST of an eject: busy */
	REQUIRE(real_out(r, 'd', 0xa00, 0) && real_out(r, 'd', 0xa04, 3) &&
		real_out(r, 'd', 0xa08, 0x82));
	CHECK(real_event(r, "ACPI_DEVICE_OST", "\"device\":\"dimm0\"") != NULL);
	CHECK(real_event(r, "ACPI_DEVICE_OST", "\"status\":130") != NULL);
	CHECK_INT(count_dimms(r), 1);
	/* slot 0: eject */
	REQUIRE(real_out(r, 'd', 0xa00, 0) && real_out(r, 'b', 0xa14, 8));
	CHECK(real_event(r, "DEVICE_DELETED", "\"device\":\"dimm0\"") != NULL);
	CHECK_INT(count_dimms(r), 0);
	CHECK_INT(real_ask(r, "object-del", "{\"id\": \"more\"}", NULL, NULL), 0);
	real_its_memory_is_what_it_was_given(tap_, r);
}

/* With KVM only: when TCG's vCPU goes, QEMU 7.2 corrupts its own heap. */
void real_a_vcpu_goes_when_the_guest_ejects_it(struct tap *tap_, struct real *r)
{
	CLEANUP(qmp_cpus_clear) struct qmp_cpus cpus = {0};

	/* ACPI: the new interface, please; once it is there, vCPU 2: eject */
	REQUIRE(real_out(r, 'w', 0xcd8, 0));
	CHECK_INT(real_ask(r, "device_del", "{\"id\": \"vcpu2\"}", NULL, NULL), 0);
	REQUIRE(real_out(r, 'd', 0xcd8, 2) && real_out(r, 'b', 0xcdc, 8));
	CHECK(real_event(r, "DEVICE_DELETED", "\"device\":\"vcpu2\"") != NULL);
	REQUIRE(qmp_query_cpus_fast(r->q, r->patience_ns, &cpus, NULL) == 0);
	CHECK_INT(cpus.n, 2);
	real_check_cpus(tap_, r, &cpus);
}
