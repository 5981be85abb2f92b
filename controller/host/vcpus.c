/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Why cgroups first: libvirt makes one group per vCPU whatever QEMU calls its threads, and asking
 * for it taints nothing. Names exist only where QEMU runs with debug-threads=on.
 */
#include "controller/host/vcpus.h"

#include <errno.h>

#include "controller/host/parse.h"

#define VCPU_ID_MAX 65535u

void vcpu_threads_clear(struct vcpu_threads *v)
{
	free(v->vcpu);
	*v = (struct vcpu_threads){0};
}

static int add(struct vcpu_threads *v, unsigned id, pid_t tid)
{
	struct vcpu_thread *p;
	size_t at = v->n;

	for (size_t i = 0; i < v->n; i++)
		if (v->vcpu[i].id == id) {
			v->anomalies++; /* two threads for one vCPU: the first one stays */
			return 0;
		}
	p = reallocarray(v->vcpu, v->n + 1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	v->vcpu = p;
	for (; at > 0 && p[at - 1].id > id; at--)
		p[at] = p[at - 1];
	p[at] = (struct vcpu_thread){.id = id, .tid = tid};
	v->n++;
	return 0;
}

static int from_cgroup(const struct hostfs *fs, const struct thread_ids *ids,
	const struct vm_cgroup *cg, struct vcpu_threads *v)
{
	_cleanup_(cgroup_threads_clear) struct cgroup_threads threads = {0};
	int r = cgroup_threads_read(fs, cg, &threads);

	if (r != 0)
		return r;
	v->source = VCPUS_FROM_CGROUP;
	v->anomalies += threads.anomalies;
	for (size_t i = 0; r == 0 && i < threads.n; i++) {
		const struct cgroup_thread *t = &threads.thread[i];

		if (t->role != CGROUP_VCPU)
			continue;
		if (!thread_ids_has(ids, t->tid))
			v->anomalies++;
		else
			r = add(v, t->index, t->tid);
	}
	return r;
}

/* "CPU 3/KVM": true and the number. */
static bool vcpu_of_name(const char *comm, unsigned *ret_id)
{
	struct text t = text_of(comm, strlen(comm)), number, kind;

	return text_skip(&t, "CPU ") && text_cut(t, '/', &number, &kind) &&
	       (text_equal(kind, "KVM") || text_equal(kind, "TCG")) &&
	       parse_uint(number, VCPU_ID_MAX, ret_id);
}

static int from_names(
	const struct hostfs *fs, pid_t pid, const struct thread_ids *ids, struct vcpu_threads *v)
{
	int r = 0;

	v->source = VCPUS_FROM_NAMES;
	for (size_t i = 0; r == 0 && i < ids->n; i++) {
		char comm[THREAD_COMM_MAX];
		unsigned id;

		if (thread_comm_read(fs, pid, ids->tid[i], comm, sizeof(comm)) != 0)
			continue; /* it has just ended */
		if (strcmp(comm, "ALL CPUs/TCG") == 0) {
			v->one_for_all = true;
			r = add(v, 0, ids->tid[i]);
		} else if (vcpu_of_name(comm, &id)) {
			r = add(v, id, ids->tid[i]);
		}
	}
	return r;
}

int vcpu_threads_find(
	const struct hostfs *fs, pid_t pid, const struct vm_cgroup *cg, struct vcpu_threads *ret)
{
	_cleanup_thread_ids_ struct thread_ids ids = {0};
	_cleanup_(vcpu_threads_clear) struct vcpu_threads v = {0};
	int r;

	r = thread_ids_read(fs, pid, &ids);
	if (r != 0)
		return r;
	if (cg) {
		r = from_cgroup(fs, &ids, cg, &v);
		if (r < 0)
			return r;
	}
	if (!v.n) {
		r = from_names(fs, pid, &ids, &v);
		if (r < 0)
			return r;
	}
	if (!v.n)
		return HOST_E_NOT_FOUND;
	*ret = v;
	v = (struct vcpu_threads){0};
	return 0;
}

int vcpu_threads_check(const struct hostfs *fs, pid_t pid, const struct vcpu_thread *said, size_t n,
	struct vcpu_threads *ret)
{
	_cleanup_thread_ids_ struct thread_ids ids = {0};
	_cleanup_(vcpu_threads_clear) struct vcpu_threads v = {.source = VCPUS_FROM_QMP};
	int r;

	r = thread_ids_read(fs, pid, &ids);
	for (size_t i = 0; r == 0 && i < n; i++) {
		if (!thread_ids_has(&ids, said[i].tid))
			v.anomalies++;
		else
			r = add(&v, said[i].id, said[i].tid);
		for (size_t k = 0; k < i; k++)
			v.one_for_all |= said[k].tid == said[i].tid;
	}
	if (r != 0)
		return r;
	if (!v.n)
		return HOST_E_NOT_FOUND;
	*ret = v;
	v = (struct vcpu_threads){0};
	return 0;
}
