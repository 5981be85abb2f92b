/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Random hosts from a seed. The same seed and size give the same host; a smaller size gives a
 * smaller one, which is all the shrinking there is: a failing seed is tried again with half the
 * size for as long as it fails.
 *
 * NUMAHERD_SEED, or the argument of a PROPERTY_MAIN program: only that seed. NUMAHERD_CASES: how
 * many (default 400); every other one is new each time, so that runs explore.
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
/* The same with 1 to @max_nodes (at most 32) nodes; the distances are those of one of the three
 * kinds, or garbage. */
void gen_topology_of(struct gen *g, unsigned max_nodes, struct topology *t);
/* Node i of @t becomes node ret_to[i] of @ret, with its row and column; @ret is finished. */
void gen_permute(struct gen *g, const struct topology *t, struct topology *ret, unsigned *ret_to);
/* Up to @max faults per node, about a third of the nodes without. [n_nodes] */
void gen_faults(struct gen *g, const struct topology *t, uint64_t max, uint64_t *ret);
/* A set of single ids and ranges, at times empty or full. */
void gen_idset(struct gen *g, struct idset *ret);
/* A host with up to @size VMs that stands still. Fault counts are multiples of FAULT_UNIT, so that
 * no distance scaling truncates. */
#define FAULT_UNIT UINT64_C(1980)
struct snapshot *gen_snapshot(struct gen *g, unsigned size);

/* True: the property holds for this seed and size; else says why. */
typedef bool (*property_fn)(uint64_t seed, unsigned size, char *why, size_t why_size);
/* Runs it over many seeds; prints the smallest failing case. */
void property_run(struct tap *tap_, property_fn fn);

/* TEST() of a property. */
#define PROPERTY(name)                            \
	static void test_##name(struct tap *tap_) \
	{                                         \
		property_run(tap_, name);         \
	}
/* TAP_MAIN with the seed as an optional argument. */
#define PROPERTY_MAIN(...)                                                  \
	int main(int argc, char **argv)                                     \
	{                                                                   \
		static const struct tap_test tests_[] = {__VA_ARGS__};      \
		if (argc > 1)                                               \
			setenv("NUMAHERD_SEED", argv[1], 1);                \
		return tap_run(tests_, sizeof(tests_) / sizeof(tests_[0])); \
	}
