/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Why the conditions are asked again between batches: a move takes seconds to minutes, and the host
 * that was looked at before it began is not the host it runs on.
 */
#include "controller/daemon/moves.h"

#include <errno.h>
#include <string.h>

#include "controller/host/parse.h"
#include "controller/host/threads.h"

struct move_task {
	struct moves *moves;
	struct mover_job job;
	char uuid[SNAPSHOT_UUID_LEN];
	pid_t pid;
	uint64_t start_ticks;
	int result;
};

struct moves {
	struct moves_config config;
	unsigned n_vms;
	struct moves_vm *vm;
};

int moves_new(const struct moves_config *config, struct moves **ret)
{
	struct moves *m = calloc(1, sizeof(*m));

	if (!m)
		return -ENOMEM;
	m->config = *config;
	*ret = m;
	return 0;
}

static struct move_task *task_free(struct move_task *t)
{
	if (!t)
		return NULL;
	free(t->job.ram.range);
	free(t);
	return NULL;
}

struct moves *moves_free(struct moves *m)
{
	if (!m)
		return NULL;
	/* the worker has stopped: what still hangs here was never run */
	for (unsigned i = 0; i < m->n_vms; i++)
		task_free(m->vm[i].task);
	free(m->vm);
	free(m);
	return NULL;
}

static uint64_t node_free_bytes(const struct hostfs *fs, unsigned id)
{
	_cleanup_free_ char *text = NULL;
	struct text rest, line, word;
	size_t len;
	uint64_t kb;

	if (hostfs_read(fs, HOST_LIMIT_SMALL, &text, &len, "sys/devices/system/node/node%u/meminfo",
		    id) != 0)
		return 0;
	rest = text_of(text, len);
	while (text_line(&rest, &line, NULL))
		while (text_word(&line, &word))
			if (text_equal(word, "MemFree:"))
				return text_word(&line, &word) &&
						       parse_u64(word, UINT64_MAX / 1024, &kb)
					       ? kb * 1024
					       : 0;
	return 0;
}

/* On the mover's thread, between batches. */
static bool may_go_on(void *userdata)
{
	struct move_task *t = userdata;
	const struct moves_config *c = &t->moves->config;
	struct thread_stat st;

	return thread_stat_read(c->fs, t->pid, 0, &st) == 0 && st.start_ticks == t->start_ticks &&
	       node_free_bytes(c->fs, t->job.target) > c->reserve_bytes;
}

static void run_task(void *arg)
{
	struct move_task *t = arg;

	t->result = mover_run(&t->job);
}

static struct moves_vm *find(struct moves *m, const char *uuid, pid_t pid, uint64_t start_ticks)
{
	for (unsigned i = 0; i < m->n_vms; i++)
		if (m->vm[i].pid == pid && m->vm[i].start_ticks == start_ticks &&
			strcmp(m->vm[i].uuid, uuid) == 0)
			return &m->vm[i];
	return NULL;
}

static void finish_task(void *arg)
{
	struct move_task *t = arg;
	struct moves *m = t->moves;
	struct moves_vm *e = find(m, t->uuid, t->pid, t->start_ticks);

	if (e) {
		e->active = false;
		e->task = NULL;
		e->ended = true;
		e->end = t->result < 0 ? MOVE_STOPPED : t->job.end;
		e->moved_pages += t->job.moved_pages;
		for (unsigned i = 0; i < MOVE_FAILURES; i++)
			e->failed_pages[i] += t->job.failed_pages[i];
		e->longest_call_ns = MAX2(e->longest_call_ns, t->job.longest_call_ns);
	}
	task_free(t);
	if (e)
		m->config.done(m->config.userdata, e);
}

static struct moves_vm *entry(struct moves *m, const struct snap_vm *vm)
{
	struct moves_vm *e = find(m, vm->uuid, vm->pid, vm->start_ticks), *grown;

	if (e)
		return e;
	grown = reallocarray(m->vm, m->n_vms + 1, sizeof(*grown));
	if (!grown)
		return NULL;
	m->vm = grown;
	e = &m->vm[m->n_vms++];
	memset(e, 0, sizeof(*e));
	memcpy(e->uuid, vm->uuid, sizeof(e->uuid));
	memcpy(e->name, vm->name, sizeof(e->name));
	e->pid = vm->pid;
	e->start_ticks = vm->start_ticks;
	return e;
}

int moves_start(struct moves *m, const struct snap_vm *vm, const struct guestram *ram,
	unsigned target_id, uint64_t want_bytes)
{
	struct moves_vm *e = entry(m, vm);
	struct move_task *t;
	int r;

	if (!e)
		return -ENOMEM;
	if (e->active)
		return -EBUSY;
	t = calloc(1, sizeof(*t));
	if (!t)
		return -ENOMEM;
	t->moves = m;
	memcpy(t->uuid, vm->uuid, sizeof(t->uuid));
	t->pid = vm->pid;
	t->start_ticks = vm->start_ticks;
	t->job.ops = m->config.ops;
	t->job.pid = vm->pid;
	t->job.target = target_id;
	t->job.rate_bytes = m->config.rate_bytes;
	t->job.batch_pages = m->config.batch_pages;
	t->job.may_go_on = may_go_on;
	t->job.userdata = t;
	r = mover_take_ranges(&t->job, ram);
	if (r == 0)
		r = worker_submit(m->config.worker, run_task, finish_task, t);
	if (r < 0) {
		task_free(t);
		return r;
	}
	e->active = true;
	e->target = target_id;
	e->want_bytes = want_bytes;
	e->task = t;
	return 0;
}

void moves_cancel(struct moves *m, const char *uuid)
{
	for (unsigned i = 0; i < m->n_vms; i++)
		if (m->vm[i].active && strcmp(m->vm[i].uuid, uuid) == 0)
			atomic_store(&m->vm[i].task->job.cancel, true);
}

void moves_cancel_all(struct moves *m)
{
	for (unsigned i = 0; m && i < m->n_vms; i++)
		if (m->vm[i].active)
			atomic_store(&m->vm[i].task->job.cancel, true);
}

unsigned moves_active(const struct moves *m)
{
	unsigned n = 0;

	for (unsigned i = 0; i < m->n_vms; i++)
		n += m->vm[i].active;
	return n;
}

const struct moves_vm *moves_find(
	const struct moves *m, const char *uuid, pid_t pid, uint64_t start_ticks)
{
	for (unsigned i = 0; i < m->n_vms; i++)
		if (m->vm[i].pid == pid && m->vm[i].start_ticks == start_ticks &&
			strcmp(m->vm[i].uuid, uuid) == 0)
			return &m->vm[i];
	return NULL;
}

uint64_t moves_progress_bytes(const struct moves_vm *vm)
{
	return vm->task ? atomic_load(&vm->task->job.moved_bytes) : 0;
}

void moves_drop_gone(struct moves *m, const struct snapshot *s)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < m->n_vms; i++)
		if (m->vm[i].active ||
			snapshot_find(s, m->vm[i].uuid, m->vm[i].pid, m->vm[i].start_ticks))
			m->vm[kept++] = m->vm[i];
	m->n_vms = kept;
}
