/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The set of QEMUs. All fds are in one epoll set, so that the daemon's loop has one fd and one time
 * to look at, whatever sockets come and go.
 */
#include "controller/virt/qemu.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "controller/virt/qemu-one.h"

#define ACTIVE_MAX 64u /* monitors that are being asked at a time: fds are limited */
#define EVENTS_AT_ONCE 64

struct qemus {
	struct qemu_host host;
	unsigned n;
	struct one_qemu **qemu; /* own; in the order of the paths, as far as they are listed */
	unsigned n_odd_paths;
	char odd_path[SNAPSHOT_TEXT_MAX];
};

int qemus_new(qemus_notify notify, void *userdata, struct qemus **ret)
{
	struct qemus *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	s->host.notify = notify;
	s->host.userdata = userdata;
	s->host.epoll = epoll_create1(EPOLL_CLOEXEC);
	if (s->host.epoll < 0) {
		r = -errno;
		free(s);
		return r;
	}
	*ret = s;
	return 0;
}

struct qemus *qemus_free(struct qemus *s)
{
	if (!s)
		return NULL;
	for (unsigned i = 0; i < s->n; i++)
		one_qemu_free(s->qemu[i]);
	free(s->qemu);
	close(s->host.epoll);
	free(s);
	return NULL;
}

/* Starts those whose turn it is. */
static void go_on(struct qemus *s)
{
	unsigned active = 0;

	for (unsigned i = 0; i < s->n; i++)
		active += one_qemu_is_active(s->qemu[i]);
	for (unsigned i = 0; i < s->n; i++) {
		struct one_qemu *e = s->qemu[i];

		if (e->wanted && active < ACTIVE_MAX) {
			one_qemu_ask(e);
			active += one_qemu_is_active(e);
		}
		one_qemu_watch(e);
	}
}

static struct one_qemu *find(const struct qemus *s, const char *path)
{
	for (unsigned i = 0; i < s->n; i++)
		if (strcmp(s->qemu[i]->path, path) == 0)
			return s->qemu[i];
	return NULL;
}

static int take_paths(struct qemus *s, const struct qemu_paths *paths)
{
	struct one_qemu **qemu = calloc((size_t)paths->n + s->n + 1, sizeof(struct one_qemu *));
	unsigned n = 0;

	if (!qemu)
		return -ENOMEM;
	for (unsigned i = 0; i < s->n; i++)
		s->qemu[i]->listed = false;
	for (unsigned i = 0; i < paths->n; i++) {
		struct one_qemu *e = find(s, paths->path[i].path);

		if (!e)
			e = one_qemu_new(&s->host, &paths->path[i]);
		if (!e)
			continue; /* out of memory: the next look tries again */
		e->listed = true;
		qemu[n++] = e;
	}
	for (unsigned i = 0; i < s->n; i++) {
		struct one_qemu *e = s->qemu[i];

		if (e->listed)
			continue;
		/* somebody removed the socket of a QEMU that we are still talking to */
		if (!e->share && qmp_state_of(e->q) == QMP_READY) {
			qemu[n++] = e;
			continue;
		}
		one_qemu_forget(e);
		one_qemu_free(e);
	}
	free(s->qemu);
	s->qemu = qemu;
	s->n = n;
	return 0;
}

int qemus_ask(struct qemus *s, const struct qemu_paths *paths, uint64_t now_ns)
{
	int r;

	s->host.now_ns = now_ns;
	r = take_paths(s, paths);
	if (r < 0)
		return r;
	s->n_odd_paths = paths->n_odd;
	memcpy(s->odd_path, paths->odd, sizeof(s->odd_path));
	for (unsigned i = 0; i < s->n; i++)
		s->qemu[i]->wanted = !one_qemu_is_active(s->qemu[i]);
	go_on(s);
	return 0;
}

int qemus_fd(const struct qemus *s)
{
	return s->host.epoll;
}

uint64_t qemus_deadline_ns(const struct qemus *s)
{
	uint64_t first = UINT64_MAX;

	for (unsigned i = 0; i < s->n; i++) {
		first = MIN2(first, qmp_deadline_ns(s->qemu[i]->q));
		first = MIN2(first, s->qemu[i]->again_ns);
	}
	return first;
}

void qemus_process(struct qemus *s, uint64_t now_ns)
{
	struct epoll_event events[EVENTS_AT_ONCE];
	int n;

	s->host.now_ns = now_ns;
	n = epoll_wait(s->host.epoll, events, EVENTS_AT_ONCE, 0);
	for (int i = 0; i < n; i++) {
		struct one_qemu *e = events[i].data.ptr;

		qmp_process(e->q, (short)events[i].events, now_ns);
	}
	for (unsigned i = 0; i < s->n; i++) {
		struct one_qemu *e = s->qemu[i];

		if (qmp_deadline_ns(e->q) <= now_ns)
			qmp_process(e->q, 0, now_ns);
		if (e->again_ns <= now_ns && !e->open && qmp_state_of(e->q) == QMP_READY)
			e->wanted = true;
		if (e->again_ns <= now_ns)
			e->again_ns = UINT64_MAX;
	}
	go_on(s);
}

static void note_odd(struct virt_list *l, const char *text)
{
	if (!l->n_odd++)
		snprintf(l->odd, sizeof(l->odd), "%.180s", text);
}

static const struct virt_vm *with_uuid(const struct virt_list *l, const char *uuid)
{
	for (unsigned i = 0; i < l->n_vms; i++)
		if (strcmp(l->vm[i].uuid, uuid) == 0)
			return &l->vm[i];
	return NULL;
}

static int list_one(const struct one_qemu *e, uint64_t now_ns, struct virt_list *l)
{
	char text[2 * SNAPSHOT_TEXT_MAX];
	const struct virt_vm *twin;

	if (!e->known || now_ns - e->answered_ns > QEMU_STALE_NS) {
		if (e->problem[0])
			note_odd(l, e->problem);
		return 0;
	}
	twin = with_uuid(l, e->vm.uuid);
	if (twin) {
		snprintf(text, sizeof(text), "%s: has the UUID of the VM at %s, give it its own",
			e->path, twin->socket);
		note_odd(l, text);
		return 0;
	}
	if (virt_vm_copy(&e->vm, &l->vm[l->n_vms]) < 0)
		return -ENOMEM;
	l->n_vms++;
	return 0;
}

int qemus_list(const struct qemus *s, uint64_t now_ns, struct virt_list *ret)
{
	struct virt_list l = {.n_odd = s->n_odd_paths};

	memcpy(l.odd, s->odd_path, sizeof(l.odd));
	l.vm = calloc(s->n ? s->n : 1, sizeof(*l.vm));
	if (!l.vm)
		return -ENOMEM;
	for (unsigned i = 0; i < s->n && l.n_vms < SNAPSHOT_VMS_MAX; i++) {
		if (list_one(s->qemu[i], now_ns, &l) < 0) {
			virt_list_clear(&l);
			return -ENOMEM;
		}
	}
	virt_list_sort(&l);
	virt_list_clear(ret);
	*ret = l;
	return 0;
}
