/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Theory of operation: a host is never still. A VM can end between two reads, a thread between two
 * files. So each VM is filled on its own, each of its parts on its own, and whatever is missing
 * leaves a sentence in the VM's `problem` instead of an error. Only a host without readable nodes
 * stops a tick.
 */
#include "controller/source/collect.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "controller/host/balancer.h"
#include "controller/host/cpustat.h"
#include "controller/host/threads.h"
#include "controller/host/vcpus.h"
#include "controller/source/collect-private.h"
#include "controller/source/sched.h"

struct observed *observed_free(struct observed *o)
{
	if (!o)
		return NULL;
	for (unsigned i = 0; i < o->n_vms; i++) {
		guestram_clear(&o->vm[i].ram);
		free(o->vm[i].affinity);
	}
	free(o->vm);
	free(o);
	return NULL;
}

static bool same_topology(const struct snapshot *a, const struct topology *b)
{
	if (!a || a->topology.n_nodes != b->n_nodes)
		return false;
	topology_foreach (n, b) {
		if (a->topology.node[n].id != b->node[n].id)
			return false;
	}
	return true;
}

static unsigned per_window(uint64_t now, uint64_t before, uint64_t window, uint64_t scale)
{
	if (!window || now <= before)
		return 0;
	return (unsigned)MIN2((now - before) * scale / window, UINT64_C(1000000));
}

static void fill_nodes(struct collecting *x)
{
	const struct snapshot *prev = x->same_nodes ? x->c->prev : NULL;
	struct cpustat cpus = {0};

	x->s->topology = x->nodes->topology;
	cpustat_read(x->c->fs, &x->s->topology, &cpus); /* unreadable: nodes look idle */
	topology_foreach (n, &x->s->topology) {
		struct snap_node *node = &x->s->node[n];
		const struct huge_pool *pool =
			nodes_pool(x->nodes, n, x->nodes->huge_default_bytes);
		unsigned n_cpus = idset_count(&x->s->topology.node[n].cpus);

		node->mem_total_bytes = x->nodes->memory[n].total_bytes;
		node->mem_free_bytes = x->nodes->memory[n].free_bytes;
		node->huge_free_bytes = pool ? pool->free_pages * pool->page_bytes : 0;
		node->busy_ticks = cpus.busy_ticks[n];
		node->all_ticks = cpus.all_ticks[n];
		if (prev && node->all_ticks > prev->node[n].all_ticks)
			node->busy_permille = per_window(node->busy_ticks, prev->node[n].busy_ticks,
				node->all_ticks - prev->node[n].all_ticks, 1000 * (uint64_t)n_cpus);
	}
}

static int fill_host(struct collecting *x)
{
	struct balancer b;
	int r;

	x->s->seq = x->c->prev ? x->c->prev->seq + 1 : 1;
	x->s->time_ns = x->c->now_ns;
	x->s->window_ns = x->c->prev ? x->c->now_ns - x->c->prev->time_ns : 0;
	r = nodes_read(x->c->fs, x->nodes);
	if (r != 0)
		return r;
	x->same_nodes = same_topology(x->c->prev, &x->nodes->topology);
	fill_nodes(x);
	r = balancer_read(x->c->fs, &b);
	if (r != 0)
		return r;
	x->s->balancing = b.mode;
	x->s->hint_faults = b.hint_faults;
	x->s->hint_faults_local = b.hint_faults_local;
	x->s->kernel_pages_migrated = b.pages_migrated;
	x->c->observed->cpus_online = x->nodes->cpus_online;
	x->c->observed->n_warnings = x->nodes->n_warnings;
	memcpy(x->c->observed->warning, x->nodes->warning, sizeof(x->nodes->warning));
	return 0;
}

/* The pid in libvirt's pid file. */
static int read_pid_file(struct collecting *x, const struct virt_vm *v, pid_t *ret)
{
	_cleanup_free_ char *text = NULL;
	unsigned pid = 0;
	size_t len;
	int r;

	r = hostfs_read(
		x->c->fs, HOST_LIMIT_SMALL, &text, &len, "run/libvirt/qemu/%s.pid", v->name);
	if (r != 0)
		return r;
	while (len && (text[len - 1] == '\n' || text[len - 1] == ' '))
		len--;
	for (size_t i = 0; i < len && pid < 100000000; i++) {
		if (text[i] < '0' || text[i] > '9')
			return HOST_E_FORMAT;
		pid = pid * 10 + (unsigned)(text[i] - '0');
	}
	*ret = (pid_t)pid;
	return 0;
}

