/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A thread that does blocking work, one job after the other, and hands each result back as a
 * message to the main loop.
 */
#pragma once

#include "controller/daemon/mainq.h"

struct worker;
typedef void (*worker_fn)(void *arg);

/* @name: at most 15 characters, shown by ps -L. @mainq must outlive the worker. */
int worker_new(struct mainq *mainq, const char *name, struct worker **ret);

/*
 * @run: called on the worker's thread. @done: then called on the main loop's thread with the same
 * argument; it frees what is to be freed. If the worker is stopped first, neither may be called.
 * -ENOMEM, or -ESHUTDOWN after worker_stop().
 */
int worker_submit(struct worker *w, worker_fn run, worker_fn done, void *arg);

/* Jobs that wait or run. Main loop's thread only. */
unsigned worker_pending(const struct worker *w);

/*
 * Waits for the running job for at most @timeout_ms, drops the others. If the job hangs (a libvirt
 * call can), the thread is left behind and false is returned: the process should end soon then.
 */
bool worker_stop(struct worker *w, unsigned timeout_ms);
/* After worker_stop() only; a thread that was left behind keeps the memory. */
struct worker *worker_free(struct worker *w);
