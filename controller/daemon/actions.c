/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Theory of operation: an action is first noted (history, book of pins), then done, so that
 * whatever happens in between is known to be ours. vCPUs go first, on the libvirt worker; memory
 * follows on the mover when all pins are in place. What fails is noted back and waits for the
 * cooldown.
 */
#include <stdio.h>
#include <string.h>

#include "controller/act/affinity.h"
#include "controller/daemon/daemon.h"
#include "controller/daemon/log.h"
#include "policy/explain.h"

struct pin_call {
	unsigned vcpu;
	pid_t tid; /* VIRT_QMP only: libvirt finds its own */
	struct idset cpus;
};

struct pin_job {
	struct daemon *d;
	enum virt_manager manager;
	char uuid[SNAPSHOT_UUID_LEN];
	char name[SNAPSHOT_NAME_MAX];
	pid_t pid;
	uint64_t start_ticks;
	unsigned n_calls;
	struct pin_call *call; /* own */
	bool reapply;          /* puts back what we had asked for */
	bool adopt;            /* vCPUs that were plugged in since */
	bool restore;          /* gives back what the VM had */
	int home_before;       /* for noting back a failure */
	uint64_t move_bytes;   /* memory to move afterwards */
	unsigned target_id;
	/* out */
	int result;
	unsigned done;
	char error[SNAPSHOT_TEXT_MAX];
};

static const struct virt_vm *virt_of(const struct daemon *d, const char *uuid)
{
	for (unsigned i = 0; i < d->vms.n_vms; i++)
		if (strcmp(d->vms.vm[i].uuid, uuid) == 0)
			return &d->vms.vm[i];
	return NULL;
}

static int pin_bare(struct pin_job *j, const struct pin_call *c)
{
	struct affinity_thread thread = {
		.pid = j->pid, .start_ticks = j->start_ticks, .tid = c->tid};
	int r = affinity_set(&j->d->fs, affinity_kernel, &thread, &c->cpus, j->error);

	return r == AFFINITY_E_GONE ? VIRT_E_GONE : r == 0 ? 0 : VIRT_E_REFUSED;
}

static void run_pins(void *arg)
{
	struct pin_job *j = arg;
	unsigned gone = 0;

	for (j->done = 0; j->done < j->n_calls; j->done++) {
		const struct pin_call *c = &j->call[j->done];

		if (j->manager == VIRT_QMP)
			j->result = pin_bare(j, c);
		else
			j->result =
				virt_session_pin_vcpu(j->d->session, j->uuid, c->vcpu, &c->cpus);
		/* one vCPU that was unplugged meanwhile; the others are there */
		gone += j->result == VIRT_E_GONE;
		if (j->result != 0 && !(j->manager == VIRT_QMP && j->result == VIRT_E_GONE))
			break;
	}
	if (j->done == j->n_calls)
		j->result = gone && gone == j->n_calls ? VIRT_E_GONE : 0;
	if (j->result != 0 && j->manager == VIRT_LIBVIRT)
		snprintf(j->error, sizeof(j->error), "%s", virt_session_error(j->d->session));
}

static struct pin_job *job_free(struct pin_job *j)
{
	if (j)
		free(j->call);
	free(j);
	return NULL;
}

static struct pin_job *job_new(
	struct daemon *d, const struct snap_vm *vm, const struct virt_vm *v, unsigned n_calls)
{
	struct pin_job *j = calloc(1, sizeof(*j));

	if (!j)
		return NULL;
	j->call = calloc(n_calls ? n_calls : 1, sizeof(*j->call));
	if (!j->call)
		return job_free(j);
	j->d = d;
	j->manager = v->manager;
	memcpy(j->uuid, vm->uuid, sizeof(j->uuid));
	memcpy(j->name, vm->name, sizeof(j->name));
	j->pid = vm->pid;
	j->start_ticks = vm->start_ticks;
	return j;
}

/* @id: of a vCPU that is plugged in; others are passed over, since a thread that is gone has no
 * mask. */
static void add_call(
	struct pin_job *j, const struct snap_vm *vm, unsigned id, const struct idset *cpus)
{
	for (unsigned i = 0; i < vm->n_vcpus; i++)
		if (vm->vcpu[i].id == id && vm->vcpu[i].tid)
			j->call[j->n_calls++] = (struct pin_call){
				.vcpu = id, .tid = vm->vcpu[i].tid, .cpus = *cpus};
}

static struct vm_history *history_of(struct daemon *d, const char *uuid, pid_t pid)
{
	struct vm_history *h = history_find(&d->history, uuid);

	return h && h->pid == pid ? h : NULL;
}

