/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Collect: one new snapshot from /proc, /sys, the fault sources and what libvirt said last. Runs on
 * a worker; touches nothing but its own memory.
 */
#pragma once

#include "controller/host/nodes.h"
#include "controller/source/residency.h"
#include "controller/virt/vm.h"
#include "policy/fold.h"

/* What acting needs beyond the snapshot; parallel to snapshot.vm. */
struct observed_vm {
	struct guestram ram;    /* own */
	struct idset *affinity; /* [n_vcpus] masks in force, CPU ids; own */
	bool needs_monitor;     /* only its QEMU can say which threads are its vCPUs */
	bool bound;             /* some of its RAM has a bind policy */
	uint64_t ram_read_ns;   /* when ram was last looked for */
	uint64_t ram_bytes;     /* what the VM was said to have then: plugging memory changes it */
	uint64_t maps_read_ns;  /* when numa_maps was last read; 0 never */
	uint64_t maps_cost_ns;  /* how long that took */
	pid_t pid;              /* with start_ticks: the process these are of */
	uint64_t start_ticks;
};

struct observed {
	unsigned n_vms;
	struct observed_vm *vm; /* own */
	struct idset cpus_online;
	unsigned n_warnings; /* of the host, for the log */
	char warning[NODES_WARNINGS_MAX][NODES_WARNING_LEN];
};
struct observed *observed_free(struct observed *o);

struct collect {
	/* in; nothing of it is changed */
	const struct hostfs *fs;
	const struct page_ops *pages; /* NULL: numa_maps instead (a captured host) */
	const struct settings *settings;
	const struct virt_list *vms;
	const struct snapshot *prev; /* NULL: the first */
	const struct observed *prev_observed;
	uint64_t now_ns; /* when the collecting began */
	/* out; own; NULL after a failure */
	struct snapshot *snapshot;
	struct observed *observed;
};

/*
 * Returns 0, a HOST_E_ condition if the host's nodes cannot be read, or -ENOMEM. A VM that cannot
 * be read has snap_vm.problem set; one that is gone is left out; the others are not affected.
 */
int collect_run(struct collect *c);
