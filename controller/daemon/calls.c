/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the control socket may ask for. Everything is answered from the published moment: a call
 * never waits for libvirt or the kernel.
 */
#include <string.h>
#include <time.h>

#include "controller/control/views.h"
#include "controller/daemon/daemon.h"

static const char *end_name(enum move_end end)
{
	static const char *const names[] = {
		[MOVE_DONE] = "done",
		[MOVE_STOPPED] = "stopped",
		[MOVE_GONE] = "gone",
		[MOVE_FORBIDDEN] = "forbidden",
		[MOVE_STUCK] = "stuck",
		[MOVE_NO_ROOM] = "no-room",
	};

	return names[end];
}

static void fill_extra(void *userdata, unsigned i, struct view_vm_extra *ret)
{
	struct daemon *d = userdata;
	const struct snap_vm *vm = &d->snapshot->vm[i];
	const struct moves_vm *m = moves_find(d->moves, vm->uuid, vm->pid, vm->start_ticks);

	for (unsigned k = 0; k < d->history.n_vms; k++)
		if (d->history.vm[k].pid == vm->pid && strcmp(d->history.vm[k].uuid, vm->uuid) == 0)
			ret->history = &d->history.vm[k];
	for (unsigned k = 0; k < d->vms.n_vms; k++)
		if (d->vms.vm[k].manager == VIRT_QMP && strcmp(d->vms.vm[k].uuid, vm->uuid) == 0)
			ret->socket = d->vms.vm[k].socket;
	if (!m)
		return;
	ret->moving = m->active;
	ret->want_bytes = m->want_bytes;
	ret->done_bytes = moves_progress_bytes(m);
	ret->moved_pages = m->moved_pages + ret->done_bytes / 4096;
	memcpy(ret->failed_pages, m->failed_pages, sizeof(ret->failed_pages));
	ret->move_end = m->ended ? end_name(m->end) : NULL;
}

static uint64_t own_cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static struct json_object *get_status(struct daemon *d)
{
	const char *warning[NODES_WARNINGS_MAX];
	struct view_host h = {
		.dry_run = d->options.dry_run,
		.libvirt_used = !d->options.config.no_libvirt,
		.libvirt_connected = d->connected,
		.libvirt_version = d->virt_version,
		.libvirt_error = d->virt_error,
		.n_left_out = d->vms.n_odd,
		.left_out = d->vms.odd,
		.trouble = d->trouble,
		.now_ns = daemon_now_ns(),
		.started_ns = d->started_ns,
		.tick_ns = d->options.tick_ns,
		.first_decision_ns = d->first_decision_ns,
		.last_action_ns = d->last_action_ns,
		.ticks = d->ticks,
		.cpu_ns = own_cpu_ns(),
		.n_warnings = d->observed ? d->observed->n_warnings : 0,
		.warning = warning,
		.hint_faults_per_s = d->hint_faults_per_s,
		.kernel_pages_per_s = d->kernel_pages_per_s,
		.extra = fill_extra,
		.userdata = d,
	};

	for (unsigned i = 0; i < h.n_warnings; i++)
		warning[i] = d->observed->warning[i];
	return view_status(&h, d->snapshot, &d->plan);
}

struct json_object *calls_handle(void *userdata, const char *method, struct json_object *parameters,
	bool privileged, const char **ret_error)
{
	if (strcmp(method, "GetStatus") == 0)
		return get_status(userdata);
	*ret_error = "MethodNotFound";
	return NULL;
}