/*
 * The QEMU process of a VM: by libvirt's pid file, checked by the UUID in its command line; or the
 * one that listens on its QMP socket.
 */
static int find_process(struct collecting *x, const struct virt_vm *v, struct snap_vm *vm)
{
	_cleanup_free_ char *cmdline = NULL;
	pid_t pid = v->pid;
	struct thread_stat st;
	size_t cmdlen;
	int r = 0;

	if (v->manager == VIRT_LIBVIRT)
		r = read_pid_file(x, v, &pid);
	if (r == 0)
		r = thread_stat_read(x->c->fs, pid, 0, &st);
	if (r == 0)
		r = thread_cmdline_read(x->c->fs, pid, &cmdline, &cmdlen);
	if (r != 0)
		return r;
	if (v->manager == VIRT_LIBVIRT && !memmem(cmdline, cmdlen, v->uuid, strlen(v->uuid)))
		return HOST_E_NOT_FOUND;
	if (v->manager == VIRT_QMP && st.start_ticks != v->start_ticks)
		return HOST_E_GONE; /* its number was used again */
	/* libvirt's XML says so; a bare QEMU has it on its command line */
	if (v->manager == VIRT_QMP && memmem(cmdline, cmdlen, "vfio-pci", strlen("vfio-pci")))
		snprintf(vm->memory_fixed_why, sizeof(vm->memory_fixed_why),
			"a passed-through PCI device (VFIO) holds its memory");
	vm->pid = pid;
	vm->start_ticks = st.start_ticks;
	return 0;
}

static void fill_allowed(struct collecting *x, const struct vm_cgroup *cg, const struct virt_vm *v,
	struct snap_vm *vm)
{
	struct cgroup_allowed allowed = {0};

	vm->allowed_cpus = x->nodes->cpus_online;
	topology_foreach (n, &x->s->topology) {
		/* memory-only nodes only where a policy lists them */
		if (x->s->topology.node[n].has_memory && x->s->topology.node[n].has_cpu)
			idset_add(&vm->allowed_mems, x->s->topology.node[n].id);
	}
	if (cg && cgroup_allowed_read(
			  x->c->fs, cg, &x->nodes->cpus_online, &x->nodes->online, &allowed) == 0) {
		idset_and(&vm->allowed_cpus, &allowed.cpus);
		idset_and(&vm->allowed_mems, &allowed.mems);
		cgroup_allowed_clear(&allowed);
	}
	/* nothing balances load inside isolated CPUs: a floating mask must not hold them */
	idset_andnot(&vm->allowed_cpus, &x->nodes->cpus_isolated);
	if (v->numatune_strict && v->has_nodeset)
		idset_and(&vm->allowed_mems, &v->nodeset);
}

static const struct snap_vcpu *same_vcpu(const struct snap_vm *prev, unsigned id, pid_t tid)
{
	for (unsigned i = 0; prev && i < prev->n_vcpus; i++)
		if (prev->vcpu[i].id == id && prev->vcpu[i].tid == tid)
			return &prev->vcpu[i];
	return NULL;
}

static void fill_run_time(
	struct collecting *x, pid_t pid, const struct snap_vcpu *before, struct snap_vcpu *vcpu)
{
	struct thread_schedstat ss;

	vcpu->idle = true;
	if (thread_schedstat_read(x->c->fs, pid, vcpu->tid, &ss) != 0)
		return;
	vcpu->run_ns = ss.run_ns;
	vcpu->wait_ns = ss.wait_ns;
	vcpu->idle = before ? ss.run_ns == before->run_ns : ss.run_ns == 0;
	if (!before)
		return;
	vcpu->run_permille = per_window(ss.run_ns, before->run_ns, x->s->window_ns, 1000);
	vcpu->wait_permille = per_window(ss.wait_ns, before->wait_ns, x->s->window_ns, 1000);
}

