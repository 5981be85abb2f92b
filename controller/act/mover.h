/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The memory mover: brings the guest RAM of one VM to one node, in move_pages() batches, under a
 * byte budget. Blocking; runs on a worker of its own, one VM at a time.
 */
#pragma once

#include <stdatomic.h>

#include "controller/host/guestram.h"
#include "controller/source/residency.h"

/* Why pages did not move, by move_pages' status. */
enum move_failure {
	MOVE_BUSY,   /* EBUSY: pinned or in use */
	MOVE_NOMEM,  /* ENOMEM: the target is full */
	MOVE_DENIED, /* EACCES, EPERM */
	MOVE_OTHER,
	MOVE_FAILURES,
};
const char *move_failure_name(enum move_failure f);

enum move_end {
	MOVE_DONE,      /* all that could be moved was */
	MOVE_STOPPED,   /* *cancel, or may_go_on() said no */
	MOVE_GONE,      /* the process ended */
	MOVE_FORBIDDEN, /* no permission, or the node is outside its cpuset.mems */
	MOVE_STUCK,     /* nearly nothing moves: the pages are pinned */
	MOVE_NO_ROOM,   /* the target node is full */
};

struct mover_job {
	/* in */
	const struct page_ops *ops;
	pid_t pid;
	struct guestram ram;  /* own copy of ranges */
	unsigned target;      /* node id */
	uint64_t rate_bytes;  /* per second; 0: no limit */
	unsigned batch_pages; /* addresses per call, at most MOVER_BATCH_MAX */
	/* Asked before each batch; false ends the job. NULL: always. */
	bool (*may_go_on)(void *userdata);
	/* Nanoseconds of a clock that never steps, and a sleep; NULL: the real ones. */
	uint64_t (*now_ns)(void *userdata);
	void (*sleep_ns)(void *userdata, uint64_t ns);
	void *userdata;

	/* in and out while it runs: readable from other threads */
	atomic_bool cancel;
	atomic_uint_fast64_t moved_bytes;

	/* out, after the run */
	enum move_end end;
	uint64_t moved_pages; /* of 4 KiB, or of the range's huge page size */
	uint64_t failed_pages[MOVE_FAILURES];
	uint64_t absent_pages;
	uint64_t longest_call_ns;
	unsigned calls;
};

#define MOVER_BATCH_MAX 8192u
#define MOVER_BATCH_DEFAULT 2048u
#define MOVER_RATE_DEFAULT (UINT64_C(256) << 20)

/* Returns 0 (job->end says how it went) or -ENOMEM. */
int mover_run(struct mover_job *job);
/* Copies the ranges of @from into job->ram. -ENOMEM. */
int mover_take_ranges(struct mover_job *job, const struct guestram *from);
