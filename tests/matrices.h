/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Distance tables of real hosts, for the tests of topology and weights. */
#pragma once

#include <string.h>

#include "policy/topology.h"

static const uint16_t pair[] = {10, 21, 21, 10};
static const uint16_t ring[] = {10, 20, 30, 20, 20, 10, 20, 30, 30, 20, 10, 20, 20, 30, 20, 10};
static const uint16_t chassis[] = {10, 20, 40, 40, 20, 10, 40, 40, 40, 40, 10, 20, 40, 40, 20, 10};
static const uint16_t mesh4[] = {10, 16, 16, 22, 16, 10, 22, 16, 16, 22, 10, 16, 22, 16, 16, 10};
static const uint16_t nomad[] = {10, 12, 32, 32, 12, 10, 32, 32, 32, 32, 10, 12, 32, 32, 12, 10};
static const uint16_t chain[] = {10, 20, 30, 20, 10, 20, 30, 20, 10};
static const uint16_t pmem[] = {10, 21, 17, 28, 21, 10, 28, 17, 17, 28, 10, 28, 28, 17, 28, 10};
static const uint16_t asymmetric[] = {10, 21, 28, 10};
static const uint16_t subnuma[] = {10, 15, 17, 21, 28, 26, 15, 10, 15, 23, 26, 23, 17, 15, 10, 26,
	23, 21, 21, 28, 26, 10, 15, 17, 23, 26, 23, 15, 10, 15, 26, 23, 21, 17, 15, 10};

/* @cpu_nodes: the first so many nodes have CPUs (2 each), all have memory. */
_unused_ static void fill_topology(
	struct topology *t, unsigned n, const uint16_t *rows, unsigned cpu_nodes)
{
	memset(t, 0, sizeof(*t));
	t->n_nodes = n;
	for (unsigned i = 0; i < n; i++) {
		t->node[i].id = i;
		t->node[i].has_cpu = i < cpu_nodes;
		t->node[i].has_memory = true;
		for (unsigned c = 0; c < 2 && i < cpu_nodes; c++)
			idset_add(&t->node[i].cpus, 2 * i + c);
		for (unsigned k = 0; k < n; k++)
			t->distance[i][k] = rows[i * n + k];
	}
	topology_finish(t);
}

/* Eight nodes in two halves: @near inside a half, @far across. */
_unused_ static void fill_eight(struct topology *t, uint16_t near, uint16_t far)
{
	uint16_t rows[64];

	for (unsigned i = 0; i < 64; i++)
		rows[i] = i / 8 == i % 8 ? 10 : (i / 8 < 4) == (i % 8 < 4) ? near : far;
	fill_topology(t, 8, rows, 8);
}
