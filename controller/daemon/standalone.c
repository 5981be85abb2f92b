/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * QEMU without libvirt, on the main loop. Why not on a worker like libvirt: libqmp never blocks, so
 * its sockets are just more fds of this loop. Only the globs, which may touch slow file systems,
 * are for a worker.
 */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>

#include "controller/daemon/daemon.h"
#include "controller/daemon/log.h"
#include "controller/host/threads.h"

struct find_job {
	struct daemon *d;
	struct qemu_paths paths;
	int result;
};

static void on_change(void *userdata)
{
	tick_soon(userdata);
}

static bool on_started(void *userdata, pid_t pid, uint64_t *ret_start_ticks)
{
	struct daemon *d = userdata;
	struct thread_stat st;

	if (thread_stat_read(&d->fs, pid, 0, &st) != 0)
		return false;
	*ret_start_ticks = st.start_ticks;
	return true;
}

/* The timer for the next deadline among the connections. */
static void arm(struct daemon *d)
{
	uint64_t deadline = qemus_deadline_ns(d->qemus);

	if (deadline == UINT64_MAX) {
		sd_event_source_set_enabled(d->qemus_timer, SD_EVENT_OFF);
		return;
	}
	sd_event_source_set_time(d->qemus_timer, deadline / 1000 + 1);
	sd_event_source_set_enabled(d->qemus_timer, SD_EVENT_ONESHOT);
}

static int on_io(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	struct daemon *d = userdata;

	qemus_process(d->qemus, daemon_now_ns());
	arm(d);
	return 0;
}

static int on_deadline(sd_event_source *source, uint64_t usec, void *userdata)
{
	return on_io(source, -1, 0, userdata);
}

int standalone_setup(struct daemon *d)
{
	struct qemus_config config = {.notify = on_change,
		.started = on_started,
		.userdata = d,
		.tick_ns = d->options.tick_ns};
	int r;

	/* on a captured host there is nobody to ask */
	if (!d->options.config.n_sources || !d->pages)
		return 0;
	/* a worker of its own: a directory on a file system that hangs must keep nothing else */
	r = worker_new(d->mainq, "finder", &d->finder);
	if (r == 0)
		r = qemus_new(&config, &d->qemus);
	if (r < 0)
		return r;
	r = sd_event_add_io(d->event, &d->qemus_io, qemus_fd(d->qemus), EPOLLIN, on_io, d);
	if (r >= 0)
		r = sd_event_add_time(d->event, &d->qemus_timer, CLOCK_MONOTONIC, UINT64_MAX, 1000,
			on_deadline, d);
	return r < 0 ? r : 0;
}

void standalone_teardown(struct daemon *d)
{
	d->qemus_io = sd_event_source_disable_unref(d->qemus_io);
	d->qemus_timer = sd_event_source_disable_unref(d->qemus_timer);
	d->qemus = qemus_free(d->qemus);
}

static void run_find(void *arg)
{
	struct find_job *j = arg;
	const struct config *c = &j->d->options.config;

	j->result = qemu_paths_find(c->source, c->n_sources, &j->paths);
}

static void done_find(void *arg)
{
	struct find_job *j = arg;
	struct daemon *d = j->d;

	d->finding = false;
	if (j->result == 0 && !d->stopping)
		j->result = qemus_ask(d->qemus, &j->paths, daemon_now_ns());
	if (j->result < 0)
		log_err("out of memory, this look at QMP sockets is left out");
	else
		arm(d);
	qemu_paths_clear(&j->paths);
	free(j);
}

void standalone_look(struct daemon *d)
{
	struct find_job *j;

	if (!d->qemus || d->finding)
		return;
	j = calloc(1, sizeof(*j));
	if (!j)
		return;
	j->d = d;
	if (worker_submit(d->finder, run_find, done_find, j) < 0)
		free(j);
	else
		d->finding = true;
}

int standalone_merge(struct daemon *d, struct virt_list *list)
{
	struct virt_list more = {0};
	int r;

	if (!d->qemus)
		return 0;
	r = qemus_list(d->qemus, daemon_now_ns(), &more);
	if (r == 0)
		r = virt_list_merge(list, &more);
	virt_list_clear(&more);
	return r;
}
