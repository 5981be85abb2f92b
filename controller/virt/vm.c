/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Why copies: the list goes from the libvirt worker to the main loop to the collector, and each of
 * them keeps its own, so that nobody waits for anybody.
 */
#include "controller/virt/vm.h"

#include <errno.h>
#include <string.h>

void virt_list_clear(struct virt_list *l)
{
	for (unsigned i = 0; i < l->n_vms; i++)
		free(l->vm[i].pin);
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
		const struct virt_vm *vm = &from->vm[l.n_vms];

		l.vm[l.n_vms] = *vm;
		l.vm[l.n_vms].pin = calloc(vm->n_pins ? vm->n_pins : 1, sizeof(*vm->pin));
		if (!l.vm[l.n_vms].pin) {
			virt_list_clear(&l);
			return -ENOMEM;
		}
		if (vm->n_pins)
			memcpy(l.vm[l.n_vms].pin, vm->pin, vm->n_pins * sizeof(*vm->pin));
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
