/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One moment of the host, whole: what the decision, `status`, `top` and the metrics read. A
 * snapshot is filled in private, then published by one pointer swap and never changed again.
 *
 * Nodes are node indexes of snapshot.topology throughout (see topology.h).
 */
#pragma once

#include <sys/types.h>

#include "policy/faults.h"
#include "policy/topology.h"

#define SNAPSHOT_NAME_MAX 128
#define SNAPSHOT_TEXT_MAX 192
#define SNAPSHOT_UUID_LEN 37 /* text form and NUL */
#define SNAPSHOT_VCPUS_MAX 4096u
#define SNAPSHOT_VMS_MAX 4096u
#define SNAPSHOT_CELLS_MAX 64u /* guest cells of one VM; no fewer than nodes of a host */

/* Why a VM's fault data can or cannot be trusted. */
enum data_state {
	DATA_OK,
	DATA_WARMING_UP,    /* too few scan passes yet */
	DATA_STALE,         /* neither scan sequence nor totals moved for a while */
	DATA_NO_SCAN,       /* the scanner never comes, for instance a one-node cpuset.mems */
	DATA_HUGETLB,       /* hugetlb guest RAM is not scanned */
	DATA_BOUND,         /* memory is bound by policy */
	DATA_PINNED,        /* device passthrough holds the pages */
	DATA_BALANCING_OFF, /* kernel.numa_balancing is 0 */
	DATA_NO_PERMISSION, /* the counters may not be read */
	DATA_STATES,
};
const char *data_state_name(enum data_state s);
/* One sentence for people; never NULL. */
const char *data_state_sentence(enum data_state s);

enum vm_condition {
	VM_RUNNING,
	VM_PAUSED,
	VM_BUSY, /* a libvirt job (migration, snapshot) has it */
};

/* Which host thread runs a vCPU. */
struct vcpu_thread {
	unsigned id; /* guest vCPU number */
	pid_t tid;
};

struct snap_vcpu {
	unsigned id;            /* guest vCPU number */
	pid_t tid;              /* 0: not plugged in */
	unsigned cell;          /* index in snap_vm.cell; 0 without guest NUMA */
	bool idle;              /* did not run in the window: counts for nothing */
	int node;               /* where it ran last; -1 unknown */
	unsigned run_permille;  /* of one CPU, in the window */
	unsigned wait_permille; /* wanted to run and did not */
	uint64_t *faults;       /* [n_nodes * FAULT_KINDS], 2 * node + kind, decayed windows; own */
	uint64_t *raw; /* the same shape: the source's last values, for the next window; own */
	uint64_t scan_seq;
	uint64_t total_faults;
	bool has_raw;
	uint64_t run_ns, wait_ns; /* counters as read, for the next window */
};

/* A guest NUMA cell: its vCPUs (snap_vcpu.cell) and its memory want one home. */
struct snap_cell {
	unsigned id;         /* guest cell number */
	uint64_t ram_bytes;  /* its guest RAM as configured */
	uint64_t *mem_bytes; /* [n_nodes] its guest RAM by node; own */
};

struct snap_vm {
	char uuid[SNAPSHOT_UUID_LEN];
	char name[SNAPSHOT_NAME_MAX];
	pid_t pid;
	uint64_t start_ticks; /* /proc/PID/stat field 22: with pid, the process's identity */
	enum vm_condition condition;

	unsigned n_vcpus;
	struct snap_vcpu *vcpu; /* own; ascending id */

	unsigned n_cells;       /* 0: no guest NUMA, or which memory is whose is not known */
	struct snap_cell *cell; /* [n_cells], ascending id; own */
	/* emulator, vhost and I/O threads: run time of all that are not vCPUs; 1000 per CPU */
	unsigned followers_permille;
	uint64_t followers_ns; /* counter as read, for the next window */
	int device_node; /* node index of its passed-through device; -1: none, or on several */

