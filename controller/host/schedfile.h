/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The NUMA part of /proc/PID/task/TID/sched: the kernel's fault counters of one thread.
 *
 * Rows are by node *id*, ascending. The values are the kernel's own, that is, already decayed.
 *
 * The file is opened read-only, always: a write resets the counters.
 */
#pragma once

#include "controller/host/root.h"
#include "controller/host/threads.h"
#include "policy/idset.h"

#define SCHED_ROWS_MAX 1024u /* MAX_NUMNODES of the kernel */

enum sched_era {
	SCHED_ERA_NONE, /* no rows: no CONFIG_NUMA_BALANCING, or cut before them */
	SCHED_ERA_3_13, /* "numa_faults, i, node, ..." */
	SCHED_ERA_3_14, /* "numa_faults_memory, i, node, ..." */
	SCHED_ERA_4_2,  /* "numa_faults node=N task_private=..." */
};

struct sched_row {
	unsigned node; /* id */
	/*
	 * Early 4.x kernels print private and shared exchanged, which cannot be seen in the file;
	 * their sum is right everywhere.
	 */
	uint64_t task_private;
	uint64_t task_shared;
	uint64_t group_private; /* 0 in the formats before 4.2, as is group_shared */
	uint64_t group_shared;
};

struct sched_numa {
	char comm[THREAD_COMM_MAX]; /* "" if there was no header line */
	pid_t tid;                  /* 0 if there was no header line */
	unsigned num_threads;

	enum sched_era era;
	/* Counters exist: at least one row, and not "-1" everywhere. Zeros are counters. */
	bool has_stats;
	/*
	 * Something is missing: the text ended within a line, a row was dropped, or an online node
	 * has no row. Nodes without a row are then unknown, not 0.
	 */
	bool incomplete;
	unsigned anomalies; /* records that were skipped or came twice */

	bool has_scan_seq; /* scan_seq and total are there since 4.2 only */
	bool has_total;
	uint64_t scan_seq;
	uint64_t total;
	uint64_t pages_migrated; /* before 4.2 reading it resets it in the kernel */
	int preferred;           /* node id; -1 none or not known */
	int current;             /* node id; -1 not known */
	unsigned group_id;       /* 0 none or not known */

	unsigned n_rows;
	struct sched_row *row; /* ascending node id, each once; own */
};

/* Frees what it owns and zeroes it. */
void sched_numa_clear(struct sched_numa *s);
#define _cleanup_sched_numa_ _cleanup_(sched_numa_clear)

/* The row of the node with this id, or NULL. */
const struct sched_row *sched_numa_row(const struct sched_numa *s, unsigned node);

/*
 * @online: ids of the nodes that must have a row each; NULL if not known.
 * @ret: need not be initialised; the caller clears it after a return of 0.
 * Returns 0 (also when there is no NUMA part: then era is SCHED_ERA_NONE), HOST_E_GONE,
 * HOST_E_PERM, HOST_E_TOO_BIG, HOST_E_IO or a negative errno.
 */
int sched_numa_read(const struct hostfs *fs, pid_t pid, pid_t tid, const struct idset *online,
	struct sched_numa *ret);
/* The same from text. Returns 0 or -ENOMEM. */
int sched_numa_parse(
	const char *text, size_t len, const struct idset *online, struct sched_numa *ret);
