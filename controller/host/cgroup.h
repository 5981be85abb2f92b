/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The cgroups of a VM, version 1 and version 2: which threads are what, and which CPUs and nodes
 * the groups around the VM leave to it.
 *
 * All idsets hold ids.
 */
#pragma once

#include "controller/host/root.h"
#include "policy/idset.h"

struct vm_cgroup {
	bool v2;
	/*
	 * Where the hierarchy with the cpuset controller is mounted, below the root directory:
	 * "sys/fs/cgroup" or "sys/fs/cgroup/cpuset"; own.
	 */
	char *mount;
	/* The VM's group: the one that holds emulator/ and vcpuN/, or for a process without them
	 * its own. Begins with a slash; "/" is the root group; own. */
	char *group;
	bool has_threads; /* it holds vcpuN/ groups, as libvirt makes them */
};
void vm_cgroup_clear(struct vm_cgroup *cg);
#define _cleanup_vm_cgroup_ _cleanup_(vm_cgroup_clear)

/*
 * From /proc/PID/cgroup.
 * Returns 0, HOST_E_NOT_FOUND (no hierarchy has cpusets), HOST_E_FORMAT, HOST_E_GONE, HOST_E_PERM,
 * HOST_E_TOO_BIG, HOST_E_IO or a negative errno.
 */
int vm_cgroup_find(const struct hostfs *fs, pid_t pid, struct vm_cgroup *ret);
/*
 * The same from the file's text, without looking at the tree: @ret->mount is the usual place and
 * has_threads is false. Returns 0, HOST_E_NOT_FOUND, HOST_E_FORMAT or -ENOMEM.
 */
int vm_cgroup_parse(const char *text, size_t len, struct vm_cgroup *ret);

enum cgroup_role {
	CGROUP_EMULATOR,
	CGROUP_VCPU,
	CGROUP_IOTHREAD,
};

struct cgroup_thread {
	enum cgroup_role role;
	unsigned index; /* of vcpuN and iothreadN; 0 for the emulator */
	pid_t tid;
};

struct cgroup_threads {
	size_t n;
	struct cgroup_thread *thread; /* by role, then index, then tid; own */
	unsigned anomalies;           /* groups or lines that were skipped */
};
void cgroup_threads_clear(struct cgroup_threads *threads);
#define _cleanup_cgroup_threads_ _cleanup_(cgroup_threads_clear)

/*
 * The threads in emulator/, vcpuN/ and iothreadN/ (cgroup.threads, in version 1 tasks). Groups that
 * vanish meanwhile or are empty have no entry.
 * Returns 0, HOST_E_NOT_FOUND (there are no such groups), HOST_E_PERM, HOST_E_IO, HOST_E_TOO_BIG or
 * a negative errno.
 */
int cgroup_threads_read(
	const struct hostfs *fs, const struct vm_cgroup *cg, struct cgroup_threads *ret);

struct cgroup_allowed {
	struct idset cpus;
	struct idset mems;
	/* The uppermost file that takes something away, as on the live host
	 * ("/sys/fs/cgroup/machine.slice/cpuset.cpus.effective"); NULL: nothing does; own. */
	char *cpus_file;
	char *mems_file;
	unsigned anomalies; /* files that could not be understood and were passed over */
};
void cgroup_allowed_clear(struct cgroup_allowed *a);
#define _cleanup_cgroup_allowed_ _cleanup_(cgroup_allowed_clear)

/*
 * What remains of @online_cpus and @online_mems on the way from the root group down to the VM's
 * group. Its vcpuN/ and emulator/ groups are not looked at: they are pins, not limits.
 * Returns 0 or a negative errno: a file that is not there takes nothing away.
 */
int cgroup_allowed_read(const struct hostfs *fs, const struct vm_cgroup *cg,
	const struct idset *online_cpus, const struct idset *online_mems,
	struct cgroup_allowed *ret);

enum cgroup_resource {
	CGROUP_CPUS,
	CGROUP_MEMS,
};
/*
 * The uppermost file whose set lacks this CPU or node id, named as on the live host; the caller
 * frees it. Returns 0, HOST_E_NOT_FOUND (none does) or a negative errno.
 */
int cgroup_who_excludes(const struct hostfs *fs, const struct vm_cgroup *cg,
	enum cgroup_resource resource, unsigned id, char **ret_file);