	uint64_t ram_bytes;  /* guest RAM as configured */
	uint64_t *mem_bytes; /* [n_nodes] guest RAM by node; own */
	bool has_memory;     /* mem_bytes was read in this or a recent tick */
	bool memory_hugetlb;
	uint64_t page_size_bytes;
	bool memory_fixed; /* strict/bound/passed-through: never to be moved */
	char memory_fixed_why[SNAPSHOT_TEXT_MAX];

	enum data_state data;
	uint64_t data_age_ns; /* since the counters last moved */
	unsigned windows;     /* windows folded so far */

	struct idset allowed_cpus; /* CPU ids: online, cpuset, isolation */
	struct idset allowed_mems; /* node ids */

	bool foreign_pin; /* somebody else placed it */
	char foreign_pin_why[SNAPSHOT_TEXT_MAX];
	char problem[SNAPSHOT_TEXT_MAX]; /* not empty: cannot be herded, and why */
};

struct snap_node {
	uint64_t mem_total_bytes;
	uint64_t mem_free_bytes;
	uint64_t huge_free_bytes;       /* in the pool of the default huge page size */
	unsigned busy_permille;         /* sum over its CPUs: 1000 per CPU fully busy */
	uint64_t busy_ticks, all_ticks; /* counters as read, for the next window */
};

struct snapshot {
	uint64_t seq;
	uint64_t time_ns;   /* CLOCK_MONOTONIC */
	uint64_t window_ns; /* since the snapshot before; 0 for the first */
	struct topology topology;
	struct snap_node node[TOPOLOGY_NODES_MAX];
	int balancing;        /* kernel.numa_balancing: 0, 1, 2; -1 unknown */
	uint64_t hint_faults; /* /proc/vmstat, since boot */
	uint64_t hint_faults_local;
	uint64_t kernel_pages_migrated;
	unsigned n_vms;
	struct snap_vm *vm; /* own; ascending name, then UUID */
};

struct snapshot *snapshot_new(void);
struct snapshot *snapshot_free(struct snapshot *s); /* returns NULL; NULL is allowed */
static inline void snapshot_freep(struct snapshot **s)
{
	*s = snapshot_free(*s);
}
#define _cleanup_snapshot_ _cleanup_(snapshot_freep)

/* Frees what the VM owns and zeroes it. */
void snap_vm_clear(struct snap_vm *vm);
/*
 * Gives the VM @n_vcpus zeroed vCPUs and its per-node arrays. -ENOMEM.
 */
int snap_vm_alloc(struct snap_vm *vm, unsigned n_vcpus, unsigned n_nodes);
/* The same for guest cells, ids 0, 1, ...; all vCPUs are in cell 0. -ENOMEM leaves it without. */
int snap_vm_alloc_cells(struct snap_vm *vm, unsigned n_cells, unsigned n_nodes);

/* The VM with this identity, or NULL. */
const struct snap_vm *snapshot_find(
	const struct snapshot *s, const char *uuid, pid_t pid, uint64_t start_ticks);

/* Sums, shared and private together, over vCPUs that are not idle: uint64_t ret[n_nodes]. */
void snap_vm_group_faults(const struct snapshot *s, const struct snap_vm *vm, uint64_t *ret);
void snap_vcpu_task_faults(const struct snapshot *s, const struct snap_vcpu *vcpu, uint64_t *ret);

/* Memory locality: permille of the VM's guest RAM on the nodes where its running vCPUs are; -1 if
 * it is not known. */
int snap_vm_memory_locality_permille(const struct snapshot *s, const struct snap_vm *vm);
/* Fault locality: permille of its vCPUs' faults that hit memory of the node they run on; -1 if
 * there are no faults. */
int snap_vm_fault_locality_permille(const struct snapshot *s, const struct snap_vm *vm);
/* vCPUs that are plugged in and ran in the window. */
unsigned snap_vm_running_vcpus(const struct snap_vm *vm);
/* CPU demand, run and wait time of its vCPUs: 1000 per CPU. */
unsigned snap_vm_demand_permille(const struct snap_vm *vm);
