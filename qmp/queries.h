/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Typed queries. Each qmp_parse_X() takes the member "return" of a reply to the command that is
 * named above it and fills a plain struct; unknown keys are ignored, missing optional ones get the
 * value that is said. They return 0, QMP_E_SHAPE or -ENOMEM. *ret is written on 0 only; where it
 * owns memory there is a qmp_X_clear(), safe on a zeroed struct.
 *
 * Each qmp_query_X() asks and waits (sync.h); @timeout_ns as there.
 *
 * Strings are cut to the room they have and hold printable ASCII only. Arrays of more than
 * QMP_ITEMS_MAX items are QMP_E_SHAPE, and so are an optional key of a wrong type (null included),
 * a number that is negative or no whole one, and memory of more than INT64_MAX bytes. The text of
 * an error names the way to the value, items counting from 0: "query-cpus-fast: item 3: props:
 * node-id is not a whole number from 0 to 2147483647".
 */
#pragma once

#include "qmp/sync.h"

#define QMP_ITEMS_MAX 8192u
#define QMP_ID_MAX 128
#define QMP_CPU_INDEX_MAX 65535u
#define QMP_HOST_NODE_MAX 1023u /* of Linux */

/* query-status */
struct qmp_status {
	bool running;
	char status[32]; /* "running", "paused", "inmigrate", ... */
};
int qmp_parse_status(struct json_object *ret_member, struct qmp_status *ret, struct qmp_error *err);
int qmp_query_status(
	struct qmp *q, uint64_t timeout_ns, struct qmp_status *ret, struct qmp_error *err);

/* query-version */
struct qmp_version {
	unsigned major, minor, micro;
	char package[128]; /* "" if not said */
};
int qmp_parse_version(
	struct json_object *ret_member, struct qmp_version *ret, struct qmp_error *err);
int qmp_query_version(
	struct qmp *q, uint64_t timeout_ns, struct qmp_version *ret, struct qmp_error *err);

/* query-kvm */
struct qmp_kvm {
	bool enabled, present;
};
int qmp_parse_kvm(struct json_object *ret_member, struct qmp_kvm *ret, struct qmp_error *err);
int qmp_query_kvm(struct qmp *q, uint64_t timeout_ns, struct qmp_kvm *ret, struct qmp_error *err);

/* query-name; "" if it has none */
struct qmp_name {
	char name[QMP_ID_MAX];
};
int qmp_parse_name(struct json_object *ret_member, struct qmp_name *ret, struct qmp_error *err);
int qmp_query_name(struct qmp *q, uint64_t timeout_ns, struct qmp_name *ret, struct qmp_error *err);

/* query-uuid; all zeros if QEMU was given none */
struct qmp_uuid {
	char uuid[37];
};
int qmp_parse_uuid(struct json_object *ret_member, struct qmp_uuid *ret, struct qmp_error *err);
int qmp_query_uuid(struct qmp *q, uint64_t timeout_ns, struct qmp_uuid *ret, struct qmp_error *err);

/* Where a vCPU sits in the guest; -1: not said. */
struct qmp_cpu_props {
	int node_id, socket_id, die_id, cluster_id, core_id, thread_id;
};

/* query-cpus-fast */
struct qmp_cpu {
	unsigned index; /* cpu-index: sparse after hot-unplug; up to QMP_CPU_INDEX_MAX */
	pid_t tid;      /* host thread: the top-level "thread-id", never that of props; > 0 */
	struct qmp_cpu_props props;
	char qom_path[QMP_ID_MAX];
	char target[16]; /* "x86_64"; "" if not said */
};
struct qmp_cpus {
	size_t n;
	struct qmp_cpu *cpu; /* present vCPUs only, ascending index, each index once; own */
	bool shared_thread;  /* two vCPUs have one host thread (single-threaded TCG) */
};
void qmp_cpus_clear(struct qmp_cpus *cpus);
int qmp_parse_cpus_fast(
	struct json_object *ret_member, struct qmp_cpus *ret, struct qmp_error *err);
int qmp_query_cpus_fast(
	struct qmp *q, uint64_t timeout_ns, struct qmp_cpus *ret, struct qmp_error *err);

/* query-hotpluggable-cpus */
struct qmp_cpu_slot {
	char type[QMP_ID_MAX]; /* driver for device_add */
	unsigned vcpus;        /* that it brings */
	struct qmp_cpu_props props;
	bool present;
	char qom_path[QMP_ID_MAX]; /* "" if not present */
};
struct qmp_cpu_slots {
	size_t n;
	struct qmp_cpu_slot *slot; /* in QEMU's order; own */
};
void qmp_cpu_slots_clear(struct qmp_cpu_slots *slots);
int qmp_parse_hotpluggable_cpus(
	struct json_object *ret_member, struct qmp_cpu_slots *ret, struct qmp_error *err);
int qmp_query_hotpluggable_cpus(
	struct qmp *q, uint64_t timeout_ns, struct qmp_cpu_slots *ret, struct qmp_error *err);

