/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Why sizes and not the largest mapping: a QEMU maps more than its guest's RAM, and moving the
 * wrong memory would be worse than moving none. Named mappings betray themselves by their path.
 * Anonymous ones must have the very size of a backend, alone or joined with adjoining ones, since
 * mbind and madvise split a mapping without parting it.
 * (anonruns.h). What cannot be told apart is not taken: missing memory is shown, wrong memory would
 * be moved.
 */
#include "controller/host/guestram.h"

#include <errno.h>

#include "controller/host/anonruns.h"
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
	const struct huge_mounts *mounts; /* or NULL */
	uint64_t page_bytes;
	uint64_t huge_bytes;
	bool *used;  /* [maps->n]: part of a range */
	bool *found; /* [backends->n] */
	struct guestram g;
};

static uint64_t run_bytes(const struct search *s, const struct map_run *e)
{
	return s->maps->map[e->last].end - s->maps->map[e->first].start;
}

/* What the kernel maps for a backend of that size. */
static uint64_t mapped_bytes(const struct search *s, const struct ram_backend *b)
{
	uint64_t page = s->page_bytes;

	if (b->size_bytes > UINT64_MAX - page)
		return b->size_bytes;
	return (b->size_bytes + page - 1) / page * page;
}

static int add_range(struct search *s, const struct map_run *e, struct guestram_range range)
{
	struct guestram_range *p = reallocarray(s->g.range, s->g.n + 1, sizeof(*p));
	size_t at = s->g.n;

	if (!p)
		return -ENOMEM;
	range.start = s->maps->map[e->first].start;
	range.end = s->maps->map[e->last].end;
	if (range.backend >= 0)
		memcpy(range.id, s->backends->backend[range.backend].id, sizeof(range.id));
	s->g.range = p;
	for (; at > 0 && p[at - 1].start > range.start; at--)
		p[at] = p[at - 1];
	p[at] = range;
	s->g.n++;
	s->g.total_bytes += range.end - range.start;
	for (size_t i = e->first; i <= e->last; i++)
		s->used[i] = true;
	return 0;
}

static bool is_readwrite(const struct map *m)
{
	/* not executable: that is the code buffer of TCG, which may be as large as a guest */
	return m->perms[0] == 'r' && m->perms[1] == 'w' && m->perms[2] == '-';
}

/* The file itself or one in that directory, perhaps unlinked already. */
static bool path_is_below(const char *path, const char *where)
{
	struct text t = text_of(path, strlen(path));

	if (!where[0] || !text_skip(&t, where))
		return false;
	return t.n == 0 || t.p[0] == '/' || where[strlen(where) - 1] == '/' ||
	       text_equal(t, " (deleted)");
}

/*
 * "qemu_back_mem._objects_ram-node0.Xy12Z3" is the file that QEMU makes in a mem-path that is a
 * directory: true, and the backend's id.
 */
static bool id_of_file(const char *path, char *id)
{
	static const char prefix[] = "qemu_back_mem.";
	const char *slash = strrchr(path, '/');
	struct text t;

	if (!slash || strncmp(slash + 1, prefix, strlen(prefix)) != 0)
		return false;
	t = text_of(slash + 1 + strlen(prefix), strlen(slash + 1 + strlen(prefix)));
	text_skip(&t, "_objects_");
	while (t.n && t.p[t.n - 1] != '.')
		t.n--;
	if (t.n)
		t.n--;
	text_copy(t, id, RAM_BACKEND_ID_MAX);
	return true;
}

/* Fills kind, page size and, if the path says it, backend. False: not guest RAM by its path. */
static bool path_betrays(const struct search *s, const char *path, struct guestram_range *r)
{
	const struct huge_mount *mount = s->mounts ? huge_mounts_find(s->mounts, path) : NULL;
	char id[RAM_BACKEND_ID_MAX] = "";
	bool is_backend = id_of_file(path, id);
	unsigned below = 0;

	r->kind = GUESTRAM_FILE;
	for (size_t i = 0; i < s->backends->n; i++) {
		const struct ram_backend *b = &s->backends->backend[i];

		if (id[0] && strcmp(id, b->id) == 0)
			r->backend = (int)i;
		below += path_is_below(path, b->path);
	}
	for (size_t i = 0; below == 1 && r->backend < 0 && i < s->backends->n; i++)
		if (path_is_below(path, s->backends->backend[i].path))
			r->backend = (int)i;
	if (mount || strncmp(path, "/dev/hugepages/", 15) == 0) {
		r->kind = GUESTRAM_HUGETLB;
		r->page_bytes = mount ? mount->page_bytes : s->huge_bytes;
		return true;
	}
	if (strncmp(path, "/memfd:memory-backend-memfd", 27) == 0) {
		r->kind = GUESTRAM_MEMFD;
		return true;
	}
	return is_backend || below > 0;
}