/* The move after the pins; the VM may have changed or gone since they were handed out. */
static void start_move(struct daemon *d, const struct pin_job *j)
{
	struct vm_history *h = history_of(d, j->uuid, j->pid);
	int r = -1;

	for (unsigned i = 0; d->snapshot && i < d->snapshot->n_vms; i++) {
		const struct snap_vm *vm = &d->snapshot->vm[i];

		if (strcmp(vm->uuid, j->uuid) != 0 || vm->pid != j->pid)
			continue;
		r = moves_start(d->moves, vm, &d->observed->vm[i].ram, j->target_id, j->move_bytes);
	}
	if (r == 0)
		log_notice("VM '%s': moving %llu MiB to node %u", j->name,
			(unsigned long long)(j->move_bytes >> 20), j->target_id);
	if (h)
		h->moving = r == 0;
}

static void note_failure(struct daemon *d, struct pin_job *j)
{
	struct vm_history *h = history_of(d, j->uuid, j->pid);

	if (j->result == VIRT_E_GONE)
		log_info("VM '%s' ended before it could be pinned", j->name);
	else
		log_warning(
			"VM '%s': vCPU %u was not pinned (%s), leaving it and trying again after "
			"the cooldown",
			j->name, j->call[j->done].vcpu, j->error);
	if (!h || j->reapply || j->adopt)
		return;
	h->moving = false;
	h->home_changes -= h->home_changes > 0 && h->home != j->home_before;
	h->home = j->home_before;
}

static void done_pins(void *arg)
{
	struct pin_job *j = arg;
	struct daemon *d = j->d;
	struct pins_vm *e = pins_find(&d->pins, j->uuid, j->pid, j->start_ticks);

	if (e) {
		e->pending = false;
		e->settled_ns = daemon_now_ns();
		/* what was not done was not asked for, unless it had been before */
		for (unsigned i = j->done; i < j->n_calls && !j->reapply && !j->restore; i++)
			for (unsigned k = 0; k < e->n_vcpus; k++)
				if (e->vcpu[k].id == j->call[i].vcpu)
					e->vcpu[k].asked_for = false;
		e->adoptions_failed += j->adopt && j->result != 0;
	}
	if (j->restore) {
		d->restores--;
		if (j->result == 0)
			log_notice(
				"VM '%s': gave %u vCPUs back the masks they had", j->name, j->done);
		else
			log_warning("VM '%s': vCPU %u keeps our mask: %s", j->name,
				j->call[MIN2(j->done, j->n_calls - 1)].vcpu, j->error);
	} else if (j->result != 0) {
		note_failure(d, j);
	} else {
		d->last_action_ns = daemon_now_ns();
		if (j->move_bytes && !d->stopping)
			start_move(d, j);
	}
	job_free(j);
	if (d->stopping && !d->restores)
		sd_event_exit(d->event, 0);
}

static int submit(struct daemon *d, struct pin_job *j, struct pins_vm *e)
{
	/* a libvirt that hangs must not keep bare QEMUs waiting */
	int r = worker_submit(
		j->manager == VIRT_QMP ? d->collector : d->virt, run_pins, done_pins, j);

	if (r < 0) {
		job_free(j);
		return r;
	}
	if (e)
		e->pending = true;
	return 0;
}

/* Asks again for what had been asked. */
static void reapply(struct daemon *d, const struct snap_vm *vm, struct pins_vm *e)
{
	const struct virt_vm *v = virt_of(d, vm->uuid);
	struct pin_job *j = v ? job_new(d, vm, v, e->n_vcpus) : NULL;

	if (!j)
		return;
	j->reapply = true;
	for (unsigned i = 0; i < e->n_vcpus; i++)
		if (e->vcpu[i].asked_for)
			add_call(j, vm, e->vcpu[i].id, &e->vcpu[i].asked);
	e->reapplied++;
	submit(d, j, e);
}

/* The mask a vCPU has before we touch it: libvirt's for it, else that of its thread. */
static const struct idset *mask_before(
	const struct virt_vm *v, const struct observed_vm *o, const struct snap_vm *vm, unsigned i)
{
	return vm->vcpu[i].id < v->n_pins ? &v->pin[vm->vcpu[i].id] : &o->affinity[i];
}

static unsigned plugged_vcpus(const struct snap_vm *vm)
{
	unsigned n = 0;

	for (unsigned i = 0; i < vm->n_vcpus; i++)
		n += vm->vcpu[i].tid > 0;
	return n;
}

/*
 * vCPUs that were plugged in since the VM was placed: they go where the others are, whose mask is
 * the home's.
 */
