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
	uint64_t last_id;
	unsigned cursor; /* whose turn it is: hung monitors must not keep the others waiting */
	unsigned n;
	struct one_qemu **qemu; /* own; in the order of the paths, as far as they are listed */
	unsigned n_odd_paths;
	char odd_path[SNAPSHOT_TEXT_MAX];
};

static bool uuid_taken(const struct qemu_host *host, const struct one_qemu *e, const char *uuid)
{
	const struct qemus *s = host->set;

	for (unsigned i = 0; i < s->n; i++)
		if (s->qemu[i] != e && s->qemu[i]->known && strcmp(s->qemu[i]->vm.uuid, uuid) == 0)
			return true;
	return false;
}

int qemus_new(const struct qemus_config *config, struct qemus **ret)
{
	struct qemus *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	s->host = (struct qemu_host){.config = *config, .uuid_taken = uuid_taken, .set = s};
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
	for (unsigned i = 0; i < s->n && active < ACTIVE_MAX; i++) {
		struct one_qemu *e = s->qemu[s->cursor % s->n];

		s->cursor = (s->cursor + 1) % s->n;
		if (!e->wanted)
			continue;
		one_qemu_ask(e);
		active += one_qemu_is_active(e);
	}
	for (unsigned i = 0; i < s->n; i++)
		one_qemu_watch(s->qemu[i]);
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
	unsigned n = 0, held = 0;

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
		if (!e->id)
			e->id = ++s->last_id;
		/* fds are not without end */
		e->share = paths->path[i].share || held >= QEMU_HELD_MAX;
		held += !e->share;
		e->listed = true;
		qemu[n++] = e;
	}
	for (unsigned i = 0; i < s->n; i++) {
		struct one_qemu *e = s->qemu[i];

		if (e->listed)
			continue;
		/* somebody removed the socket of a QEMU that runs on, or not all could be looked at
		 */
		if ((e->known && !one_qemu_is_gone(e)) || paths->incomplete)
			qemu[n++] = e;
		else
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
	for (unsigned i = 0; i < s->n; i++) {
		struct one_qemu *e = s->qemu[i];

		if (e->problem[0])
			one_qemu_is_gone(e);
		e->wanted = !one_qemu_is_active(e) && e->not_before_ns <= now_ns;
	}
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
		if (!s->qemu[i]->open) /* until the answers are in, it has to wait */
			first = MIN2(first, s->qemu[i]->again_ns);
	}
	return first;
}

static struct one_qemu *with_id(const struct qemus *s, uint64_t id)
{
	for (unsigned i = 0; i < s->n; i++)
		if (s->qemu[i]->id == id)
			return s->qemu[i];
	return NULL;
}

void qemus_process(struct qemus *s, uint64_t now_ns)
{
	struct epoll_event events[EVENTS_AT_ONCE];
	int n;

	s->host.now_ns = now_ns;
	n = epoll_wait(s->host.epoll, events, EVENTS_AT_ONCE, 0);
	for (int i = 0; i < n; i++) {
		struct one_qemu *e = with_id(s, events[i].data.u64);

		if (e)
			qmp_process(e->q, (short)events[i].events, now_ns);
	}
	for (unsigned i = 0; i < s->n; i++) {
		struct one_qemu *e = s->qemu[i];

		if (qmp_deadline_ns(e->q) <= now_ns)
			qmp_process(e->q, 0, now_ns);
		if (e->again_ns > now_ns || e->open) /* asked once more when the answers are in */
			continue;
		e->wanted |= qmp_state_of(e->q) == QMP_READY;
		e->again_ns = UINT64_MAX;
	}
	go_on(s);
}

static void note_odd(struct virt_list *l, const char *text)
{
	if (!l->n_odd++)
		snprintf(l->odd, sizeof(l->odd), "%.180s", text);
}

static bool has_process(const struct virt_list *l, pid_t pid)
{
	for (unsigned i = 0; i < l->n_vms; i++)
		if (l->vm[i].pid == pid)
			return true;
	return false;
}

static int list_one(
	const struct qemus *s, const struct one_qemu *e, uint64_t now_ns, struct virt_list *l)
{
	uint64_t stale = MAX2(QEMU_STALE_NS, 2 * s->host.config.tick_ns + QEMU_ANSWER_NS);
	struct virt_vm *vm = &l->vm[l->n_vms];

	if (!e->known) {
		if (e->problem[0])
			note_odd(l, e->problem);
		return 0;
	}
	if (has_process(l, e->vm.pid)) /* the same QEMU by another of its sockets */
		return 0;
	if (virt_vm_copy(&e->vm, vm) < 0)
		return -ENOMEM;
	l->n_vms++;
	if (now_ns - e->answered_ns > stale)
		snprintf(vm->silent, sizeof(vm->silent),
			"its monitor is silent for %llu s (%.130s)",
			(unsigned long long)((now_ns - e->answered_ns) / 1000000000),
			e->problem[0] ? e->problem : "no answer");
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
		if (list_one(s, s->qemu[i], now_ns, &l) < 0) {
			virt_list_clear(&l);
			return -ENOMEM;
		}
	}
	virt_list_sort(&l);
	virt_list_clear(ret);
	*ret = l;
	return 0;
}
