/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Sets the stage: spreads a guest's RAM over nodes as a scenario says, in 2 MiB blocks mixed by a
 * hash, so that every region has its share on every node.
 *
 *   numaherd-placer PID RAM_BYTES NODE=PERMILLE...
 *
 * Exit status 1 if more than one page in a hundred could not be placed.
 */
#include <errno.h>
#include <inttypes.h>
#include <numaif.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_PAGES 512
#define SHARES_MAX 16
#define TRIES 5

static uint64_t find_ram(int pid, uint64_t bytes)
{
	char path[64], line[1024];
	uint64_t start = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f)) {
		uint64_t a, b;
		char perms[5] = "";

		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s", &a, &b, perms) == 3 &&
			b - a == bytes && perms[1] == 'w')
			start = a;
	}
	if (f)
		fclose(f);
	return start;
}

/* Returns the pages of the block that are there but elsewhere. */
static unsigned place_block(int pid, uint64_t at, int node, unsigned *ret_present)
{
	void *page[BLOCK_PAGES], *send[BLOCK_PAGES];
	int status[BLOCK_PAGES], nodes[BLOCK_PAGES];
	unsigned left = 0;

	*ret_present = 0;
	for (unsigned i = 0; i < BLOCK_PAGES; i++)
		page[i] = (void *)(uintptr_t)(at + (uint64_t)i * 4096);
	if (move_pages(pid, BLOCK_PAGES, page, NULL, status, 0) < 0)
		return BLOCK_PAGES;
	for (unsigned i = 0; i < BLOCK_PAGES; i++) {
		*ret_present += status[i] >= 0;
		if (status[i] < 0 || status[i] == node)
			continue;
		nodes[left] = node;
		send[left++] = page[i];
	}
	if (left)
		move_pages(pid, left, send, nodes, status, MPOL_MF_MOVE);
	return left;
}

int main(int argc, char **argv)
{
	int node[SHARES_MAX], n = argc - 3, pid;
	unsigned upto[SHARES_MAX], sum = 0, present = 0, left = 0;
	uint64_t bytes, start;

	if (n < 1 || n > SHARES_MAX) {
		fprintf(stderr, "usage: numaherd-placer PID RAM_BYTES NODE=PERMILLE...\n");
		return 2;
	}
	pid = atoi(argv[1]);
	bytes = strtoull(argv[2], NULL, 10);
	for (int i = 0; i < n; i++) {
		unsigned share;

		if (sscanf(argv[3 + i], "%d=%u", &node[i], &share) != 2)
			return 2;
		upto[i] = sum += share;
	}
	start = find_ram(pid, bytes);
	if (!start) {
		fprintf(stderr, "numaherd-placer: no mapping of %" PRIu64 " bytes in %d\n", bytes,
			pid);
		return 1;
	}
	for (int try = 0; try < TRIES; try++) {
		present = left = 0;
		for (uint64_t b = 0; b < bytes / 4096 / BLOCK_PAGES; b++) {
			unsigned h = (unsigned)((b * UINT64_C(2654435761) >> 7) % sum), here;
			int i = 0;

			while (h >= upto[i])
				i++;
			left += place_block(pid, start + b * BLOCK_PAGES * 4096, node[i], &here);
			present += here;
		}
		if (!left)
			break;
	}
	printf("%u pages, %u elsewhere\n", present, left);
	return left * 100 > present;
}
