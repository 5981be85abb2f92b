/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Why windows and not only time: right after a change the vectors still hold the faults of before,
 * which is what the promise was made from; judged by them every promise would be kept.
 */
#include "policy/trial.h"

void trial_begin(struct trial *t, const struct snap_vm *vm, int now, int then, uint64_t now_ns)
{
	t->open = now >= 0;
	t->before = now;
	t->promised = then;
	trial_wait(t, vm, now_ns);
}

void trial_wait(struct trial *t, const struct snap_vm *vm, uint64_t now_ns)
{
	t->since_ns = now_ns;
	t->windows = vm->windows;
}

bool trial_judge(struct trial *t, const struct settings *set, const struct snap_vm *vm, int now,
	uint64_t now_ns)
{
	if (!t->open || vm->data != DATA_OK || now < 0 || now_ns - t->since_ns < set->settle_ns ||
		vm->windows < t->windows + set->settle_windows)
		return false;
	t->open = false;
	t->judged = true;
	t->achieved = now;
	t->kept = 2 * (now - t->before) >= t->promised - t->before;
	if (t->kept) {
		t->broken -= t->broken > 0;
	} else {
		t->broken += t->broken < TRIAL_BAR_MAX;
		t->broken_all++;
	}
	return true;
}

bool trial_is_worse(const struct trial *t, const struct settings *set)
{
	return t->judged && !t->kept && t->before - t->achieved >= (int)set->improvement;
}

unsigned trial_bar(const struct trial *t)
{
	return 1u << t->broken;
}
