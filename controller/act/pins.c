/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Why two looks: libvirt's word says who *asked* for a mask, /proc says what is *in force*. A mask
 * in libvirt that is not ours means that somebody took over (hands off). Ours in libvirt but
 * another one in force means that a cgroup, the kernel or a script undid it (try again, a few
 * times).
 */
#include "controller/act/pins.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

void pins_clear(struct pins *p)
{
	for (unsigned i = 0; i < p->n_vms; i++)
		free(p->vm[i].vcpu);
	free(p->vm);
	memset(p, 0, sizeof(*p));
}

struct pins_vm *pins_find(struct pins *p, const char *uuid, pid_t pid, uint64_t start_ticks)
{
	for (unsigned i = 0; i < p->n_vms; i++)
		if (p->vm[i].pid == pid && p->vm[i].start_ticks == start_ticks &&
			strcmp(p->vm[i].uuid, uuid) == 0)
			return &p->vm[i];
	return NULL;
}

static struct pins_vm *pins_get(struct pins *p, const struct snap_vm *vm)
{
	struct pins_vm *e = pins_find(p, vm->uuid, vm->pid, vm->start_ticks), *grown;

	if (e)
		return e;
	grown = reallocarray(p->vm, p->n_vms + 1, sizeof(*grown));
	if (!grown)
		return NULL;
	p->vm = grown;
	e = &p->vm[p->n_vms++];
	memset(e, 0, sizeof(*e));
	memcpy(e->uuid, vm->uuid, sizeof(e->uuid));
	e->pid = vm->pid;
	e->start_ticks = vm->start_ticks;
	return e;
}

static struct pins_vcpu *vcpu_of(const struct pins_vm *e, unsigned id)
{
	for (unsigned i = 0; e && i < e->n_vcpus; i++)
		if (e->vcpu[i].id == id)
			return &e->vcpu[i];
	return NULL;
}

bool pins_know(const struct pins_vm *e, unsigned id)
{
	const struct pins_vcpu *c = vcpu_of(e, id);

	return c && c->asked_for;
}

int pins_ask(struct pins *p, const struct snap_vm *vm, unsigned id, const struct idset *original,
	const struct idset *cpus)
{
	struct pins_vm *e = pins_get(p, vm);
	struct pins_vcpu *c = vcpu_of(e, id), *grown;

	if (!e)
		return -ENOMEM;
	if (!c) {
		grown = reallocarray(e->vcpu, e->n_vcpus + 1, sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		e->vcpu = grown;
		c = &e->vcpu[e->n_vcpus++];
		memset(c, 0, sizeof(*c));
		c->id = id;
		c->original = *original;
	}
	c->asked_for = true;
	c->asked = *cpus;
	return 0;
}

/* A vCPU that comes back later is a new thread, with no pin of ours. */
static void drop_unplugged(struct pins_vm *e, const struct snap_vm *vm)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < e->n_vcpus; i++) {
		bool plugged = false;

		for (unsigned k = 0; k < vm->n_vcpus; k++)
			plugged |= vm->vcpu[k].id == e->vcpu[i].id && vm->vcpu[k].tid;
		if (plugged)
			e->vcpu[kept++] = e->vcpu[i];
	}
	e->n_vcpus = kept;
}

void pins_drop_gone(struct pins *p, const struct snapshot *s)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < p->n_vms; i++) {
		struct pins_vm *e = &p->vm[i];
		const struct snap_vm *vm = snapshot_find(s, e->uuid, e->pid, e->start_ticks);

		if (!e->pending && !vm) {
			free(e->vcpu);
			continue;
		}
		/* a VM whose threads could not be read this time has unplugged nothing */
		if (!e->pending && vm->n_vcpus)
			drop_unplugged(e, vm);
		p->vm[kept++] = *e;
	}
	p->n_vms = kept;
}

static bool same_online(const struct idset *a, const struct idset *b, const struct idset *online)
{
	struct idset x = *a, y = *b;

	idset_and(&x, online);
	idset_and(&y, online);
	return idset_equal(&x, &y);
}

/* One vCPU against libvirt's word. True: somebody else's. */
static bool foreign_in_libvirt(const struct pins_vcpu *c, const struct snap_vcpu *vcpu,
	const struct virt_vm *v, const struct idset *online, char *why)
{
	char mask[64], asked[64];

	if (!v || vcpu->id >= v->n_pins)
		return false;
	idset_format(&v->pin[vcpu->id], mask, sizeof(mask));
	if (c && c->asked_for) {
		if (same_online(&v->pin[vcpu->id], &c->asked, online))
			return false;
		snprintf(why, SNAPSHOT_TEXT_MAX,
			"somebody else pinned vCPU %u to CPUs %s (we had asked for %s)", vcpu->id,
			mask, idset_format(&c->asked, asked, sizeof(asked)));
		return true;
	}
	if (idset_subset(online, &v->pin[vcpu->id]))
		return false;
	snprintf(why, SNAPSHOT_TEXT_MAX, "%s pinned vCPU %u to CPUs %s",
		v->placement_auto ? "numad, through libvirt's placement='auto',"
				  : "the operator, through libvirt,",
		vcpu->id, mask);
	return true;
}

static enum pins_verdict check_affinity(const struct pins_vcpu *c, const struct snap_vm *vm,
	bool bare, const struct snap_vcpu *vcpu, const struct idset *affinity,
	const struct idset *online, char *why)
{
	char mask[64], asked[64];

	if (!vcpu->tid || idset_empty(affinity))
		return PINS_FREE;
	idset_format(affinity, mask, sizeof(mask));
	if (c && c->asked_for) {
		if (same_online(affinity, &c->asked, online))
			return PINS_OURS;
		snprintf(why, SNAPSHOT_TEXT_MAX, "vCPU %u: asked %s, effective %s", vcpu->id,
			idset_format(&c->asked, asked, sizeof(asked)), mask);
		/* without libvirt's word, a mask that confines it elsewhere is somebody's pin */
		return bare && !idset_subset(&vm->allowed_cpus, affinity) ? PINS_FOREIGN
									  : PINS_DRIFT;
	}
	if (idset_subset(&vm->allowed_cpus, affinity))
		return PINS_FREE;
	snprintf(why, SNAPSHOT_TEXT_MAX, "vCPU %u is confined to CPUs %s by somebody else%s",
		vcpu->id, mask, bare ? "" : ", not through libvirt");
	return PINS_FOREIGN;
}

enum pins_verdict pins_check(struct pins *p, const struct snap_vm *vm, const struct virt_vm *v,
	uint64_t libvirt_ns, const struct idset *affinity, uint64_t proc_ns,
	const struct idset *cpus_online, char *why)
{
	const struct pins_vm *e = pins_find(p, vm->uuid, vm->pid, vm->start_ticks);
	const bool bare = v && v->manager == VIRT_QMP;
	enum pins_verdict worst = PINS_FREE;

	if (e && (e->pending || proc_ns <= e->settled_ns))
		return PINS_UNKNOWN;
	for (unsigned i = 0; i < vm->n_vcpus; i++) {
		const struct pins_vcpu *c = vcpu_of(e, vm->vcpu[i].id);
		enum pins_verdict one;

		if ((!e || libvirt_ns > e->settled_ns) &&
			foreign_in_libvirt(c, &vm->vcpu[i], v, cpus_online, why))
			return PINS_FOREIGN;
		one = check_affinity(c, vm, bare, &vm->vcpu[i], &affinity[i], cpus_online, why);
		if (one == PINS_FOREIGN)
			return one;
		worst = MAX2(worst, one);
	}
	return worst;
}
