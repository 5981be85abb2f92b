/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "controller/host/balancer.h"
#include "controller/host/threads.h"
#include "tests/fuzz/target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	struct thread_schedstat sched;
	struct thread_status status;
	struct thread_stat stat;
	struct balancer b = {0};

	if (thread_stat_parse(text, size, &stat) == 0) {
		PROMISE(stat.id > 0);
		PROMISE(strlen(stat.comm) < sizeof(stat.comm));
		PROMISE(stat.last_cpu >= -1 && stat.last_cpu < (int)IDSET_MAX);
	}
	thread_schedstat_parse(text, size, &sched);
	if (thread_status_parse(text, size, &status) == 0)
		PROMISE(status.has_cpus || status.has_mems);
	balancer_parse_vmstat(text, size, &b);
	return 0;
}
