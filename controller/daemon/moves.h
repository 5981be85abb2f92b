/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Memory moves in flight and done: a queue in front of the mover's worker, and for each VM the sums
 * that `status` shows. Main loop's thread only.
 */
#pragma once

#include "controller/act/mover.h"
#include "controller/daemon/worker.h"
#include "controller/source/collect.h"

struct moves_vm {
	char uuid[SNAPSHOT_UUID_LEN];
	char name[SNAPSHOT_NAME_MAX];
	pid_t pid;
	uint64_t start_ticks;
	bool active;          /* waits or runs */
	unsigned target;      /* node id of the last or present move */
	uint64_t want_bytes;  /* of the present move */
	uint64_t moved_pages; /* all moves of this VM, without the present one */
	uint64_t failed_pages[MOVE_FAILURES];
	uint64_t longest_call_ns;
	bool ended; /* end is valid */
	enum move_end end;
	struct move_task *task; /* of the present move */
};

struct moves;
/* Called on the main loop when a move ended; the entry has the sums. */
typedef void (*moves_done)(void *userdata, const struct moves_vm *vm);

struct moves_config {
	struct worker *worker;
	const struct hostfs *fs;
	const struct page_ops *ops;
	uint64_t rate_bytes;
	unsigned batch_pages;
	uint64_t reserve_bytes; /* MemFree of the target below this ends a move */
	moves_done done;
	void *userdata;
};

int moves_new(const struct moves_config *config, struct moves **ret);
struct moves *moves_free(struct moves *m);

/* @want_bytes: for display. Returns 0 or a negative errno. */
int moves_start(struct moves *m, const struct snap_vm *vm, const struct guestram *ram,
	unsigned target_id, uint64_t want_bytes);
void moves_cancel(struct moves *m, const char *uuid);
void moves_cancel_all(struct moves *m);
unsigned moves_active(const struct moves *m);
/* NULL: never moved anything of it. */
const struct moves_vm *moves_find(
	const struct moves *m, const char *uuid, pid_t pid, uint64_t start_ticks);
/* Bytes that the present move has brought so far; 0 if there is none. */
uint64_t moves_progress_bytes(const struct moves_vm *vm);
void moves_drop_gone(struct moves *m, const struct snapshot *s);