/* One vCPU thread. *fresh and *denied are updated. */
static int fill_vcpu(struct collecting *x, const struct snap_vm *vm, const struct snap_vm *prev,
	struct snap_vcpu *vcpu, struct idset *affinity, bool *fresh, bool *denied)
{
	const struct snap_vcpu *before = same_vcpu(prev, vcpu->id, vcpu->tid);
	struct thread_status status;
	struct thread_stat st;
	struct fault_reading reading;
	int r;

	if (thread_stat_read(x->c->fs, vm->pid, vcpu->tid, &st) != 0) {
		vcpu->tid = 0; /* it has just ended: as good as unplugged */
		vcpu->idle = true;
		return 0;
	}
	vcpu->node =
		st.last_cpu < 0 ? -1 : topology_node_of_cpu(&x->s->topology, (unsigned)st.last_cpu);
	fill_run_time(x, vm->pid, before, vcpu);
	if (thread_status_read(x->c->fs, vm->pid, vcpu->tid, &status) == 0 && status.has_cpus)
		*affinity = status.cpus;
	r = source_sched_read(x->c->fs, vm->pid, vcpu->tid, &x->s->topology, &x->nodes->online,
		x->value, &reading);
	if (r < 0)
		return r;
	*denied &= reading.state == READING_NO_PERMISSION;
	*fresh |= fold_vcpu(x->s->topology.n_nodes, x->same_nodes ? before : NULL, &reading, vcpu);
	return 0;
}

/*
 * Which threads are the VM's vCPUs: by cgroups or names where libvirt runs it, and by what its QEMU
 * said, if it was asked.
 */
static int find_threads(struct collecting *x, const struct vm_cgroup *cg, const struct virt_vm *v,
	const struct snap_vm *vm, struct vcpu_threads *ret)
{
	int r = HOST_E_NOT_FOUND;

	if (v->manager == VIRT_LIBVIRT || !v->n_threads)
		r = vcpu_threads_find(x->c->fs, vm->pid, cg, ret);
	if (r > 0 && v->n_threads)
		r = vcpu_threads_check(x->c->fs, vm->pid, v->thread, v->n_threads, ret);
	return r;
}

/* Reasons why a QEMU that was found by its socket must be left alone. */
static void check_bare(struct collecting *x, const struct virt_vm *v, struct snap_vm *vm)
{
	pid_t libvirts = 0;

	if (v->manager != VIRT_QMP)
		return;
	if (v->silent[0])
		memcpy(vm->problem, v->silent, sizeof(vm->problem));
	/* libvirt knows it, and has only not been asked yet, or is down */
	if (read_pid_file(x, v, &libvirts) == 0 && libvirts == vm->pid)
		snprintf(vm->problem, sizeof(vm->problem),
			"it is libvirt's, which does not answer now");
}

static int fill_vcpus(struct collecting *x, const struct vm_cgroup *cg, const struct virt_vm *v,
	const struct snap_vm *prev, struct snap_vm *vm, struct observed_vm *obs)
{
	_cleanup_(vcpu_threads_clear) struct vcpu_threads threads = {0};
	bool fresh = false, denied;
	int r;

	r = find_threads(x, cg, v, vm, &threads);
	if (r < 0)
		return r;
	obs->needs_monitor = v->manager == VIRT_LIBVIRT &&
			     (r == HOST_E_NOT_FOUND || threads.source == VCPUS_FROM_QMP);
	if (r > 0 || !threads.n || threads.one_for_all) {
		snprintf(vm->problem, sizeof(vm->problem),
			"its vCPU threads cannot be told apart from QEMU's other threads%s",
			threads.one_for_all ? " (single-threaded emulation)" : "");
		return snap_vm_alloc(vm, 0, x->s->topology.n_nodes);
	}
	r = snap_vm_alloc(
		vm, (unsigned)MIN2(threads.n, (size_t)SNAPSHOT_VCPUS_MAX), x->s->topology.n_nodes);
	if (r < 0)
		return r;
	obs->affinity = calloc(vm->n_vcpus, sizeof(*obs->affinity));
	if (!obs->affinity)
		return -ENOMEM;
	denied = true;
	for (unsigned i = 0; r >= 0 && i < vm->n_vcpus; i++) {
		vm->vcpu[i].id = threads.vcpu[i].id;
		vm->vcpu[i].tid = threads.vcpu[i].tid;
		r = fill_vcpu(x, vm, prev, &vm->vcpu[i], &obs->affinity[i], &fresh, &denied);
	}
	fold_data_state(x->c->settings, x->s, prev, fresh, denied, vm);
	return r;
}

