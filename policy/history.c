/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Why identity is UUID + pid + start time: a VM that is destroyed and started again under the same
 * UUID has no home, no cooldown and no wishes.
 */
#include <string.h>

#include "policy/decide.h"

void history_clear(struct history *h)
{
	free(h->vm);
	memset(h, 0, sizeof(*h));
}

static bool is_of(const struct vm_history *e, const struct snap_vm *vm)
{
	return e->pid == vm->pid && e->start_ticks == vm->start_ticks &&
	       strcmp(e->uuid, vm->uuid) == 0;
}

struct vm_history *history_get(struct history *h, const struct snap_vm *vm)
{
	return history_get_at(h, vm, 0);
}

struct vm_history *history_get_at(struct history *h, const struct snap_vm *vm, unsigned hint)
{
	struct vm_history *grown, *e;

	if (hint >= h->n_vms)
		hint = 0;
	for (unsigned i = 0; i < h->n_vms; i++) {
		e = &h->vm[hint + i < h->n_vms ? hint + i : hint + i - h->n_vms];
		if (is_of(e, vm))
			return e;
	}
	grown = reallocarray(h->vm, h->n_vms + 1, sizeof(*grown));
	if (!grown)
		return NULL;
	h->vm = grown;
	e = &h->vm[h->n_vms++];
	memset(e, 0, sizeof(*e));
	memcpy(e->uuid, vm->uuid, sizeof(e->uuid));
	e->pid = vm->pid;
	e->start_ticks = vm->start_ticks;
	e->home = e->home_before = -1;
	e->wish_node = -1;
	e->trial.promised = e->trial.before = -1;
	return e;
}

struct vm_history *history_find(struct history *h, const char *uuid)
{
	for (unsigned i = 0; i < h->n_vms; i++)
		if (strcmp(h->vm[i].uuid, uuid) == 0)
			return &h->vm[i];
	return NULL;
}
