/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a decision costs, for hosts of three sizes, as a multiple of copying the fault vectors it
 * reads: time alone says little on a shared machine.
 */
#include <stdio.h>
#include <time.h>

#include "policy/decide.h"
#include "tests/property/gen.h"

#define ROUNDS 30

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

/* The shortest of some rounds: what the machine does meanwhile only adds. */
static uint64_t copy_ns(const struct snapshot *s)
{
	uint64_t best = UINT64_MAX;
	uint64_t buf[TOPOLOGY_NODES_MAX * FAULT_KINDS];
	volatile uint64_t sink = 0;

	for (unsigned r = 0; r < ROUNDS; r++) {
		uint64_t begin = now_ns();

		for (unsigned i = 0; i < s->n_vms; i++)
			for (unsigned k = 0; k < s->vm[i].n_vcpus; k++) {
				memcpy(buf, s->vm[i].vcpu[k].faults,
					s->topology.n_nodes * FAULT_KINDS * sizeof(*buf));
				sink += buf[0];
			}
		best = MIN2(best, now_ns() - begin);
	}
	return best;
}

static uint64_t decide_ns(struct snapshot *s)
{
	const struct settings set = SETTINGS_DEFAULT;
	struct history h = {0};
	struct decide_space space = {0};
	struct plan p = {0};
	uint64_t best = UINT64_MAX;

	for (unsigned r = 0; r < ROUNDS; r++) {
		uint64_t begin;

		s->seq++;
		s->time_ns += 1000000000;
		begin = now_ns();
		if (decide(s, &set, &h, &space, &p) < 0)
			abort();
		best = MIN2(best, now_ns() - begin);
	}
	plan_clear(&p);
	decide_space_clear(&space);
	history_clear(&h);
	return best;
}

int main(void)
{
	static const unsigned sizes[] = {10, 100, 500};
	uint64_t ns[ARRAY_LEN(sizes)], copies[ARRAY_LEN(sizes)];
	unsigned vms[ARRAY_LEN(sizes)];

	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		struct gen g = {7};
		struct snapshot *s = gen_snapshot(&g, sizes[i]);

		/* a size is an upper bound: take the first host that is near it */
		while (s->n_vms < sizes[i] * 9 / 10 || s->topology.n_nodes < 4) {
			snapshot_free(s);
			s = gen_snapshot(&g, sizes[i]);
		}
		vms[i] = s->n_vms;
		copies[i] = MAX2(copy_ns(s), UINT64_C(1));
		ns[i] = decide_ns(s);
		printf("%3u VMs: a decision takes %" PRIu64 " us, %" PRIu64
		       " times as long as copying its fault vectors\n",
			vms[i], ns[i] / 1000, ns[i] / copies[i]);
		snapshot_free(s);
	}
	printf("{\"bench\":\"decide\"");
	for (size_t i = 0; i < ARRAY_LEN(sizes); i++)
		printf(",\"vms_%u\":%u,\"decide_ns_%u\":%" PRIu64 ",\"ratio_to_copy_%u\":%" PRIu64,
			sizes[i], vms[i], sizes[i], ns[i], sizes[i], ns[i] / copies[i]);
	printf("}\n");
	return 0;
}
