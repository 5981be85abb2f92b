/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The inside of collecting, shared by collect.c and collect-memory.c.
 */
#pragma once

#include "controller/source/collect.h"

struct collecting {
	struct collect *c;
	struct host_nodes *nodes;
	struct snapshot *s;
	bool same_nodes; /* as in the snapshot before, so that vectors can be carried on */
	uint64_t *value; /* room for one reading */
};

/* collect-memory.c */

/* Where the VM's guest RAM is mapped and lies; obs->ram and what hangs on it. */
void collect_memory(
	struct collecting *x, const struct virt_vm *v, struct snap_vm *vm, struct observed_vm *obs);
/* Whether it must never be moved, and why. */
void collect_fixed_memory(const struct virt_vm *v, bool bound, struct snap_vm *vm);
