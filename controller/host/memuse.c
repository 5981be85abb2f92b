/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Why guest RAM apart: QEMU's heap and libraries are megabytes on any node, and would make a small,
 * perfectly placed guest look scattered.
 */
#include "controller/host/memuse.h"

#include <errno.h>

static const char *const kind_names[MEMORY_KINDS] = {
	[MEMORY_GUEST_RAM] = "guest-ram",
	[MEMORY_HEAP] = "heap",
	[MEMORY_STACK] = "stack",
	[MEMORY_PRIVATE] = "private",
	[MEMORY_FILE] = "file",
};

const char *memory_kind_name(enum memory_kind kind)
{
	return kind < MEMORY_KINDS ? kind_names[kind] : "?";
}

enum memory_kind memory_kind_of(const struct guestram *g, const struct numa_vma *vma)
{
	if (g && guestram_at(g, vma->start))
		return MEMORY_GUEST_RAM;
	switch (vma->kind) {
	case NUMA_VMA_HEAP:
		return MEMORY_HEAP;
	case NUMA_VMA_STACK:
		return MEMORY_STACK;
	case NUMA_VMA_FILE:
		return MEMORY_FILE;
	default:
		return MEMORY_PRIVATE;
	}
}

struct sum {
	const struct topology *topology;
	struct guestram *g;
	const struct ram_backends *backends;
	struct memory_use *use;
};

static int add_vma(const struct numa_vma *vma, void *userdata)
{
	struct sum *s = userdata;
	enum memory_kind kind = memory_kind_of(s->g, vma);

	if (kind == MEMORY_GUEST_RAM) {
		guestram_learn(s->g, s->backends, vma);
		s->use->hugetlb |= vma->huge;
		s->use->bound |= vma->policy == NUMA_POLICY_BIND && !vma->policy_balancing;
	}
	for (unsigned i = 0; i < vma->n_counts; i++) {
		int n = topology_index(s->topology, vma->count[i].node);

		if (n < 0)
			s->use->elsewhere_bytes += vma->count[i].bytes;
		else
			s->use->bytes[kind][n] += vma->count[i].bytes;
	}
	return 0;
}

/* @text: NULL to read the process's own. */
static int sum_up(const struct hostfs *fs, pid_t pid, const char *text, size_t len,
	const struct numa_maps_units *units, struct sum *s, struct memory_use *ret)
{
	_cleanup_free_ struct memory_use *use = calloc(1, sizeof(*use));
	int r;

	if (!use)
		return -ENOMEM;
	s->use = use;
	r = text ? numa_maps_parse(text, len, units, add_vma, s, &use->read)
		 : numa_maps_read(fs, pid, units, add_vma, s, &use->read);
	if (r == 0)
		*ret = *use;
	return r;
}

int memory_use_read(const struct hostfs *fs, pid_t pid, const struct topology *topology,
	const struct numa_maps_units *units, struct guestram *g,
	const struct ram_backends *backends, struct memory_use *ret)
{
	struct sum s = {.topology = topology, .g = g, .backends = backends};

	return sum_up(fs, pid, NULL, 0, units, &s, ret);
}

int memory_use_parse(const char *text, size_t len, const struct topology *topology,
	const struct numa_maps_units *units, struct guestram *g,
	const struct ram_backends *backends, struct memory_use *ret)
{
	struct sum s = {.topology = topology, .g = g, .backends = backends};

	return sum_up(NULL, 0, text, len, units, &s, ret);
}
