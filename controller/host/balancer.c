/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Why the counters are handed on as they are: they count since boot, and what they say (churn or
 * no churn) is in the difference of two readings, which only the caller has.
 */
#include "controller/host/balancer.h"

#include "controller/host/parse.h"

static void take_counter(struct text key, uint64_t value, struct balancer *b)
{
	const struct {
		const char *key;
		uint64_t *value;
	} counters[] = {
		{"numa_pte_updates", &b->pte_updates},
		{"numa_hint_faults", &b->hint_faults},
		{"numa_hint_faults_local", &b->hint_faults_local},
		{"numa_pages_migrated", &b->pages_migrated},
		{"pgmigrate_success", &b->migrate_success},
		{"pgmigrate_fail", &b->migrate_fail},
	};

	for (size_t i = 0; i < ARRAY_LEN(counters); i++)
		if (text_equal(key, counters[i].key))
			*counters[i].value = value;
	if (text_equal(key, "numa_hint_faults"))
		b->has_faults = true;
}

void balancer_parse_vmstat(const char *text, size_t len, struct balancer *b)
{
	struct text rest = text_of(text, len), line;
	bool ended;

	while (text_line(&rest, &line, &ended) && ended) {
		struct text key, number;
		uint64_t value;

		if (text_word(&line, &key) && text_word(&line, &number) &&
			parse_u64(number, UINT64_MAX, &value))
			take_counter(key, value, b);
	}
}

int balancer_read(const struct hostfs *fs, struct balancer *ret)
{
	_cleanup_free_ char *mode = NULL, *vmstat = NULL;
	struct balancer b = {.mode = -1};
	unsigned value;
	size_t len;
	int r;

	r = hostfs_read(fs, HOST_LIMIT_SMALL, &mode, &len, "proc/sys/kernel/numa_balancing");
	if (r < 0)
		return r;
	if (r == 0 && parse_uint(text_trim(text_of(mode, len)), 255, &value))
		b.mode = (int)value;
	r = hostfs_read(fs, HOST_LIMIT_MEDIUM, &vmstat, &len, "proc/vmstat");
	if (r < 0)
		return r;
	if (r == 0) {
		b.has_counters = true;
		balancer_parse_vmstat(vmstat, len, &b);
	}
	*ret = b;
	return 0;
}
