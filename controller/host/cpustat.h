/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * /proc/stat: how busy each CPU was, as counters since boot, in clock ticks.
 */
#pragma once

#include "controller/host/root.h"
#include "policy/topology.h"

struct cpustat {
	/* sums over the online CPUs of each node, by node index */
	uint64_t busy_ticks[TOPOLOGY_NODES_MAX]; /* everything but idle, iowait and steal */
	uint64_t all_ticks[TOPOLOGY_NODES_MAX];
};

/* Returns 0, what hostfs_read() returns, or HOST_E_FORMAT (no cpuN line at all). */
int cpustat_read(const struct hostfs *fs, const struct topology *t, struct cpustat *ret);
int cpustat_parse(const char *text, size_t len, const struct topology *t, struct cpustat *ret);
