/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Which threads of a QEMU are its vCPUs. vCPUs are counted by threads, never by guest topology; ids
 * may have gaps (unplugged vCPUs have no thread).
 */
#pragma once

#include "controller/host/cgroup.h"
#include "controller/host/root.h"
#include "controller/host/threads.h"
#include "policy/snapshot.h"

enum vcpus_source {
	VCPUS_FROM_CGROUP,
	VCPUS_FROM_NAMES,
	VCPUS_FROM_QMP, /* query-cpus-fast */
};

struct vcpu_threads {
	size_t n;
	struct vcpu_thread *vcpu; /* ascending id, each once; own */
	enum vcpus_source source;
	/* Single-threaded TCG: the one entry (id 0) is the thread of all vCPUs. */
	bool one_for_all;
	unsigned anomalies; /* groups with more or other threads than one of this process */
};
void vcpu_threads_clear(struct vcpu_threads *v);
#define _cleanup_vcpu_threads_ _cleanup_(vcpu_threads_clear)

/*
 * First libvirt's vcpuN/ cgroups, then thread names ("CPU 0/KVM", "CPU 0/TCG").
 * @cg: the VM's group, or NULL to look at names only.
 * Returns 0, HOST_E_NOT_FOUND (vCPUs cannot be told apart from other threads), HOST_E_GONE,
 * HOST_E_PERM, HOST_E_IO, HOST_E_TOO_BIG or a negative errno.
 */
int vcpu_threads_find(
	const struct hostfs *fs, pid_t pid, const struct vm_cgroup *cg, struct vcpu_threads *ret);

/*
 * The same from threads that QEMU named itself. Those that are no threads of the process are
 * anomalies and left out, so that nobody can lend us another's threads.
 */
int vcpu_threads_check(const struct hostfs *fs, pid_t pid, const struct vcpu_thread *said, size_t n,
	struct vcpu_threads *ret);
