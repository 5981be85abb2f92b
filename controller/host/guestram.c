/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Why sizes and not the largest mapping: a QEMU maps more than its guest's RAM, and moving the wrong
 * memory would be worse than moving none. Named mappings betray themselves by their path; anonymous
 * ones must have the very size of a backend, alone or joined with adjoining ones (mbind and madvise
 * split a mapping). QEMU aligns RAM to huge pages, so a split backend begins where a mapping does.
 */
#include "controller/host/guestram.h"

#include <errno.h>

#include "controller/host/parse.h"

#define BASE_PAGE 4096u

const char *guestram_kind_name(enum guestram_kind kind)
{
	static const char *const names[] = {
		[GUESTRAM_ANON] = "anonymous",
		[GUESTRAM_MEMFD] = "memfd",
		[GUESTRAM_FILE] = "file",
		[GUESTRAM_HUGETLB] = "hugetlb",
	};

	return (size_t)kind < ARRAY_LEN(names) ? names[kind] : "?";
}

void guestram_clear(struct guestram *g)
{
	free(g->range);
	*g = (struct guestram){0};
}

struct search {
	const struct map_list *maps;
	const struct ram_backends *backends;
	const struct huge_mounts *mounts;
	uint64_t page_bytes, huge_bytes;
	bool *used; /* [maps->n]: already part of a range */
	bool *found; /* [backends->n] */
	struct guestram g;
};

static int add_range(struct search *s, const struct guestram_range *range)
{
	struct guestram_range *p = reallocarray(s->g.range, s->g.n + 1, sizeof(*p));
	size_t at = s->g.n;

	if (!p)
		return -ENOMEM;
	s->g.range = p;
	for (; at > 0 && p[at - 1].start > range->start; at--)
		p[at] = p[at - 1];
	p[at] = *range;
	s->g.n++;
	s->g.total_bytes += range->end - range->start;
	return 0;
}

static bool is_anonymous(const struct map *m)
{
	return m->path[0] == '\0' && m->inode == 0 && m->perms[0] == 'r' && m->perms[1] == 'w';
}

/* Does the path stand for guest RAM by itself? */
static bool path_betrays(struct search *s, const struct map *m, struct guestram_range *r)
{
	struct text path = text_of(m->path, strlen(m->path));
	const struct huge_mount *mount;

	if (m->perms[1] != 'w' || !m->path[0])
		return false;
	if (text_starts(path, "/memfd:memory-backend-memfd")) {
		r->kind = GUESTRAM_MEMFD;
		return true;
	}
	mount = s->mounts ? huge_mounts_find(s->mounts, m->path) : NULL;
	if (mount || text_starts(path, "/dev/hugepages/") || text_starts(path, "/anon_hugepage")) {
		r->kind = GUESTRAM_HUGETLB;
		r->page_bytes = mount ? mount->page_bytes : s->huge_bytes;
		return true;
	}
	for (size_t i = 0; s->backends && i < s->backends->n; i++) {
		const char *mem = s->backends->backend[i].path;

		if (!mem[0] || !text_skip(&path, mem))
			continue;
		/* the file itself, or one in that directory, perhaps already unlinked */
		if (path.n && path.p[0] != '/' && path.p[0] != ' ')
			return false;
		r->kind = GUESTRAM_FILE;
		return true;
	}
	return false;
}

/* The one backend of this size that has not been found; -1: none, or several alike. */
static int backend_of_size(const struct search *s, uint64_t bytes, bool *ret_any)
{
	int only = -1;
	unsigned n = 0;

	for (size_t i = 0; s->backends && i < s->backends->n; i++)
		if (!s->found[i] && s->backends->backend[i].size_bytes == bytes) {
			only = (int)i;
			n++;
		}
	*ret_any = n > 0;
	return n == 1 ? only : -1;
}

/* Takes one backend of this size off the list of those that are missing. */
static void mark_found(struct search *s, uint64_t bytes)
{
	for (size_t i = 0; s->backends && i < s->backends->n; i++)
		if (!s->found[i] && s->backends->backend[i].size_bytes == bytes) {
			s->found[i] = true;
			return;
		}
}

static int take(struct search *s, struct guestram_range *r, size_t first, size_t last)
{
	bool any;

	r->start = s->maps->map[first].start;
	r->end = s->maps->map[last].end;
	r->backend = backend_of_size(s, r->end - r->start, &any);
	if (r->backend >= 0)
		memcpy(r->id, s->backends->backend[r->backend].id, sizeof(r->id));
	if (any)
		mark_found(s, r->end - r->start);
	for (size_t i = first; i <= last; i++)
		s->used[i] = true;
	return add_range(s, r);
}

