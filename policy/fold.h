/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * From one snapshot to the next: fold a source's new readings into the decayed fault vectors, and
 * say what the data of a VM is worth.
 */
#pragma once

#include "policy/settings.h"
#include "policy/snapshot.h"

enum reading_state {
	READING_NONE, /* the thread is gone, or the file has no NUMA part */
	READING_OK,
	READING_NO_PERMISSION,
};

/* What a fault source read of one vCPU thread. */
struct fault_reading {
	enum reading_state state;
	bool has_stats; /* false: the kernel keeps no statistics of this thread (not: zero) */
	bool decayed;   /* values decay in the kernel and scan_seq counts its passes */
	uint64_t scan_seq;
	uint64_t total_faults;
	uint64_t *value; /* [n_nodes * FAULT_KINDS], 2 * node + kind */
};

/*
 * @vcpu: the vCPU in the snapshot that is being filled; faults, raw, scan_seq, total_faults and
 *   has_raw are written.
 * @prev: the same thread in the snapshot before, NULL if there is none or the nodes changed.
 * Returns whether anything new was seen.
 */
bool fold_vcpu(unsigned n_nodes, const struct snap_vcpu *prev, const struct fault_reading *reading,
	struct snap_vcpu *vcpu);

/*
 * Pages carry their faults along: where guest RAM went from some nodes to others between two
 * snapshots, the same share of the faults is moved. Without this a VM whose memory has just been
 * moved would be wanted back where it came from.
 * @prev, @vm: mem_bytes of both are read; @vm's vCPUs' fault vectors are changed.
 */
void fold_moved_memory(unsigned n_nodes, const struct snap_vm *prev, struct snap_vm *vm);

/*
 * Sets vm->data, data_age_ns and windows.
 * @fresh: some vCPU had new faults in this window; @denied: every reading lacked permission.
 */
void fold_data_state(const struct settings *set, const struct snapshot *s,
	const struct snap_vm *prev, bool fresh, bool denied, struct snap_vm *vm);
