/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Why tokens and not searches in the line: a path can contain "kernelpagesize_kB=" or " N0"-like
 * text, and readers that looked for these with strstr took it for data. A path token holds no
 * blank and no '=', the kernel sees to that, so cutting at blanks is safe.
 *
 * A token nobody knows is a key from the future and is passed over. A node count that cannot be
 * read spoils its line: the sums would be wrong without anybody seeing it.
 */
#include "controller/host/numamaps.h"

#include <errno.h>

#include "controller/host/parse.h"

#define NODE_ID_MAX 1023u

static const struct {
	const char *name;
	enum numa_policy policy;
} policies[] = {
	/* a name that begins like another one stands before it */
	{"default", NUMA_POLICY_DEFAULT},
	{"local", NUMA_POLICY_LOCAL},
	{"prefer (many)", NUMA_POLICY_PREFER_MANY},
	{"prefer", NUMA_POLICY_PREFER},
	{"bind", NUMA_POLICY_BIND},
	{"interleave", NUMA_POLICY_INTERLEAVE},
	{"weighted interleave", NUMA_POLICY_WEIGHTED_INTERLEAVE},
};

/* What can stand behind a policy's name: the end, a blank, "=flags", ":nodes". */
static bool name_ends(struct text behind)
{
	return behind.n == 0 || behind.p[0] == ' ' || behind.p[0] == '=' || behind.p[0] == ':';
}

/* "=static|balancing:0-1", or ":0-1", or nothing. */
static void take_policy_tail(struct text tail, struct numa_vma *vma)
{
	struct text flags = tail, nodes, flag;

	if (text_cut(tail, ':', &flags, &nodes) &&
		idset_parse_list(nodes.p, nodes.n, &vma->policy_nodes))
		idset_clear(&vma->policy_nodes);
	if (!text_skip(&flags, "="))
		return;
	while (text_split(&flags, '|', &flag))
		if (text_equal(flag, "balancing"))
			vma->policy_balancing = true;
	/* 2.6.1x: "prefer=1", "interleave={0,1}"; its "bind={0/DMA}" is not worth more */
	if (text_skip(&tail, "=") && idset_empty(&vma->policy_nodes)) {
		if (text_skip(&tail, "{") && text_ends(tail, "}"))
			tail.n--;
		if (idset_parse_list(tail.p, tail.n, &vma->policy_nodes))
			idset_clear(&vma->policy_nodes);
	}
}

static bool take_policy(struct text *rest, struct numa_vma *vma)
{
	struct text tail;

	while (text_skip(rest, " "))
		;
	for (size_t i = 0; i < ARRAY_LEN(policies); i++) {
		struct text behind = *rest;

		if (!text_skip(&behind, policies[i].name) || !name_ends(behind))
			continue;
		vma->policy = policies[i].policy;
		*rest = behind;
		if (rest->n && rest->p[0] != ' ' && text_word(rest, &tail))
			take_policy_tail(tail, vma);
		return true;
	}
	vma->policy = NUMA_POLICY_UNKNOWN;
	return text_word(rest, &tail);
}

/* The kernel escapes these four in paths and nothing else. */
static void decode_path(struct text from, char *to)
{
	static const struct {
		char code[5];
		char c;
	} escapes[] = {{"\\040", ' '}, {"\\011", '\t'}, {"\\012", '\n'}, {"\\075", '='}};

	while (from.n) {
		bool escaped = false;

		for (size_t i = 0; i < ARRAY_LEN(escapes) && !escaped; i++) {
			escaped = text_skip(&from, escapes[i].code);
			if (escaped)
				*to++ = escapes[i].c;
		}
		if (escaped)
			continue;
		*to++ = from.p[0] ? from.p[0] : '?';
		from = text_of(from.p + 1, from.n - 1);
	}
	*to = '\0';
}

/* "N8=262144"; false spoils the line. */
static bool take_count(struct text key, struct text value, struct numa_vma *vma)
{
	struct numa_count *c;
	unsigned node;

	if (vma->n_counts == NUMA_VMA_NODES_MAX || !text_skip(&key, "N") ||
		!parse_uint(key, NODE_ID_MAX, &node))
		return false;
	c = &vma->count[vma->n_counts];
	c->node = node;
	if (!parse_u64(value, UINT64_MAX, &c->pages))
		return false;
	vma->n_counts++;
	return true;
}

