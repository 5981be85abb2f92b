/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Why a transport and not a second way to ask: the answers pass the same limits and the same
 * parsers as those of a socket.
 */
#include "controller/virt/passthrough.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "qmp/queries.h"

int passthrough_call(void *userdata, const char *command, char **ret_reply)
{
	struct passthrough *p = userdata;

	switch (virt_session_monitor(p->session, p->uuid, command, ret_reply)) {
	case 0:
		return 0;
	case VIRT_E_GONE:
	case VIRT_E_LOST:
		return QMP_E_CLOSED;
	case VIRT_E_BUSY:
		return QMP_E_BUSY;
	default:
		return QMP_E_PERM;
	}
}

static int take_threads(const struct qmp_cpus *cpus, struct virt_vm *vm)
{
	unsigned n = (unsigned)MIN2(cpus->n, (size_t)SNAPSHOT_VCPUS_MAX);
	struct vcpu_thread *thread = calloc(n ? n : 1, sizeof(*thread));

	if (!thread)
		return -ENOMEM;
	for (unsigned i = 0; i < n; i++)
		thread[i] = (struct vcpu_thread){.id = cpus->cpu[i].index, .tid = cpus->cpu[i].tid};
	free(vm->thread);
	vm->thread = thread;
	vm->n_threads = n;
	return 0;
}

int passthrough_ask_threads(qmp_call_fn call, void *userdata, struct virt_vm *vm, char *why)
{
	struct qmp_transport transport;
	struct qmp_cpus cpus = {0};
	struct qmp_error err = {0};
	struct qmp *q;
	int r;

	r = qmp_transport_calls(call, userdata, &transport);
	if (r == 0)
		r = qmp_sync_open_transport(&transport, NULL, &q, &err);
	if (r == 0) {
		r = qmp_query_cpus_fast(q, UINT64_C(10000000000), &cpus, &err);
		qmp_free(q);
	}
	if (r == 0)
		r = take_threads(&cpus, vm);
	qmp_cpus_clear(&cpus);
	if (r > 0)
		snprintf(why, SNAPSHOT_TEXT_MAX, "%.180s", err.text);
	return r;
}