static void adopt_new_vcpus(struct daemon *d, unsigned index)
{
	const struct snap_vm *vm = &d->snapshot->vm[index];
	const struct vm_history *h = history_of(d, vm->uuid, vm->pid);
	struct pins_vm *e = pins_find(&d->pins, vm->uuid, vm->pid, vm->start_ticks);
	const struct virt_vm *v = virt_of(d, vm->uuid);
	struct pin_job *j;
	struct idset cpus;
	int home =
		h && h->home >= 0 ? topology_index(&d->snapshot->topology, (unsigned)h->home) : -1;

	if (!e || e->pending || e->adoptions_failed >= PINS_REAPPLY_MAX || home < 0 || h->split ||
		h->left_alone || !v || vm->condition != VM_RUNNING ||
		(v->manager == VIRT_LIBVIRT && !d->connected))
		return;
	decide_target_cpus(d->snapshot, vm, (unsigned)home, &cpus);
	if (idset_count(&cpus) < plugged_vcpus(vm)) /* it has outgrown its home */
		return;
	j = job_new(d, vm, v, vm->n_vcpus);
	if (!j)
		return;
	j->adopt = true;
	for (unsigned i = 0; i < vm->n_vcpus; i++) {
		if (!vm->vcpu[i].tid || pins_know(e, vm->vcpu[i].id) ||
			pins_ask(&d->pins, vm, vm->vcpu[i].id,
				mask_before(v, &d->observed->vm[index], vm, i), &cpus) < 0)
			continue;
		log_notice("VM '%s': new vCPU %u joins the others", vm->name, vm->vcpu[i].id);
		add_call(j, vm, vm->vcpu[i].id, &cpus);
	}
	if (j->n_calls)
		submit(d, j, pins_find(&d->pins, vm->uuid, vm->pid, vm->start_ticks));
	else
		job_free(j);
}

static void leave_alone(struct daemon *d, const struct snap_vm *vm, const char *why)
{
	struct vm_history *h = history_get(&d->history, vm);

	if (!h || h->left_alone)
		return;
	h->left_alone = true;
	snprintf(h->left_alone_why, sizeof(h->left_alone_why), "%s", why);
	moves_cancel(d->moves, vm->uuid);
	log_warning("VM '%s' is left alone from now on: %s", vm->name, why);
}

/* A VM that is paused, migrating or being saved waits; what is left is decided on when it runs
 * again. */
static void stop_move(struct daemon *d, const struct snap_vm *vm)
{
	const struct moves_vm *m = moves_find(d->moves, vm->uuid, vm->pid, vm->start_ticks);

	if (!m || !m->active)
		return;
	log_notice("VM '%s': %s, its memory waits", vm->name,
		vm->condition == VM_PAUSED ? "was paused" : "is migrating or being saved");
	moves_cancel(d->moves, vm->uuid);
}

static void check_one(struct daemon *d, struct snap_vm *vm, const struct observed_vm *o,
	const struct snapshot *s, const struct idset *online)
{
	struct pins_vm *e = pins_find(&d->pins, vm->uuid, vm->pid, vm->start_ticks);
	char why[SNAPSHOT_TEXT_MAX] = "", text[SNAPSHOT_TEXT_MAX];

	if (vm->condition != VM_RUNNING)
		stop_move(d, vm);
	if (!vm->pid || !o->affinity)
		return;
	switch (pins_check(&d->pins, vm, virt_of(d, vm->uuid), d->vms.asked_ns, o->affinity,
		s->time_ns, online, why)) {
	case PINS_FOREIGN:
		if (e) {
			leave_alone(d, vm, why);
		} else {
			vm->foreign_pin = true;
			memcpy(vm->foreign_pin_why, why, sizeof(why));
		}
		break;
	case PINS_DRIFT:
		e->reverted++;
		if (e->reapplied >= PINS_REAPPLY_MAX) {
			snprintf(text, sizeof(text),
				"its masks were undone by others %u times (%.100s)", e->reverted,
				why);
			leave_alone(d, vm, text);
		} else if (!d->options.dry_run && !d->stopping) {
			log_warning("VM '%s': %s, asking again (%u of %u)", vm->name, why,
				e->reapplied + 1, PINS_REAPPLY_MAX);
			reapply(d, vm, e);
		}
		break;
	case PINS_OURS:
		e->reapplied = 0;
		break;
	case PINS_FREE:
	case PINS_UNKNOWN:
		break;
	}
}

void actions_check_pins(struct daemon *d, struct snapshot *s, const struct observed *o)
{
	for (unsigned i = 0; i < s->n_vms; i++)
		check_one(d, &s->vm[i], &o->vm[i], s, &o->cpus_online);
}

