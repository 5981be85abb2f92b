/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The `sched` fault source: the kernel's own per-thread counters in /proc/PID/task/TID/sched.
 */
#pragma once

#include "controller/host/root.h"
#include "policy/fold.h"

/*
 * One reading of one vCPU thread, by node index.
 * @value: the caller's array [n_nodes * FAULT_KINDS]; ret->value points to it.
 * @online: ids of the nodes that must have a row.
 * A thread that ended, a file without counters or one that may not be read is not an error: the
 * state says so. Returns 0 or a negative errno.
 */
int source_sched_read(const struct hostfs *fs, pid_t pid, pid_t tid, const struct topology *t,
	const struct idset *online, uint64_t *value, struct fault_reading *ret);
