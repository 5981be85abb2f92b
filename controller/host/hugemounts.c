/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Why mounts: the path of a mapping does not say which page size it has, and a host can have one
 * mount for each size. The mount that is nearest to the file counts.
 */
#include "controller/host/hugemounts.h"

#include <errno.h>

#include "controller/host/parse.h"

/* "2M", "1024M", "1G", "2048k", "2097152" */
static bool parse_pagesize(struct text t, uint64_t *ret)
{
	unsigned shift = 0;
	uint64_t n;

	if (t.n == 0)
		return false;
	switch (t.p[t.n - 1]) {
	case 'k':
	case 'K':
		shift = 10;
		break;
	case 'm':
	case 'M':
		shift = 20;
		break;
	case 'g':
	case 'G':
		shift = 30;
		break;
	default:
		break;
	}
	if (shift)
		t.n--;
	if (!parse_u64(t, UINT64_MAX >> shift, &n) || n == 0)
		return false;
	*ret = n << shift;
	return true;
}

void huge_mounts_parse(
	const char *text, size_t len, uint64_t huge_default_bytes, struct huge_mounts *ret)
{
	struct text rest = text_of(text, len), line;
	bool ended;

	*ret = (struct huge_mounts){0};
	while (ret->n < HUGE_MOUNTS_MAX && text_line(&rest, &line, &ended) && ended) {
		struct huge_mount *m = &ret->mount[ret->n];
		struct text source, path, type, options, option;

		if (!text_word(&line, &source) || !text_word(&line, &path) ||
			!text_word(&line, &type) || !text_word(&line, &options) ||
			!text_equal(type, "hugetlbfs") || path.n >= sizeof(m->path))
			continue;
		text_copy(path, m->path, sizeof(m->path));
		m->page_bytes = huge_default_bytes;
		while (text_split(&options, ',', &option))
			if (text_skip(&option, "pagesize="))
				parse_pagesize(option, &m->page_bytes);
		ret->n++;
	}
}

int huge_mounts_read(
	const struct hostfs *fs, pid_t pid, uint64_t huge_default_bytes, struct huge_mounts *ret)
{
	_cleanup_free_ char *text = NULL;
	size_t len;
	int r;

	r = hostfs_read(fs, HOST_LIMIT_MEDIUM, &text, &len, "proc/%d/mounts", (int)pid);
	if (r)
		return r;
	huge_mounts_parse(text, len, huge_default_bytes, ret);
	return 0;
}

const struct huge_mount *huge_mounts_find(const struct huge_mounts *mounts, const char *path)
{
	const struct huge_mount *best = NULL;
	size_t best_n = 0;

	for (unsigned i = 0; i < mounts->n; i++) {
		const struct huge_mount *m = &mounts->mount[i];
		size_t n = strlen(m->path);

		if (n > best_n && strncmp(path, m->path, n) == 0 && path[n] == '/') {
			best = m;
			best_n = n;
		}
	}
	return best;
}