/* query-memdev */
enum qmp_host_policy {
	QMP_POLICY_DEFAULT,
	QMP_POLICY_PREFERRED,
	QMP_POLICY_BIND,
	QMP_POLICY_INTERLEAVE,
	QMP_POLICY_OTHER, /* a word from the future */
};
struct qmp_memdev {
	char id[QMP_ID_MAX]; /* "" if it has none */
	uint64_t size_bytes;
	bool merge, dump, prealloc;
	bool share;   /* false if not said (before QEMU 6.1) */
	bool reserve; /* true if not said */
	enum qmp_host_policy policy;
	size_t n_host_nodes;
	unsigned *host_node; /* up to QMP_HOST_NODE_MAX, ascending, each once; own */
};
struct qmp_memdevs {
	size_t n;
	struct qmp_memdev *memdev; /* own */
};
void qmp_memdevs_clear(struct qmp_memdevs *memdevs);
int qmp_parse_memdev(
	struct json_object *ret_member, struct qmp_memdevs *ret, struct qmp_error *err);
int qmp_query_memdev(
	struct qmp *q, uint64_t timeout_ns, struct qmp_memdevs *ret, struct qmp_error *err);

/* query-memory-devices */
enum qmp_memory_kind {
	QMP_MEMORY_DIMM,
	QMP_MEMORY_NVDIMM,
	QMP_MEMORY_VIRTIO_MEM,
	QMP_MEMORY_VIRTIO_PMEM,
	QMP_MEMORY_OTHER, /* sgx-epc, hv-balloon, or a word from the future */
};
struct qmp_memory_device {
	enum qmp_memory_kind kind;
	char id[QMP_ID_MAX];     /* "" if it has none */
	char memdev[QMP_ID_MAX]; /* QOM path of its backend; QMP_MEMORY_OTHER: "" if not said */
	uint64_t address;        /* guest-physical; 0 if not said */
	uint64_t size_bytes;     /* virtio-mem: plugged now; QMP_MEMORY_OTHER: 0 if not said */
	int slot;                /* -1: has none */
	int node;                /* guest node; -1: not said */
	bool hotplugged, hotpluggable; /* false if not said */
};
struct qmp_memory_devices {
	size_t n;
	struct qmp_memory_device *device; /* own */
};
void qmp_memory_devices_clear(struct qmp_memory_devices *devices);
int qmp_parse_memory_devices(
	struct json_object *ret_member, struct qmp_memory_devices *ret, struct qmp_error *err);
int qmp_query_memory_devices(
	struct qmp *q, uint64_t timeout_ns, struct qmp_memory_devices *ret, struct qmp_error *err);

/* query-iothreads */
struct qmp_iothread {
	char id[QMP_ID_MAX];
	pid_t tid;
};
struct qmp_iothreads {
	size_t n;
	struct qmp_iothread *iothread; /* own */
};
void qmp_iothreads_clear(struct qmp_iothreads *iothreads);
int qmp_parse_iothreads(
	struct json_object *ret_member, struct qmp_iothreads *ret, struct qmp_error *err);
int qmp_query_iothreads(
	struct qmp *q, uint64_t timeout_ns, struct qmp_iothreads *ret, struct qmp_error *err);

/* query-balloon. A VM without a balloon answers DeviceNotActive: qmp_query_balloon() then returns 0
 * with has_balloon false. */
struct qmp_balloon {
	bool has_balloon;      /* qmp_parse_balloon(): true */
	uint64_t actual_bytes; /* what the guest has left */
};
int qmp_parse_balloon(
	struct json_object *ret_member, struct qmp_balloon *ret, struct qmp_error *err);
int qmp_query_balloon(
	struct qmp *q, uint64_t timeout_ns, struct qmp_balloon *ret, struct qmp_error *err);

/* query-migrate */
struct qmp_migrate {
	char status[32]; /* "" if there never was a migration */
	bool under_way;  /* the VM is leaving, or being saved; also for a word that is not known */
	uint64_t ram_total_bytes, ram_remaining_bytes; /* 0 if not said */
};
int qmp_parse_migrate(
	struct json_object *ret_member, struct qmp_migrate *ret, struct qmp_error *err);
int qmp_query_migrate(
	struct qmp *q, uint64_t timeout_ns, struct qmp_migrate *ret, struct qmp_error *err);

/* query-stats (QEMU 7.1 and later), target vcpu: KVM's page-fault counters */
enum qmp_vcpu_stat {
	QMP_STAT_PF_TAKEN,
	QMP_STAT_PF_FIXED,
	QMP_STAT_PF_EMULATE,
	QMP_STAT_PF_SPURIOUS,
	QMP_STAT_PF_FAST,
	QMP_STAT_PF_MMIO_SPTE_CREATED,
	QMP_STAT_PF_GUEST,
	QMP_VCPU_STATS,
};
const char *qmp_vcpu_stat_name(enum qmp_vcpu_stat stat);
struct qmp_vcpu_stats {
	char qom_path[QMP_ID_MAX];      /* as in query-cpus-fast */
	bool has[QMP_VCPU_STATS];       /* kernels differ in what they count */
	uint64_t value[QMP_VCPU_STATS]; /* since the vCPU was made */
};
struct qmp_stats {
	size_t n;
	struct qmp_vcpu_stats *vcpu; /* own */
};
void qmp_stats_clear(struct qmp_stats *stats);
/* The arguments that ask for these counters only; owned by the caller. NULL: out of memory. */
struct json_object *qmp_stats_arguments(void);
int qmp_parse_stats(struct json_object *ret_member, struct qmp_stats *ret, struct qmp_error *err);
int qmp_query_stats(
	struct qmp *q, uint64_t timeout_ns, struct qmp_stats *ret, struct qmp_error *err);
