/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "controller/host/numamaps.h"
#include "tests/fuzz/target.h"

static int check(const struct numa_vma *vma, void *userdata)
{
	unsigned *n = userdata;

	(*n)++;
	PROMISE(vma->path && strlen(vma->path) < SIZE_MAX);
	PROMISE(vma->kind == NUMA_VMA_FILE || !vma->path[0]);
	PROMISE(vma->page_bytes > 0);
	PROMISE(vma->n_counts <= NUMA_VMA_NODES_MAX);
	for (unsigned i = 0; i < vma->n_counts; i++)
		PROMISE(vma->count[i].bytes / vma->page_bytes == vma->count[i].pages);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct numa_maps_result result = {0};
	unsigned n = 0, newlines = 0;

	if (numa_maps_parse((const char *)data, size, NULL, check, &n, &result))
		return 0;
	for (size_t i = 0; i < size; i++)
		newlines += data[i] == '\n';
	PROMISE(result.lines == n);
	PROMISE(result.incomplete == (data[size - 1] != '\n'));
	PROMISE(result.lines + result.anomalies == newlines + result.incomplete);
	return 0;
}
