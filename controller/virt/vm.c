/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Why copies: the list goes from the libvirt worker to the main loop to the collector, and each of
 * them keeps its own, so that nobody waits for anybody.
 */
#include "controller/virt/vm.h"

#include <errno.h>
#include <string.h>

void virt_vm_clear(struct virt_vm *vm)
{
	free(vm->pin);
	free(vm->thread);
	memset(vm, 0, sizeof(*vm));
}

static void *copy_of(const void *from, size_t n, size_t size)
{
	void *copy = calloc(n ? n : 1, size);

	if (copy && n)
		memcpy(copy, from, n * size);
	return copy;
}

int virt_vm_copy(const struct virt_vm *from, struct virt_vm *ret)
{
	*ret = *from;
	ret->pin = copy_of(from->pin, from->n_pins, sizeof(*ret->pin));
	ret->thread = copy_of(from->thread, from->n_threads, sizeof(*ret->thread));
	if (ret->pin && ret->thread)
		return 0;
	virt_vm_clear(ret);
	return -ENOMEM;
}

void virt_list_clear(struct virt_list *l)
{
	for (unsigned i = 0; i < l->n_vms; i++)
		virt_vm_clear(&l->vm[i]);
	free(l->vm);
	memset(l, 0, sizeof(*l));
}

int virt_list_copy(const struct virt_list *from, struct virt_list *ret)
{
	struct virt_list l = *from;

	memset(ret, 0, sizeof(*ret));
	l.n_vms = 0;
	l.vm = calloc(from->n_vms ? from->n_vms : 1, sizeof(*l.vm));
	if (!l.vm)
		return -ENOMEM;
	for (; l.n_vms < from->n_vms; l.n_vms++) {
		if (virt_vm_copy(&from->vm[l.n_vms], &l.vm[l.n_vms]) < 0) {
			virt_list_clear(&l);
			return -ENOMEM;
		}
	}
	*ret = l;
	return 0;
}

static int compare_vms(const void *a, const void *b)
{
	const struct virt_vm *x = a, *y = b;
	int c = strcmp(x->name, y->name);

	return c ? c : strcmp(x->uuid, y->uuid);
}

void virt_list_sort(struct virt_list *l)
{
	if (l->n_vms)
		qsort(l->vm, l->n_vms, sizeof(*l->vm), compare_vms);
}

static bool has_uuid(const struct virt_list *l, unsigned n, const char *uuid)
{
	for (unsigned i = 0; i < n; i++)
		if (strcmp(l->vm[i].uuid, uuid) == 0)
			return true;
	return false;
}

int virt_list_merge(struct virt_list *l, const struct virt_list *more)
{
	unsigned before = l->n_vms;
	struct virt_vm *grown;

	grown = reallocarray(l->vm, (size_t)before + more->n_vms + 1, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	l->vm = grown;
	for (unsigned i = 0; i < more->n_vms && l->n_vms < SNAPSHOT_VMS_MAX; i++) {
		if (has_uuid(l, before, more->vm[i].uuid))
			continue;
		if (virt_vm_copy(&more->vm[i], &l->vm[l->n_vms]) < 0) {
			while (l->n_vms > before)
				virt_vm_clear(&l->vm[--l->n_vms]);
			return -ENOMEM;
		}
		l->n_vms++;
	}
	if (!l->n_odd)
		memcpy(l->odd, more->odd, sizeof(l->odd));
	l->n_odd += more->n_odd;
	virt_list_sort(l);
	return 0;
}
