/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Why iowait counts as idle: a CPU that only waits for a disk has room for a vCPU. Guest time is
 * part of user time already and must not be added twice.
 */
#include "controller/host/cpustat.h"

#include "controller/host/parse.h"

enum {
	USER,
	NICE,
	SYSTEM,
	IDLE,
	IOWAIT,
	IRQ,
	SOFTIRQ,
	STEAL,
	FIELDS
};

static bool parse_cpu_line(struct text line, unsigned *ret_cpu, uint64_t ticks[FIELDS])
{
	struct text word;
	unsigned n = 0;

	if (!text_skip(&line, "cpu") || !text_word(&line, &word) ||
		!parse_uint(word, IDSET_MAX - 1, ret_cpu))
		return false;
	while (n < FIELDS && text_word(&line, &word))
		if (!parse_u64(word, UINT64_MAX / 16, &ticks[n++]))
			return false;
	return n > IDLE;
}

int cpustat_parse(const char *text, size_t len, const struct topology *t, struct cpustat *ret)
{
	struct text rest = text_of(text, len), line;
	struct cpustat sum = {0};
	bool any = false;

	while (text_line(&rest, &line, NULL)) {
		uint64_t f[FIELDS] = {0}, busy;
		unsigned cpu;
		int node;

		/* "cpu  ..." is the sum over all and begins with a blank where the others have a
		 * digit */
		if (!text_starts(line, "cpu") || text_starts(line, "cpu ") ||
			!parse_cpu_line(line, &cpu, f))
			continue;
		any = true;
		node = topology_node_of_cpu(t, cpu);
		if (node < 0)
			continue;
		busy = f[USER] + f[NICE] + f[SYSTEM] + f[IRQ] + f[SOFTIRQ];
		sum.busy_ticks[node] += busy;
		sum.all_ticks[node] += busy + f[IDLE] + f[IOWAIT] + f[STEAL];
	}
	if (!any)
		return HOST_E_FORMAT;
	*ret = sum;
	return 0;
}

int cpustat_read(const struct hostfs *fs, const struct topology *t, struct cpustat *ret)
{
	_cleanup_free_ char *text = NULL;
	size_t len;
	int r;

	r = hostfs_read(fs, HOST_LIMIT_MEDIUM, &text, &len, "proc/stat");
	return r != 0 ? r : cpustat_parse(text, len, t, ret);
}