/* Returns HOST_E_GONE if the VM has ended meanwhile. */
static int fill_vm(
	struct collecting *x, const struct virt_vm *v, struct snap_vm *vm, struct observed_vm *obs)
{
	_cleanup_(vm_cgroup_clear) struct vm_cgroup cg = {0};
	const struct snap_vm *prev;
	bool has_cgroup;
	int r;

	memcpy(vm->uuid, v->uuid, sizeof(vm->uuid));
	memcpy(vm->name, v->name, sizeof(vm->name));
	vm->condition = v->condition;
	vm->ram_bytes = v->ram_bytes;
	r = find_process(x, v, vm);
	if (r < 0 || (r == HOST_E_GONE && v->manager == VIRT_QMP))
		return r;
	if (r > 0) {
		if (v->manager == VIRT_QMP)
			snprintf(vm->problem, sizeof(vm->problem),
				"its QEMU process cannot be looked at (%s)", host_strerror(r));
		else
			snprintf(vm->problem, sizeof(vm->problem),
				"its QEMU process was not found (run/libvirt/qemu/%.60s.pid: %s)",
				v->name, host_strerror(r));
		return snap_vm_alloc(vm, 0, x->s->topology.n_nodes);
	}
	obs->pid = vm->pid;
	obs->start_ticks = vm->start_ticks;
	prev = x->same_nodes ? snapshot_find(x->c->prev, vm->uuid, vm->pid, vm->start_ticks) : NULL;
	has_cgroup = vm_cgroup_find(x->c->fs, vm->pid, &cg) == 0;
	fill_allowed(x, has_cgroup ? &cg : NULL, v, vm);
	r = fill_vcpus(x, has_cgroup ? &cg : NULL, v, prev, vm, obs);
	if (r < 0)
		return r;
	collect_memory(x, v, vm, obs);
	check_bare(x, v, vm);
	collect_fixed_memory(v, obs->bound, vm);
	fold_moved_memory(x->s->topology.n_nodes, prev, vm);
	return thread_stat_read(x->c->fs, vm->pid, 0, &(struct thread_stat){0}) == HOST_E_GONE
		       ? HOST_E_GONE
		       : 0;
}

static int fill_vms(struct collecting *x)
{
	const struct virt_list *list = x->c->vms;
	struct observed *o = x->c->observed;
	size_t n = list->n_vms ? list->n_vms : 1;

	x->s->vm = calloc(n, sizeof(*x->s->vm));
	o->vm = calloc(n, sizeof(*o->vm));
	if (!x->s->vm || !o->vm)
		return -ENOMEM;
	for (unsigned i = 0; i < list->n_vms; i++) {
		struct snap_vm *vm = &x->s->vm[x->s->n_vms];
		struct observed_vm *obs = &o->vm[o->n_vms];
		int r = fill_vm(x, &list->vm[i], vm, obs);

		x->s->n_vms++;
		o->n_vms++;
		if (r < 0)
			return r;
		if (r > 0) { /* it vanished: take it back */
			snap_vm_clear(vm);
			guestram_clear(&obs->ram);
			free(obs->affinity);
			memset(obs, 0, sizeof(*obs));
			x->s->n_vms--;
			o->n_vms--;
		}
	}
	return 0;
}

int collect_run(struct collect *c)
{
	_cleanup_free_ struct host_nodes *nodes = calloc(1, sizeof(*nodes));
	_cleanup_free_ uint64_t *value =
		calloc((size_t)TOPOLOGY_NODES_MAX * FAULT_KINDS, sizeof(*value));
	_cleanup_snapshot_ struct snapshot *s = snapshot_new();
	struct collecting x = {.c = c, .nodes = nodes, .s = s, .value = value};
	int r;

	c->snapshot = NULL;
	c->observed = calloc(1, sizeof(*c->observed));
	if (!nodes || !value || !s || !c->observed) {
		c->observed = observed_free(c->observed);
		return -ENOMEM;
	}
	r = fill_host(&x);
	if (r == 0)
		r = fill_vms(&x);
	if (r != 0) {
		c->observed = observed_free(c->observed);
		return r;
	}
	c->snapshot = TAKE_PTR(s);
	return 0;
}
