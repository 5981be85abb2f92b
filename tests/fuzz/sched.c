/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "controller/host/schedfile.h"
#include "tests/fuzz/target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_sched_numa_ struct sched_numa s = {0};
	struct idset online = {0};

	idset_add(&online, 0);
	idset_add(&online, 8);
	if (sched_numa_parse((const char *)data, size, size % 2 ? &online : NULL, &s))
		return 0;
	PROMISE(strlen(s.comm) < sizeof(s.comm));
	PROMISE(s.n_rows <= SCHED_ROWS_MAX);
	PROMISE(s.era != SCHED_ERA_NONE || (s.n_rows == 0 && !s.has_stats));
	PROMISE(s.preferred >= -1 && s.current >= -1);
	for (unsigned i = 0; i < s.n_rows; i++) {
		PROMISE(s.row[i].node < SCHED_ROWS_MAX);
		PROMISE(i == 0 || s.row[i - 1].node < s.row[i].node);
		PROMISE(sched_numa_row(&s, s.row[i].node) == &s.row[i]);
	}
	if (size % 2 && s.n_rows)
		PROMISE(s.incomplete || (sched_numa_row(&s, 0) && sched_numa_row(&s, 8)));
	return 0;
}
