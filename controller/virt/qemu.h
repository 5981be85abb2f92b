/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * QEMU processes that libvirt does not know, found by their QMP sockets. Driven by the caller's
 * loop: nothing here blocks but qemu_paths_find(), which is for a worker.
 *
 * A monitor takes one client at a time. A shared one is connected to, asked and left at each look;
 * one that is not stays connected, and its events are followed.
 *
 *   for each tick:   paths = qemu_paths_find()         on a worker
 *                    qemus_ask(paths)
 *   the loop:        qemus_process() when qemus_fd() is readable, or at qemus_deadline_ns()
 *   any time:        qemus_list(): who runs, by the last answers
 */
#pragma once

#include "controller/virt/vm.h"

#define QEMU_SOURCES_MAX 64u
#define QEMU_SOCKETS_MAX 4096u
#define QEMU_ANSWER_NS (UINT64_C(5) * 1000000000) /* how long a monitor may take to answer */
#define QEMU_STALE_NS \
	(UINT64_C(60) * 1000000000) /* how long its last answers are believed, or two ticks */
#define QEMU_HELD_MAX 256u /* monitors that are stayed connected to; further ones are shared */

/* Where to look. */
struct qemu_source {
	char *pattern; /* a path or a glob; own */
	bool share;    /* leave the monitor to others between two looks */
};

struct qemu_path {
	char path[VIRT_SOCKET_MAX];
	bool share;
};
struct qemu_paths {
	unsigned n;
	struct qemu_path *path; /* own; each path once, in the order of the sources */
	bool incomplete;        /* something could not be looked at for lack of fds or memory */
	unsigned n_odd;         /* matches that cannot be sockets' paths, or are libvirt's own */
	char odd[SNAPSHOT_TEXT_MAX];
};
void qemu_paths_clear(struct qemu_paths *p);
/* -ENOMEM. A pattern that matches nothing is no error. */
int qemu_paths_find(const struct qemu_source *source, unsigned n, struct qemu_paths *ret);

struct qemus_config {
	/* Called within qemus_ask() and qemus_process(), when a VM came, went or changed. */
	void (*notify)(void *userdata);
	/* When the process began, in ticks since boot; false: there is no such process. */
	bool (*started)(void *userdata, pid_t pid, uint64_t *ret_start_ticks);
	void *userdata;
	uint64_t tick_ns; /* between two calls of qemus_ask() */
};

struct qemus;
int qemus_new(const struct qemus_config *config, struct qemus **ret);
struct qemus *qemus_free(struct qemus *s);
/* Forgets the sockets that are not in @paths and whose QEMU has ended, asks all others. -ENOMEM. */
int qemus_ask(struct qemus *s, const struct qemu_paths *paths, uint64_t now_ns);
/* To be polled for reading. */
int qemus_fd(const struct qemus *s);
/* UINT64_MAX: none */
uint64_t qemus_deadline_ns(const struct qemus *s);
void qemus_process(struct qemus *s, uint64_t now_ns);

/*
 * The VMs whose process lives, by their last answers; one whose monitor has been silent for too
 * long says so in `silent`. Odd are the sockets that have not told of a VM, save those that no QEMU
 * listens on any more. -ENOMEM.
 */
int qemus_list(const struct qemus *s, uint64_t now_ns, struct virt_list *ret);