static int find_named(struct search *s)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < s->maps->n; i++) {
		struct guestram_range range = {.page_bytes = s->page_bytes, .backend = -1};

		if (path_betrays(s, &s->maps->map[i], &range))
			r = take(s, &range, i, i);
	}
	return r;
}

/* From mapping @i on: how far anonymous mappings that adjoin must be joined to make a backend. */
static bool joins_to_backend(const struct search *s, size_t i, size_t *ret_last)
{
	const struct map *m = s->maps->map;
	bool any = false;

	for (size_t k = i; k < s->maps->n && is_anonymous(&m[k]) && !s->used[k]; k++) {
		if (k > i && m[k].start != m[k - 1].end)
			return false;
		backend_of_size(s, m[k].end - m[i].start, &any);
		if (any) {
			*ret_last = k;
			return true;
		}
	}
	return false;
}

static int find_anonymous(struct search *s)
{
	size_t last = 0;
	int r = 0;

	for (size_t i = 0; r == 0 && i < s->maps->n; i++) {
		struct guestram_range range = {
			.page_bytes = s->page_bytes, .kind = GUESTRAM_ANON, .backend = -1};

		if (s->used[i] || !joins_to_backend(s, i, &last))
			continue;
		r = take(s, &range, i, last);
	}
	return r;
}

int guestram_find(const struct map_list *maps, const struct ram_backends *backends,
	const struct huge_mounts *mounts, const struct guestram_units *units, struct guestram *ret)
{
	_cleanup_free_ bool *used = calloc(maps->n + 1, sizeof(*used));
	_cleanup_free_ bool *found = calloc((backends ? backends->n : 0) + 1, sizeof(*found));
	struct search s = {.maps = maps, .backends = backends, .mounts = mounts, .used = used,
		.found = found, .page_bytes = units && units->page_bytes ? units->page_bytes : BASE_PAGE,
		.huge_bytes = units ? units->huge_bytes : 0};
	int r;

	if (!used || !found)
		return -ENOMEM;
	r = find_named(&s);
	if (r == 0)
		r = find_anonymous(&s);
	if (r < 0 || !s.g.n) {
		guestram_clear(&s.g);
		return r < 0 ? r : HOST_E_NOT_FOUND;
	}
	for (size_t i = 0; backends && i < backends->n; i++)
		if (!found[i]) {
			s.g.backends_missing++;
			s.g.missing_bytes += backends->backend[i].size_bytes;
		}
	*ret = s.g;
	return 0;
}

int guestram_read(const struct hostfs *fs, pid_t pid, const struct ram_backends *backends,
	const struct guestram_units *units, struct guestram *ret)
{
	_cleanup_map_list_ struct map_list maps = {0};
	_cleanup_ram_backends_ struct ram_backends own = {0};
	struct huge_mounts mounts;
	bool has_mounts;
	int r;

	if (!backends) {
		r = ram_backends_read(fs, pid, &own);
		if (r < 0)
			return r;
		backends = &own; /* empty if it could not be read: paths may still betray it */
	}
	r = maps_read(fs, pid, &maps);
	if (r != 0)
		return r;
	has_mounts = huge_mounts_read(fs, pid, units ? units->huge_bytes : 0, &mounts) == 0;
	return guestram_find(&maps, backends, has_mounts ? &mounts : NULL, units, ret);
}

static struct guestram_range *range_at(struct guestram *g, uint64_t address)
{
	for (size_t i = 0; i < g->n; i++)
		if (address >= g->range[i].start && address < g->range[i].end)
			return &g->range[i];
	return NULL;
}

void guestram_learn(
	struct guestram *g, const struct ram_backends *backends, const struct numa_vma *vma)
{
	struct guestram_range *r = range_at(g, vma->start);
	int only = -1;
	unsigned n = 0;

	if (!r)
		return;
	if (vma->huge) {
		r->kind = GUESTRAM_HUGETLB;
		r->page_bytes = vma->page_bytes;
	}
	if (r->backend >= 0 || !backends || idset_empty(&vma->policy_nodes))
		return;
	for (size_t i = 0; i < backends->n; i++)
		if (backends->backend[i].size_bytes == r->end - r->start &&
			idset_equal(&backends->backend[i].host_nodes, &vma->policy_nodes)) {
			only = (int)i;
			n++;
		}
	if (n == 1) {
		r->backend = only;
		memcpy(r->id, backends->backend[only].id, sizeof(r->id));
	}
}

const struct guestram_range *guestram_at(const struct guestram *g, uint64_t address)
{
	for (size_t i = 0; i < g->n; i++)
		if (address >= g->range[i].start && address < g->range[i].end)
			return &g->range[i];
	return NULL;
}
