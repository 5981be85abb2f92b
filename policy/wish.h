/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * From a wish to an action: persistence, cooldown, and how much may move at a time. Used by
 * decide.c only.
 */
#pragma once

#include "policy/decide.h"

/*
 * Notes the wish of @p in @h and appends its gates. Returns whether it is due; if not,
 * p->reason.why says why.
 * @moving: VMs whose memory is on the way.
 */
bool wish_settle(const struct snapshot *s, const struct settings *set, const struct snap_vm *vm,
	struct vm_history *h, struct vm_plan *p, unsigned moving);
void wish_forget(struct vm_history *h);
