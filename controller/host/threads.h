/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What /proc says about a process and its threads.
 *
 * In every function @tid = 0 means the process itself (/proc/PID/...), else one thread
 * (/proc/PID/task/TID/...). All return 0, HOST_E_GONE, HOST_E_PERM, HOST_E_IO, HOST_E_TOO_BIG,
 * HOST_E_FORMAT or a negative errno, and write only on 0.
 */
#pragma once

#include "controller/host/root.h"
#include "policy/idset.h"

#define THREAD_COMM_MAX 64 /* 15 for threads of programs; kernel workers show more */

struct thread_stat {
	pid_t id;
	char comm[THREAD_COMM_MAX];
	char state; /* R S D T t Z X I ... */
	uint64_t utime_ticks;
	uint64_t stime_ticks;
	unsigned num_threads;
	uint64_t start_ticks; /* since boot; with the pid, the identity of a process */
	int last_cpu;         /* -1: the line ended before it */
};
int thread_stat_read(const struct hostfs *fs, pid_t pid, pid_t tid, struct thread_stat *ret);
int thread_stat_parse(const char *text, size_t len, struct thread_stat *ret);

struct thread_schedstat {
	uint64_t run_ns;  /* on a CPU */
	uint64_t wait_ns; /* wanted to and was not */
	uint64_t slices;
};
int thread_schedstat_read(
	const struct hostfs *fs, pid_t pid, pid_t tid, struct thread_schedstat *ret);
int thread_schedstat_parse(const char *text, size_t len, struct thread_schedstat *ret);

/* The masks in force, whatever was asked for. */
struct thread_status {
	bool has_cpus;
	bool has_mems;
	struct idset cpus; /* CPU ids */
	struct idset mems; /* node ids */
};
/* HOST_E_FORMAT if neither line is there. */
int thread_status_read(const struct hostfs *fs, pid_t pid, pid_t tid, struct thread_status *ret);
int thread_status_parse(const char *text, size_t len, struct thread_status *ret);

/* The name without its final newline, cut to @size - 1 bytes. */
int thread_comm_read(const struct hostfs *fs, pid_t pid, pid_t tid, char *buf, size_t size);

struct thread_ids {
	size_t n;
	pid_t *tid; /* ascending; own */
};
void thread_ids_clear(struct thread_ids *ids);
#define _cleanup_thread_ids_ _cleanup_(thread_ids_clear)
bool thread_ids_has(const struct thread_ids *ids, pid_t tid);
/* The threads of a process; names that are not numbers are skipped. */
int thread_ids_read(const struct hostfs *fs, pid_t pid, struct thread_ids *ret);

/*
 * The command line: arguments with a NUL after each, at most HOST_LIMIT_MEDIUM bytes. Empty for
 * kernel threads and for a process on its way out. The caller frees *ret_text.
 */
int thread_cmdline_read(const struct hostfs *fs, pid_t pid, char **ret_text, size_t *ret_len);
