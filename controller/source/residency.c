/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Why not numa_maps every time: it walks all page tables of the process under its mmap lock
 * (seconds for hundreds of GB). Asking for a few thousand pages costs the same for any guest.
 */
#include "controller/source/residency.h"

#include <errno.h>
#include <numaif.h>
#include <string.h>

#define BATCH 4096u

static long kernel_move_pages(void *userdata, pid_t pid, unsigned long count, void **pages,
	const int *nodes, int *status, int flags)
{
	return move_pages(pid, count, pages, nodes, status, flags);
}

const struct page_ops page_ops_kernel = {.move_pages = kernel_move_pages};

struct sampler {
	const struct page_ops *ops;
	pid_t pid;
	const struct topology *t;
	uint64_t bytes_each; /* what one sample stands for */
	unsigned n;
	void *page[BATCH];
	int status[BATCH];
	uint64_t *sum; /* by node index */
};

static int flush(struct sampler *s)
{
	if (!s->n)
		return 0;
	if (s->ops->move_pages(s->ops->userdata, s->pid, s->n, s->page, NULL, s->status, 0) < 0)
		return errno == ESRCH                      ? HOST_E_GONE
		       : errno == EPERM || errno == EACCES ? HOST_E_PERM
							   : HOST_E_IO;
	for (unsigned i = 0; i < s->n; i++) {
		int n = s->status[i] < 0 ? -1 : topology_index(s->t, (unsigned)s->status[i]);

		if (n >= 0)
			s->sum[n] += s->bytes_each;
	}
	s->n = 0;
	return 0;
}

static int sample_range(struct sampler *s, const struct guestram_range *range, uint64_t page,
	uint64_t stride, uint64_t first)
{
	int r = 0;

	s->bytes_each = page * stride;
	for (uint64_t i = first % stride; r == 0 && range->start + i * page < range->end;
		i += stride) {
		s->page[s->n++] = (void *)(uintptr_t)(range->start + i * page);
		if (s->n == BATCH)
			r = flush(s);
	}
	return r == 0 ? flush(s) : r;
}

int source_residency_read(const struct page_ops *ops, pid_t pid, const struct guestram *ram,
	const struct topology *t, unsigned samples, unsigned phase, uint64_t *ret_bytes)
{
	_cleanup_free_ struct sampler *s = calloc(1, sizeof(*s));
	uint64_t sum[TOPOLOGY_NODES_MAX] = {0}, pages = 0, stride;
	int r = 0;

	if (!s)
		return -ENOMEM;
	*s = (struct sampler){.ops = ops, .pid = pid, .t = t, .sum = sum};
	for (size_t i = 0; i < ram->n; i++)
		pages += (ram->range[i].end - ram->range[i].start) /
			 MAX2(ram->range[i].page_bytes, (uint64_t)4096);
	stride = (pages + samples - 1) / MAX2(samples, 1u);
	for (size_t i = 0; r == 0 && i < ram->n; i++)
		r = sample_range(s, &ram->range[i], MAX2(ram->range[i].page_bytes, (uint64_t)4096),
			MAX2(stride, (uint64_t)1), phase);
	if (r == 0)
		memcpy(ret_bytes, sum, t->n_nodes * sizeof(*sum));
	return r;
}
