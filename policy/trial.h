/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Promise and outcome: what a change was to bring is compared with what the counters say later. A
 * promise that was not kept raises what the VM's next change must gain, and how long it must wait
 * for it.
 */
#pragma once

#include "policy/settings.h"
#include "policy/snapshot.h"

#define TRIAL_BAR_MAX 5u /* the bar doubles with each broken promise, so often at most */

/* Of one VM; part of its history. Weights in permille. */
struct trial {
	bool open;           /* a promise waits to be judged */
	bool judged;         /* there was one that was */
	bool kept;           /* how the last one that was judged went */
	int before;          /* weight before the change; -1: unknown */
	int promised;        /* weight that it was to have; -1: there was no change yet */
	int achieved;        /* weight when it was judged */
	uint64_t since_ns;   /* when the change was made, or its memory had arrived */
	unsigned windows;    /* the VM's windows then */
	unsigned broken;     /* promises broken, less those kept since */
	unsigned broken_all; /* ever */
};

/* A change is handed out. One that was not judged yet is forgotten. @now, @then: weights. */
void trial_begin(struct trial *t, const struct snap_vm *vm, int now, int then, uint64_t now_ns);
/* Its memory is still on the way: the time to settle begins anew. */
void trial_wait(struct trial *t, const struct snap_vm *vm, uint64_t now_ns);

/*
 * Judges, if the change has had time to settle and enough windows are from after it: kept, if at
 * least half of what was promised has come. @now: the VM's weight by its faults. Returns whether it
 * was judged in this call.
 */
bool trial_judge(struct trial *t, const struct settings *set, const struct snap_vm *vm, int now,
	uint64_t now_ns);

/* Was the change that was judged last for the worse, by what would have been a reason to make it?
 */
bool trial_is_worse(const struct trial *t, const struct settings *set);

/* How many times the usual improvement is asked, and the usual cooldown: 1, 2, 4, ... */
unsigned trial_bar(const struct trial *t);
