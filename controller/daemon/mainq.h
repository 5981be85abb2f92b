/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Messages from other threads to the main loop: post a function from any thread, it runs on the
 * main loop's thread, in the order of posting.
 */
#pragma once

#include <systemd/sd-event.h>

#include "policy/base.h"

struct mainq;
typedef void (*mainq_fn)(void *arg);

int mainq_new(sd_event *event, struct mainq **ret);
/* Messages that have not run are dropped without running. No thread may post any more. */
struct mainq *mainq_free(struct mainq *q);

/* Any thread. -ENOMEM: nothing was posted. */
int mainq_post(struct mainq *q, mainq_fn fn, void *arg);