/* Also guest RAM, if its size is right: shared memory whose name says nothing. */
static bool path_allows(const char *path, struct guestram_range *r)
{
	if (strncmp(path, "/anon_hugepage", 14) == 0)
		r->kind = GUESTRAM_HUGETLB;
	else if (strncmp(path, "/memfd:", 7) == 0)
		r->kind = GUESTRAM_MEMFD;
	else if (strncmp(path, "/dev/shm/", 9) == 0)
		r->kind = GUESTRAM_FILE;
	else if (strncmp(path, "/dev/zero", 9) == 0)
		r->kind = GUESTRAM_ANON;
	else
		return false;
	return true;
}

/* The end of a file's mapping from @first on, joined over what mbind and madvise split. */
static struct map_run run_of_file(const struct search *s, size_t first)
{
	const struct map *m = s->maps->map;
	size_t last = first;

	while (last + 1 < s->maps->n && m[last + 1].start == m[last].end &&
		m[last + 1].inode == m[first].inode &&
		m[last + 1].dev_major == m[first].dev_major &&
		m[last + 1].dev_minor == m[first].dev_minor &&
		m[last + 1].offset == m[last].offset + (m[last].end - m[last].start) &&
		is_readwrite(&m[last + 1]) && strcmp(m[last + 1].path, m[first].path) == 0)
		last++;
	return (struct map_run){.first = first, .last = last};
}

static bool types_agree(enum ram_backend_type type, enum guestram_kind kind)
{
	switch (type) {
	case RAM_BACKEND_RAM:
		/* newer QEMUs take memfd for "share=on" */
		return kind == GUESTRAM_ANON || kind == GUESTRAM_MEMFD;
	case RAM_BACKEND_MEMFD:
		return kind == GUESTRAM_MEMFD || kind == GUESTRAM_HUGETLB;
	case RAM_BACKEND_FILE:
	case RAM_BACKEND_SHM:
		return kind == GUESTRAM_FILE || kind == GUESTRAM_HUGETLB;
	default:
		return true;
	}
}

/* A backend of that size and kind that is not found yet; -1. @ret_alike: how many backends of the
 * whole list it could be. */
static int backend_of_size(
	const struct search *s, uint64_t bytes, enum guestram_kind kind, unsigned *ret_alike)
{
	int idx = -1;

	*ret_alike = 0;
	for (size_t i = s->backends->n; i-- > 0;) {
		const struct ram_backend *b = &s->backends->backend[i];

		if (mapped_bytes(s, b) != bytes || !types_agree(b->type, kind))
			continue;
		(*ret_alike)++;
		if (!s->found[i])
			idx = (int)i;
	}
	return idx;
}

static void take_huge_size(const struct search *s, int backend, struct guestram_range *range)
{
	const struct ram_backend *b = &s->backends->backend[backend];

	if (!b->hugetlb && range->kind != GUESTRAM_HUGETLB)
		return;
	if (range->kind == GUESTRAM_HUGETLB && range->page_bytes != s->page_bytes)
		return; /* its mount said it */
	range->kind = GUESTRAM_HUGETLB;
	range->page_bytes = b->huge_bytes ? b->huge_bytes : s->huge_bytes;
}

/* @idx: a backend of its size, or -1; @alike: how many it could be. */
static int take_named(struct search *s, const struct map_run *e, struct guestram_range range,
	int idx, unsigned alike)
{
	if (range.backend >= 0) {
		s->found[range.backend] = true;
		take_huge_size(s, range.backend, &range);
	} else if (idx >= 0) {
		s->found[idx] = true;
		take_huge_size(s, idx, &range);
		range.backend = alike == 1 ? idx : -1;
	}
	return add_range(s, e, range);
}

