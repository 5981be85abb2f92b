/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * libvirt's monitor passthrough as a QMP transport. Each command marks the domain as tainted
 * ("custom-monitor"), so it is used only where the operator has allowed it, and only for what
 * cannot be learnt otherwise. Blocks; for the libvirt worker.
 */
#pragma once

#include "controller/virt/session.h"
#include "qmp/sync.h"

/* Sends one command through libvirt; a virt_session's call or a test's own. As qmp_call_fn. */
struct passthrough {
	struct virt_session *session;
	const char *uuid;
};
int passthrough_call(void *userdata, const char *command, char **ret_reply);

/*
 * Asks which threads run the VM's vCPUs; vm->thread is replaced on 0.
 * @why: a sentence on a condition, SNAPSHOT_TEXT_MAX bytes.
 * Returns 0, a condition of libqmp, or -ENOMEM.
 */
int passthrough_ask_threads(qmp_call_fn call, void *userdata, struct virt_vm *vm, char *why);
