/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One QEMU and its monitor: asking it, and what it answered last. Shared by qemu.c (the set of
 * them) and qemu-one.c.
 */
#pragma once

#include "controller/virt/qemu-answers.h"
#include "controller/virt/qemu.h"

struct one_qemu;

/* What all of them share. */
struct qemu_host {
	struct qemus_config config;
	int epoll;
	uint64_t now_ns; /* of the call that is under way, for the callbacks */
	/* Is this UUID that of another VM? For one that claims it, too. */
	bool (*uuid_taken)(
		const struct qemu_host *host, const struct one_qemu *e, const char *uuid);
	const struct qemus *set;
};

struct question_ref {
	struct one_qemu *qemu;
	unsigned index;
};

struct one_qemu {
	const struct qemu_host *host;
	char path[VIRT_SOCKET_MAX];
	bool share;
	bool listed; /* in the last set of paths */
	bool wanted; /* waits for its turn to be asked */
	bool ending; /* being freed: callbacks mean nothing */
	struct qmp *q;
	uint64_t id;    /* never used again: what epoll gives back */
	int watched_fd; /* in the epoll set; -1: none */
	short watched;

	/* the questions that are under way */
	unsigned open;
	struct question_ref ref[QEMU_QUESTIONS];
	struct qemu_answers answers;
	struct qmp_error failure; /* of the first that failed */

	/* the last answers */
	bool known;
	struct virt_vm vm;
	uint64_t answered_ns, asked_ns;
	unsigned failures;      /* looks in a row that failed */
	uint64_t not_before_ns; /* after those: leave it alone until then */
	unsigned events;        /* since events_ns */
	uint64_t events_ns;
	uint64_t again_ns;               /* an event asks for another look then; UINT64_MAX */
	char problem[SNAPSHOT_TEXT_MAX]; /* why the last look failed, "" if it did not */
};

/* @host outlives it. NULL: out of memory. */
struct one_qemu *one_qemu_new(const struct qemu_host *host, const struct qemu_path *path);
struct one_qemu *one_qemu_free(struct one_qemu *e);
/* Sends the questions, connecting first if need be. */
void one_qemu_ask(struct one_qemu *e);
/* Counts among those that are being asked. */
bool one_qemu_is_active(const struct one_qemu *e);
/* Brings the epoll set in line with what the connection wants. */
void one_qemu_watch(struct one_qemu *e);
/* Forgets the VM if its process has ended. Returns whether there is none (any more). */
bool one_qemu_is_gone(struct one_qemu *e);
