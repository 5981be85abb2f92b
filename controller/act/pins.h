/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The book of vCPU pins: what each vCPU had before the first change, what was asked for, and
 * whether the host still agrees. It makes no calls; virt/session.h and act/affinity.h do.
 */
#pragma once

#include "controller/virt/vm.h"

#define PINS_REAPPLY_MAX 3u /* then the VM is left alone */

struct pins_vcpu {
	unsigned id;
	bool asked_for;
	struct idset original; /* the mask before the first change: libvirt's, or the thread's */
	struct idset asked;
};

struct pins_vm {
	char uuid[SNAPSHOT_UUID_LEN];
	pid_t pid;
	uint64_t start_ticks;
	unsigned n_vcpus;
	struct pins_vcpu *vcpu; /* own; ascending id */
	bool pending;           /* a call is under way: readings mean nothing */
	uint64_t settled_ns;    /* when the last call ended: older readings mean nothing */
	unsigned reapplied;
	unsigned adoptions_failed; /* of vCPUs that were plugged in */
	unsigned reverted;         /* times somebody had undone our mask */
};

struct pins {
	unsigned n_vms;
	struct pins_vm *vm; /* own */
};

void pins_clear(struct pins *p);
/* The entry of this process, or NULL. */
struct pins_vm *pins_find(struct pins *p, const char *uuid, pid_t pid, uint64_t start_ticks);
/*
 * Notes what vCPU @id is to have, and the first time that it had @original. -ENOMEM.
 */
int pins_ask(struct pins *p, const struct snap_vm *vm, unsigned id, const struct idset *original,
	const struct idset *cpus);
/* Whether something is asked for the vCPU. */
bool pins_know(const struct pins_vm *e, unsigned id);
/* Drops the entries of processes that are not in the snapshot, and of vCPUs that were unplugged. */
void pins_drop_gone(struct pins *p, const struct snapshot *s);

enum pins_verdict {
	PINS_FREE,    /* nobody has pinned it */
	PINS_OURS,    /* as we asked */
	PINS_UNKNOWN, /* the readings are older than our last call */
	PINS_FOREIGN, /* somebody else has pinned it */
	PINS_DRIFT,   /* ours in libvirt, but not in force */
};
/*
 * @v: what libvirt said at @libvirt_ns; NULL if it did not say anything about this VM.
 * @affinity: [vm->n_vcpus] masks in force, read at @proc_ns.
 * @why: SNAPSHOT_TEXT_MAX bytes, set for PINS_FOREIGN and PINS_DRIFT.
 */
enum pins_verdict pins_check(struct pins *p, const struct snap_vm *vm, const struct virt_vm *v,
	uint64_t libvirt_ns, const struct idset *affinity, uint64_t proc_ns,
	const struct idset *cpus_online, char *why);
