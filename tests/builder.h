/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Hosts and VMs as literals, for tests of the decision. The hosts are those of the field cases:
 * two: 2 nodes x 4 CPUs, 16 GiB, 10 21; mesh4: 4 nodes x 2 CPUs, 16 GiB, 10 16 16 22.
 */
#pragma once

#include "policy/explain.h"

#define GIB (UINT64_C(1) << 30)
#define MIB (UINT64_C(1) << 20)

struct snapshot *build_two(unsigned n_vms);
struct snapshot *build_mesh4(unsigned n_vms);
/* A running VM of @n_vcpus with data state ok; vCPU k runs on at[k % n_at]. */
struct snap_vm *build_vm(struct snapshot *s, unsigned i, const char *name, unsigned n_vcpus,
	uint64_t ram_bytes, const int *at, unsigned n_at);
/* The same decayed faults for each vCPU, all of one kind; [n_nodes]. */
void build_faults(
	struct snapshot *s, struct snap_vm *vm, enum fault_kind kind, const uint64_t *faults);
void build_memory(struct snapshot *s, struct snap_vm *vm, const uint64_t *bytes);
/* Decides @times times in a row on the same input, a tick of 10 s apart; the last plan. */
void build_decide(struct snapshot *s, const struct settings *set, struct history *h, unsigned times,
	struct plan *ret);
/* What explain_text() says of VM @i; until the next call. */
const char *build_text(const struct snapshot *s, const struct plan *p, unsigned i);
