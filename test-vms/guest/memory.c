/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "memory.h"

/* Built with -fno-tree-loop-distribute-patterns: else these loops become calls of themselves. */

void *memcpy(void *to, const void *from, size_t n)
{
	const char *source = from;
	char *target = to;
	size_t i;

	for (i = 0; i < n; i++)
		target[i] = source[i];
	return to;
}

void *memmove(void *to, const void *from, size_t n)
{
	const char *source = from;
	char *target = to;

	if (target <= source)
		return memcpy(to, from, n);
	while (n > 0) {
		n--;
		target[n] = source[n];
	}
	return to;
}

void *memset(void *to, int byte, size_t n)
{
	char *target = to;
	size_t i;

	for (i = 0; i < n; i++)
		target[i] = (char)byte;
	return to;
}

int memcmp(const void *a, const void *b, size_t n)
{
	const unsigned char *left = a, *right = b;
	size_t i;

	for (i = 0; i < n; i++) {
		if (left[i] != right[i])
			return left[i] < right[i] ? -1 : 1;
	}
	return 0;
}
