/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Why a transport and not a second way to ask: the answers pass the same limits and the same
 * parsers as those of a socket.
 */
#include "controller/virt/passthrough.h"

#include <stdio.h>
#include <string.h>

#include "controller/virt/qemu-answers.h"

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
		r = qemu_take_threads(&cpus, vm);
	qmp_cpus_clear(&cpus);
	if (r > 0)
		snprintf(why, SNAPSHOT_TEXT_MAX, "%.180s", err.text);
	return r;
}
