/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Random hosts from a seed. The same seed and size give the same host; a smaller size gives a
 * smaller one, which is all the shrinking there is: a failing seed is tried again with half the
 * size for as long as it fails.
 *
 * NUMAHERD_SEED: only that seed. NUMAHERD_CASES: how many (default 400).
 */
#pragma once

#include "policy/decide.h"
#include "tests/tap.h"

struct gen {
	uint64_t state;
};

uint64_t gen_next(struct gen *g);
/* Uniform in [min, max]. */
uint64_t gen_range(struct gen *g, uint64_t min, uint64_t max);
bool gen_chance(struct gen *g, unsigned permille);

/* 1 to 8 nodes, ids perhaps sparse, some without CPUs or memory; at least one has both. */
void gen_topology(struct gen *g, struct topology *t);
/* A host with up to @size VMs that stands still. Fault counts are multiples of FAULT_UNIT, so that
 * no distance scaling truncates. */
#define FAULT_UNIT UINT64_C(1980)
struct snapshot *gen_snapshot(struct gen *g, unsigned size);

/* True: the property holds for this seed and size; else says why. */
typedef bool (*property_fn)(uint64_t seed, unsigned size, char *why, size_t why_size);
/* Runs it over many seeds; prints the smallest failing case. */
void property_run(struct tap *tap_, property_fn fn);