/*
 * @sure: take those that are guest RAM by their path, and assign those only that say their backend
 * (@by_name) or those only that do not; else those that need the right size.
 */
static int find_named(struct search *s, bool sure, bool by_name)
{
	for (size_t i = 0; i < s->maps->n; i++) {
		struct guestram_range range = {.page_bytes = s->page_bytes, .backend = -1};
		const struct map *m = &s->maps->map[i];
		struct map_run e;
		unsigned alike;
		int idx, r;

		if (s->used[i] || m->path[0] != '/' || !is_readwrite(m))
			continue;
		if (path_betrays(s, m->path, &range) != sure ||
			(sure && (range.backend >= 0) != by_name))
			continue;
		if (!sure && !path_allows(m->path, &range))
			continue;
		e = run_of_file(s, i);
		idx = backend_of_size(s, run_bytes(s, &e), range.kind, &alike);
		if (!sure && idx < 0)
			continue;
		r = take_named(s, &e, range, idx, alike);
		if (r)
			return r;
	}
	return 0;
}

/* The backends of one size, all together. */
static int find_anonymous_of_size(struct search *s, uint64_t bytes)
{
	_cleanup_anon_runs_ struct anon_runs runs = {0};
	size_t wanted = 0;
	int r;

	for (size_t i = 0; i < s->backends->n; i++)
		wanted += !s->found[i] && mapped_bytes(s, &s->backends->backend[i]) == bytes &&
			  types_agree(s->backends->backend[i].type, GUESTRAM_ANON);
	r = anon_runs_find(s->maps, s->used, bytes, wanted, &runs);
	if (r)
		return r;
	for (size_t i = 0; i < runs.n; i++) {
		struct guestram_range range = {
			.page_bytes = s->page_bytes, .kind = GUESTRAM_ANON, .backend = -1};
		unsigned alike;
		int idx = backend_of_size(s, bytes, GUESTRAM_ANON, &alike);

		if (alike == 1)
			range.backend = idx;
		if (idx >= 0)
			s->found[idx] = true;
		r = add_range(s, &runs.run[i], range);
		if (r)
			return r;
	}
	return 0;
}

/* Large backends first: a small one may have the size of a part of a large one. */
static int find_anonymous(struct search *s)
{
	uint64_t below = UINT64_MAX;

	for (;;) {
		uint64_t largest = 0;
		int r;

		for (size_t i = 0; i < s->backends->n; i++) {
			const struct ram_backend *b = &s->backends->backend[i];
			uint64_t bytes = mapped_bytes(s, b);

			if (!s->found[i] && bytes < below && bytes > largest &&
				types_agree(b->type, GUESTRAM_ANON))
				largest = bytes;
		}
		if (largest == 0)
			return 0;
		r = find_anonymous_of_size(s, largest);
		if (r)
			return r;
		below = largest;
	}
}

static int find_all(struct search *s)
{
	int r = find_named(s, true, true);

	if (r == 0)
		r = find_named(s, true, false);
	if (r == 0)
		r = find_named(s, false, false);
	if (r == 0)
		r = find_anonymous(s);
	return r;
}

int guestram_find(const struct map_list *maps, const struct ram_backends *backends,
	const struct huge_mounts *mounts, const struct guestram_units *units, struct guestram *ret)
{
	_cleanup_free_ bool *used = calloc(maps->n + 1, sizeof(*used));
	_cleanup_free_ bool *found = calloc(backends->n + 1, sizeof(*found));
	_cleanup_guestram_ struct guestram g = {0};
	struct search s = {
		.maps = maps,
		.backends = backends,
		.mounts = mounts,
		.page_bytes = units && units->page_bytes ? units->page_bytes : BASE_PAGE,
		.huge_bytes = units ? units->huge_bytes : 0,
		.used = used,
		.found = found,
	};
	int r;

	if (!used || !found)
		return -ENOMEM;
	r = find_all(&s);
	g = s.g;
	if (r)
		return r;
	if (g.n == 0)
		return HOST_E_NOT_FOUND;
	for (size_t i = 0; i < backends->n; i++) {
		if (found[i])
			continue;
		g.backends_missing++;
		g.missing_bytes += backends->backend[i].size_bytes;
	}
	*ret = g;
	g.range = NULL;
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
