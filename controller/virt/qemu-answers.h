/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What one QEMU has to say about itself, and what that makes of it as a VM.
 */
#pragma once

#include "controller/virt/vm.h"
#include "qmp/queries.h"

struct qemu_answers {
	pid_t pid; /* of the process that listens on the socket, by the kernel's word */
	struct qmp_status status;
	struct qmp_name name;
	struct qmp_uuid uuid;
	struct qmp_cpus cpus;
	struct qmp_memdevs memdevs;
	struct qmp_migrate migrate;
};
void qemu_answers_clear(struct qemu_answers *a);

/* The questions, asked in this order. */
struct qemu_question {
	const char *command;
	bool needed; /* without an answer there is no VM */
	/* takes the member "return"; 0, QMP_E_SHAPE, -ENOMEM */
	int (*take)(struct json_object *ret, struct qemu_answers *a, struct qmp_error *err);
};
#define QEMU_QUESTIONS 6u
extern const struct qemu_question qemu_questions[QEMU_QUESTIONS];

enum {
	QEMU_E_UNKNOWN_PROCESS = 1, /* the kernel does not say who listens on the socket */
	QEMU_E_VALUE,               /* no vCPUs, no memory */
};
/*
 * @socket: its path, which names a VM that has no name of its own, and identifies one without UUID.
 * @why: a sentence on a condition, SNAPSHOT_TEXT_MAX bytes.
 * Returns 0, a condition, or -ENOMEM.
 */
int qemu_answers_vm(
	const struct qemu_answers *a, const char *socket, struct virt_vm *ret, char *why);

/*
 * An identity that stays from look to look, for a QEMU that has none of its own: made of its
 * socket's path.
 * @ret: SNAPSHOT_UUID_LEN bytes.
 */
void qemu_uuid_of_socket(const char *socket, char *ret);

/* Makes QEMU's vCPUs the VM's threads; vm->thread is replaced on 0. -ENOMEM. */
int qemu_take_threads(const struct qmp_cpus *cpus, struct virt_vm *vm);
