/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Why /proc is read once more before the call: thread ids are used again, and the kernel pins
 * whatever has the number now.
 */
#include "controller/act/affinity.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "controller/host/threads.h"

_Static_assert(sizeof(unsigned long) == sizeof(uint64_t),
	"an idset's words are a CPU mask's words on 64-bit machines only");

int affinity_kernel(pid_t tid, size_t size, const void *mask)
{
	return sched_setaffinity(tid, size, mask);
}

int affinity_set(const struct hostfs *fs, affinity_fn set, const struct affinity_thread *thread,
	const struct idset *cpus, char *why)
{
	struct thread_stat process, st;
	int error;

	if (thread_stat_read(fs, thread->pid, 0, &process) != 0 ||
		process.start_ticks != thread->start_ticks ||
		thread_stat_read(fs, thread->pid, thread->tid, &st) != 0) {
		snprintf(why, SNAPSHOT_TEXT_MAX, "thread %d has ended", (int)thread->tid);
		return AFFINITY_E_GONE;
	}
	if (set(thread->tid, sizeof(cpus->word), cpus->word) == 0)
		return 0;
	error = errno;
	snprintf(why, SNAPSHOT_TEXT_MAX, "sched_setaffinity: %s", strerror(error));
	return error == ESRCH ? AFFINITY_E_GONE : AFFINITY_E_REFUSED;
}