static bool take_token(struct text word, struct numa_vma *vma, char *path)
{
	struct text key, value;
	uint64_t n;

	if (!text_cut(word, '=', &key, &value)) {
		if (text_equal(word, "huge"))
			vma->huge = true;
		else if (vma->kind != NUMA_VMA_ANON)
			return true; /* a file it is, and stays */
		else if (text_equal(word, "heap"))
			vma->kind = NUMA_VMA_HEAP;
		else if (text_equal(word, "stack"))
			vma->kind = NUMA_VMA_STACK;
		return true;
	}
	if (text_equal(key, "file")) {
		vma->kind = NUMA_VMA_FILE;
		decode_path(value, path);
	} else if (text_starts(key, "N")) {
		return take_count(key, value, vma);
	} else if (text_equal(key, "kernelpagesize_kB")) {
		if (!parse_u64(value, UINT64_MAX >> 10, &n) || n == 0)
			return false;
		vma->page_bytes = n << 10;
	} else if (text_equal(key, "anon")) {
		return parse_u64(value, UINT64_MAX, &vma->anon_pages);
	} else if (text_equal(key, "dirty")) {
		return parse_u64(value, UINT64_MAX, &vma->dirty_pages);
	}
	return true;
}

/* @path: room for the whole line. */
static bool take_line(
	struct text line, const struct numa_maps_units *units, struct numa_vma *vma, char *path)
{
	struct text word;

	/* not the whole struct: its counts are large, and n_counts says how many are valid */
	vma->policy_balancing = false;
	idset_clear(&vma->policy_nodes);
	vma->kind = NUMA_VMA_ANON;
	vma->path = path;
	vma->huge = false;
	vma->page_bytes = 0;
	vma->anon_pages = vma->dirty_pages = 0;
	vma->n_counts = 0;
	path[0] = '\0';

	if (!text_word(&line, &word) || !parse_hex(word, UINT64_MAX, &vma->start) ||
		!take_policy(&line, vma))
		return false;
	while (text_word(&line, &word))
		if (!take_token(word, vma, path))
			return false;
	if (vma->page_bytes == 0)
		vma->page_bytes = vma->huge ? units->huge_bytes : units->page_bytes;
	for (unsigned i = 0; i < vma->n_counts; i++)
		if (__builtin_mul_overflow(
			    vma->count[i].pages, vma->page_bytes, &vma->count[i].bytes))
			return false;
	return true;
}

int numa_maps_parse(const char *text, size_t len, const struct numa_maps_units *units,
	numa_vma_fn fn, void *userdata, struct numa_maps_result *ret)
{
	const struct numa_maps_units u = {
		.page_bytes = units && units->page_bytes ? units->page_bytes : 4096,
		.huge_bytes = units && units->huge_bytes ? units->huge_bytes : UINT64_C(2) << 20,
	};
	_cleanup_free_ struct numa_vma *vma = calloc(1, sizeof(*vma));
	size_t path_size = 4096;
	_cleanup_free_ char *path = malloc(path_size);
	struct numa_maps_result result = {0};
	struct text rest = text_of(text, len), line;
	bool ended;
	int r;

	if (!vma || !path)
		return -ENOMEM;
	if (len == 0)
		return HOST_E_NOT_FOUND;
	while (text_line(&rest, &line, &ended)) {
		if (line.n + 1 > path_size) {
			char *p = realloc(path, line.n * 2 + 256);

			if (!p)
				return -ENOMEM;
			path = p;
			path_size = line.n * 2 + 256;
		}
		result.incomplete = !ended;
		if (!ended || !take_line(line, &u, vma, path)) {
			result.anomalies++;
			continue;
		}
		result.lines++;
		r = fn(vma, userdata);
		if (r)
			return r;
	}
	if (ret)
		*ret = result;
	return 0;
}

int numa_maps_read(const struct hostfs *fs, pid_t pid, const struct numa_maps_units *units,
	numa_vma_fn fn, void *userdata, struct numa_maps_result *ret)
{
	_cleanup_free_ char *text = NULL;
	size_t len;
	int r;

	r = hostfs_read(fs, HOST_LIMIT_MAPS, &text, &len, "proc/%d/numa_maps", (int)pid);
	return r ? r : numa_maps_parse(text, len, units, fn, userdata, ret);
}