static int add_calls(struct daemon *d, struct pin_job *j, unsigned index, const struct virt_vm *v,
	const struct vm_plan *p)
{
	const struct snap_vm *vm = &d->snapshot->vm[index];
	const struct observed_vm *o = &d->observed->vm[index];
	struct idset cpus;

	for (unsigned i = 0; i < vm->n_vcpus; i++) {
		int target = p->vcpu_target[i];

		if (target < 0 || !vm->vcpu[i].tid)
			continue;
		decide_target_cpus(d->snapshot, vm, (unsigned)target, &cpus);
		if (pins_ask(&d->pins, vm, vm->vcpu[i].id, mask_before(v, o, vm, i), &cpus) < 0)
			return -1;
		add_call(j, vm, vm->vcpu[i].id, &cpus);
	}
	return 0;
}

static void hand_out_one(struct daemon *d, unsigned i)
{
	const struct snap_vm *vm = &d->snapshot->vm[i];
	const struct vm_plan *p = &d->plan.vm[i];
	const struct virt_vm *v = virt_of(d, vm->uuid);
	struct vm_history *h = history_get(&d->history, vm);
	struct pin_job *j;
	uint64_t now = daemon_now_ns();
	char text[REASON_TEXT_MAX];

	/* without libvirt nothing of its can be pinned: wait for it */
	if (!v || !h || (v->manager == VIRT_LIBVIRT && !d->connected))
		return;
	j = job_new(d, vm, v, vm->n_vcpus);
	if (!j)
		return;
	j->home_before = h->home;
	j->move_bytes = p->move_bytes;
	j->target_id = p->target < 0 ? 0 : d->snapshot->topology.node[p->target].id;
	if (add_calls(d, j, i, v, p) < 0 ||
		submit(d, j, pins_find(&d->pins, vm->uuid, vm->pid, vm->start_ticks)) < 0) {
		log_err("VM '%s': out of memory, nothing was changed", vm->name);
		return;
	}
	decide_commit(&d->history, d->snapshot, i, p, now);
	if (!d->first_decision_ns)
		d->first_decision_ns = now;
	log_notice("VM '%s': %s", vm->name, explain_text(d->snapshot, &d->plan, i, text));
}

void actions_hand_out(struct daemon *d)
{
	for (unsigned k = 0; k < d->plan.n_due && !d->options.dry_run; k++)
		hand_out_one(d, d->plan.order[k]);
	for (unsigned i = 0; i < d->snapshot->n_vms && !d->options.dry_run; i++)
		adopt_new_vcpus(d, i);
	if (d->options.dry_run && d->plan.n_due && !d->first_decision_ns)
		d->first_decision_ns = daemon_now_ns();
}

static const char *end_text(enum move_end end)
{
	static const char *const texts[] = {
		[MOVE_DONE] = "done",
		[MOVE_STOPPED] = "stopped before the end",
		[MOVE_GONE] = "the VM ended",
		[MOVE_FORBIDDEN] =
			"not permitted (CAP_SYS_PTRACE, or the node is outside its cpuset)",
		[MOVE_STUCK] = "its pages are pinned",
		[MOVE_NO_ROOM] = "the node is full",
	};

	return texts[end];
}

void actions_move_done(void *userdata, const struct moves_vm *m)
{
	struct daemon *d = userdata;
	struct vm_history *h = history_of(d, m->uuid, m->pid);
	uint64_t failed = 0;

	for (unsigned i = 0; i < MOVE_FAILURES; i++)
		failed += m->failed_pages[i];
	if (h)
		h->moving = false;
	d->last_action_ns = daemon_now_ns();
	log_line(m->end == MOVE_DONE ? LOG_NOTICE : LOG_WARNING,
		"VM '%s': memory to node %u: %s; %llu pages moved so far, %llu were refused",
		m->name, m->target, end_text(m->end), (unsigned long long)m->moved_pages,
		(unsigned long long)failed);
	if (!d->stopping)
		tick_arm(d, UINT64_C(1000000000)); /* look at what came of it */
}

void actions_restore_all(struct daemon *d)
{
	for (unsigned i = 0; i < d->pins.n_vms; i++) {
		struct pins_vm *e = &d->pins.vm[i];
		const struct snap_vm *vm =
			snapshot_find(d->snapshot, e->uuid, e->pid, e->start_ticks);
		const struct vm_history *h = history_of(d, e->uuid, e->pid);
		const struct virt_vm *v = virt_of(d, e->uuid);
		struct pin_job *j;

		/* what somebody else has taken over is not ours to give back */
		if (!vm || !v || (h && h->left_alone) || !(j = job_new(d, vm, v, e->n_vcpus)))
			continue;
		j->restore = true;
		for (unsigned k = 0; k < e->n_vcpus; k++)
			if (e->vcpu[k].asked_for && !idset_empty(&e->vcpu[k].original))
				add_call(j, vm, e->vcpu[k].id, &e->vcpu[k].original);
		if (!j->n_calls)
			job_free(j);
		else if (submit(d, j, e) == 0)
			d->restores++;
	}
}
