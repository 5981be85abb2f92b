/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Why more than the size: thread stacks, malloc arenas and QEMU's own buffers are anonymous too and
 * may have the size of a small guest. QEMU puts a guard page behind RAM, a thread's stack has it
 * before; RAM is aligned to huge pages, an arena to its own size. Where that does not decide, none
 * of those in question is taken.
 */
#include "controller/host/anonruns.h"

#include <errno.h>
#include <string.h>

#define GUARD_MAX (UINT64_C(1) << 16)    /* one base page, of whatever size */
#define ARENA_BYTES (UINT64_C(64) << 20) /* what malloc reserves for a thread's arena */
#define HUGE_ALIGN (UINT64_C(2) << 20)
/* So many alike cannot be told apart, and comparing all of them would take long. */
#define RUNS_MAX 4096u

/* Private anonymous memory without a name: not [heap], not [stack], not [anon:...]. Not
 * executable: that is the code buffer of TCG, which may be as large as a guest. */
static bool is_anonymous(const struct map *m)
{
	return !m->path[0] && m->inode == 0 && strncmp(m->perms, "rw-p", 4) == 0;
}

static bool is_guard(const struct map *m)
{
	return memcmp(m->perms, "---", 3) == 0 && !m->path[0];
}

/* A malloc arena: begins at a multiple of 64 MiB, its unused rest is reserved up to the next. */
static bool is_arena(const struct map *first, const struct map *next)
{
	return first->start % ARENA_BYTES == 0 && is_guard(next) &&
	       next->end - first->start == ARENA_BYTES;
}

/* False: a stack or an arena for sure. */
static bool rank_run(const struct map_list *maps, struct map_run *e)
{
	const struct map *m = maps->map, *before = e->first ? &m[e->first - 1] : NULL;
	const struct map *next = e->last + 1 < maps->n ? &m[e->last + 1] : NULL;
	bool guard_before = before && is_guard(before) && before->end == m[e->first].start;
	bool guard_behind = next && is_guard(next) && next->start == m[e->last].end;

	if (guard_behind && is_arena(&m[e->first], next))
		return false;
	guard_behind = guard_behind && next->end - next->start <= GUARD_MAX;
	if (guard_before && !guard_behind)
		return false;
	e->rank = (guard_behind ? 2 : 0) + (m[e->first].start % HUGE_ALIGN == 0 ? 1 : 0);
	return true;
}

void anon_runs_clear(struct anon_runs *runs)
{
	free(runs->run);
	*runs = (struct anon_runs){0};
}

static int compare_rank(const void *a, const void *b)
{
	const struct map_run *x = a, *y = b;

	if (x->rank != y->rank)
		return x->rank > y->rank ? -1 : 1;
	return (x->first > y->first) - (x->first < y->first);
}

/* All runs of adjoining anonymous mappings whose sizes add up to @bytes; they may overlap. */
static int collect_runs(
	const struct map_list *maps, const bool *used, uint64_t bytes, struct anon_runs *ret)
{
	const struct map *m = maps->map;
	size_t first = 0;

	ret->run = calloc(maps->n + 1, sizeof(*ret->run));
	if (!ret->run)
		return -ENOMEM;
	for (size_t last = 0; last < maps->n; last++) {
		struct map_run e;

		if (used[last] || !is_anonymous(&m[last])) {
			first = last + 1;
			continue;
		}
		if (last > first && m[last].start != m[last - 1].end)
			first = last;
		while (m[last].end - m[first].start > bytes && first < last)
			first++;
		e = (struct map_run){.first = first, .last = last};
		if (m[last].end - m[first].start == bytes && rank_run(maps, &e))
			ret->run[ret->n++] = e;
	}
	if (ret->n)
		qsort(ret->run, ret->n, sizeof(*ret->run), compare_rank);
	return 0;
}

static bool overlaps(const struct anon_runs *list, size_t n, size_t at)
{
	const struct map_run *e = &list->run[at];

	for (size_t i = 0; i < n; i++)
		if (i != at && list->run[i].first <= e->last && e->first <= list->run[i].last)
			return true;
	return false;
}

/*
 * How many of the best ones can be taken for @wanted backends without a guess: whole groups of one
 * rank, as long as they are not more than are wanted and do not overlap.
 */
static size_t count_certain(struct anon_runs *list, size_t wanted)
{
	size_t kept = 0;

	for (size_t a = 0; a < list->n;) {
		unsigned rank = list->run[a].rank;
		size_t b = a, n = kept;

		/* what overlaps a better one is not a candidate any more */
		for (; b < list->n && list->run[b].rank == rank; b++) {
			list->run[n] = list->run[b];
			if (!overlaps(list, kept, n))
				n++;
		}
		for (size_t i = kept; i < n; i++)
			if (overlaps(list, n, i))
				return kept;
		if (n > wanted)
			return kept;
		kept = n;
		a = b;
	}
	return kept;
}

int anon_runs_find(const struct map_list *maps, const bool *used, uint64_t bytes, size_t wanted,
	struct anon_runs *ret)
{
	struct anon_runs runs = {0};
	int r = collect_runs(maps, used, bytes, &runs);

	if (r)
		return r;
	runs.n = runs.n > RUNS_MAX ? 0 : count_certain(&runs, wanted);
	*ret = runs;
	return 0;
}
