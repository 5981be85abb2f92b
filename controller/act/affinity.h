/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Pins a thread of a QEMU that no libvirt looks after, by sched_setaffinity(). It does not block.
 */
#pragma once

#include "controller/host/root.h"
#include "policy/idset.h"
#include "policy/snapshot.h"

/* sched_setaffinity() in its shape: 0, or -1 and errno. */
typedef int (*affinity_fn)(pid_t tid, size_t size, const void *mask);
int affinity_kernel(pid_t tid, size_t size, const void *mask);

struct affinity_thread {
	pid_t pid;
	uint64_t start_ticks; /* of the process: the same pid with another start is another process
			       */
	pid_t tid;
};

enum {
	AFFINITY_E_GONE = 1, /* the process or the thread ended, or is another one by now */
	AFFINITY_E_REFUSED,  /* the kernel said no: none of the CPUs is left by its cpuset, or
				permission */
};
/* @why: a sentence on a condition, SNAPSHOT_TEXT_MAX bytes. */
int affinity_set(const struct hostfs *fs, affinity_fn set, const struct affinity_thread *thread,
	const struct idset *cpus, char *why);
