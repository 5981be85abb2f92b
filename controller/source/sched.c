/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Why an incomplete reading counts as none: a node whose row was cut off would look as if it had no
 * faults, and its share would go to the others.
 */
#include "controller/source/sched.h"

#include <string.h>

#include "controller/host/schedfile.h"

int source_sched_read(const struct hostfs *fs, pid_t pid, pid_t tid, const struct topology *t,
	const struct idset *online, uint64_t *value, struct fault_reading *ret)
{
	_cleanup_(sched_numa_clear) struct sched_numa s = {0};
	int r;

	memset(ret, 0, sizeof(*ret));
	memset(value, 0, t->n_nodes * FAULT_KINDS * sizeof(*value));
	ret->value = value;
	r = sched_numa_read(fs, pid, tid, online, &s);
	if (r < 0)
		return r;
	if (r == HOST_E_PERM) {
		ret->state = READING_NO_PERMISSION;
		return 0;
	}
	if (r > 0 || s.era == SCHED_ERA_NONE || s.incomplete)
		return 0;
	ret->state = READING_OK;
	ret->has_stats = s.has_stats;
	ret->decayed = true;
	ret->scan_seq = s.scan_seq;
	ret->total_faults = s.total;
	for (unsigned i = 0; i < s.n_rows; i++) {
		int n = topology_index(t, s.row[i].node);

		if (n < 0)
			continue;
		value[2 * n + FAULT_SHARED] = s.row[i].task_shared;
		value[2 * n + FAULT_PRIVATE] = s.row[i].task_private;
		if (!s.has_total)
			ret->total_faults += s.row[i].task_shared + s.row[i].task_private;
	}
	return 0;
}
