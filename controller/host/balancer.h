/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The kernel's NUMA balancer: whether it is on, and what it has done since boot.
 */
#pragma once

#include "controller/host/root.h"

struct balancer {
	int mode; /* kernel.numa_balancing: 0 off, 1 on, 2 tiering, 3 both; -1 not there or not read
		   */

	bool has_counters; /* /proc/vmstat could be read; a counter it lacks is 0 */
	bool has_faults;   /* numa_hint_faults is one of its counters */
	uint64_t pte_updates;
	uint64_t hint_faults;
	uint64_t hint_faults_local;
	uint64_t pages_migrated;  /* numa_pages_migrated */
	uint64_t migrate_success; /* pgmigrate_success: of all page migration, ours included */
	uint64_t migrate_fail;
};

/* What cannot be read is marked so. Returns 0 or a negative errno. */
int balancer_read(const struct hostfs *fs, struct balancer *ret);

/* Only the counters. */
void balancer_parse_vmstat(const char *text, size_t len, struct balancer *b);
