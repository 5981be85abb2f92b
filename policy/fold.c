/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Why folding works on windows: the kernel's per-thread counters are already decayed, once for each
 * scan pass. Decaying them again would weigh old faults twice, so the kernel's decay is undone
 * first. All sums are made in the new snapshot; the old one is only read.
 */
#include "policy/fold.h"

#include <string.h>

bool fold_vcpu(unsigned n_nodes, const struct snap_vcpu *prev, const struct fault_reading *reading,
	struct snap_vcpu *vcpu)
{
	size_t cells = (size_t)n_nodes * FAULT_KINDS;
	uint64_t passes;
	bool fresh, inexact = false;

	if (prev) {
		memcpy(vcpu->faults, prev->faults, cells * sizeof(uint64_t));
		memcpy(vcpu->raw, prev->raw, cells * sizeof(uint64_t));
		vcpu->scan_seq = prev->scan_seq;
		vcpu->total_faults = prev->total_faults;
		vcpu->has_raw = prev->has_raw;
	}
	if (reading->state != READING_OK || !reading->has_stats)
		return false;
	if (!vcpu->has_raw) {
		/* the first reading: what the kernel has gathered so far is one window */
		memcpy(vcpu->faults, reading->value, cells * sizeof(uint64_t));
		fresh = reading->total_faults > 0;
	} else {
		passes = reading->scan_seq - vcpu->scan_seq;
		fresh = reading->total_faults != vcpu->total_faults ||
			memcmp(vcpu->raw, reading->value, cells * sizeof(uint64_t)) != 0;
		if (passes > 64) /* wrapped, or another mm */
			passes = 64;
		if (fresh && passes == 0)
			passes =
				1; /* placement ran late: the sequence was seen before its faults */
		for (size_t i = 0; fresh && i < cells; i++) {
			uint64_t window = reading->value[i];

			if (reading->decayed)
				window = faults_undo_decay(
					vcpu->raw[i], reading->value[i], passes, &inexact);
			vcpu->faults[i] = faults_fold(vcpu->faults[i], window);
		}
	}
	memcpy(vcpu->raw, reading->value, cells * sizeof(uint64_t));
	vcpu->scan_seq = reading->scan_seq;
	vcpu->total_faults = reading->total_faults;
	vcpu->has_raw = true;
	return fresh;
}

/* a * b / c for b <= c, without overflow and good to a millionth. */
static uint64_t part_of(uint64_t a, uint64_t b, uint64_t c)
{
	uint64_t ppm = c > UINT64_MAX / 1000000 ? b / (c / 1000000) : b * 1000000 / c;

	return a / 1000000 * ppm + a % 1000000 * ppm / 1000000;
}

void fold_moved_memory(unsigned n_nodes, const struct snap_vm *prev, struct snap_vm *vm)
{
	uint64_t lost[TOPOLOGY_NODES_MAX] = {0}, won[TOPOLOGY_NODES_MAX] = {0};
	uint64_t all_lost = 0, all_won = 0, moved;

	if (!prev || !prev->has_memory || !vm->has_memory)
		return;
	for (unsigned n = 0; n < n_nodes; n++) {
		if (prev->mem_bytes[n] > vm->mem_bytes[n])
			all_lost += lost[n] = prev->mem_bytes[n] - vm->mem_bytes[n];
		else
			all_won += won[n] = vm->mem_bytes[n] - prev->mem_bytes[n];
	}
	moved = MIN2(all_lost, all_won);
	if (!moved)
		return;
	for (unsigned i = 0; i < vm->n_vcpus; i++)
		for (unsigned k = 0; k < FAULT_KINDS; k++) {
			uint64_t *f = vm->vcpu[i].faults, pool = 0;

			for (unsigned n = 0; n < n_nodes; n++) {
				uint64_t go;

				if (!lost[n])
					continue;
				go = part_of(part_of(f[2 * n + k], lost[n], prev->mem_bytes[n]),
					moved, all_lost);
				f[2 * n + k] -= go;
				pool += go;
			}
			for (unsigned n = 0; n < n_nodes; n++)
				if (won[n])
					f[2 * n + k] += part_of(pool, won[n], all_won);
		}
}

void fold_data_state(const struct settings *set, const struct snapshot *s,
	const struct snap_vm *prev, bool fresh, bool denied, struct snap_vm *vm)
{
	bool silent;

	vm->windows = (prev ? prev->windows : 0) + (fresh ? 1 : 0);
	vm->data_age_ns = fresh || !prev ? 0 : prev->data_age_ns + s->window_ns;
	silent = vm->windows < set->warmup_windows && vm->data_age_ns >= set->silent_ns;
	if (vm->memory_hugetlb)
		vm->data = DATA_HUGETLB;
	else if (denied)
		vm->data = DATA_NO_PERMISSION;
	else if (s->balancing == 0)
		vm->data = DATA_BALANCING_OFF;
	else if (silent || vm->data_age_ns >= set->stale_ns)
		vm->data =
			silent || idset_count(&vm->allowed_mems) == 1 ? DATA_NO_SCAN : DATA_STALE;
	else if (vm->windows < set->warmup_windows)
		vm->data = DATA_WARMING_UP;
	else
		vm->data = DATA_OK;
}
