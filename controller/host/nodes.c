/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Why the distance line is cut at blanks and counted, instead of read by position: the kernel puts
 * a blank before every value whose node *id* is not 0, so the line begins with a blank where node 0
 * is not online; and there is one column for each online node, none for the gaps between ids. The
 * c-th value belongs to the c-th online id, and only the topology knows which index that has.
 */
#include "controller/host/nodes.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "controller/host/parse.h"

#define NODE_DIR "sys/devices/system/node"
#define CPU_DIR "sys/devices/system/cpu"

static _printf_(2, 3) void warn(struct host_nodes *h, const char *fmt, ...)
{
	va_list ap;

	if (h->n_warnings == NODES_WARNINGS_MAX) {
		h->warnings_lost++;
		return;
	}
	va_start(ap, fmt);
	vsnprintf(h->warning[h->n_warnings], NODES_WARNING_LEN, fmt, ap);
	va_end(ap);
	h->n_warnings++;
}

int nodes_parse_distance(const char *text, size_t len, unsigned n, uint16_t *ret)
{
	struct text rest = text_trim(text_of(text, len)), word;
	_cleanup_free_ uint16_t *row = calloc((size_t)n + 1, sizeof(*row));
	unsigned got = 0;

	if (!row)
		return -ENOMEM;
	while (text_word(&rest, &word)) {
		uint64_t v;

		if (got == n)
			return HOST_E_FORMAT;
		if (!parse_u64(word, UINT64_MAX, &v))
			return HOST_E_FORMAT;
		row[got++] = (uint16_t)MIN2(v, (uint64_t)UINT16_MAX);
	}
	if (got != n)
		return HOST_E_FORMAT;
	if (n)
		memcpy(ret, row, n * sizeof(*row));
	return 0;
}

/* One list file. Returns as hostfs_read() does, or HOST_E_FORMAT. */
static int read_list(const struct hostfs *fs, const char *path, struct idset *ret)
{
	_cleanup_free_ char *text = NULL;
	size_t len;
	int r;

	r = hostfs_read(fs, HOST_LIMIT_SMALL, &text, &len, "%s", path);
	if (r)
		return r;
	return idset_parse_list(text, len, ret) ? HOST_E_FORMAT : 0;
}

/* A list file that may be missing (@ret is then empty), with a warning if it is odd. */
static int read_optional_list(
	const struct hostfs *fs, const char *path, struct host_nodes *h, struct idset *ret)
{
	int r = read_list(fs, path, ret);

	if (r > 0 && r != HOST_E_GONE)
		warn(h, "/%s: %s", path, host_strerror(r));
	return r < 0 ? r : 0;
}

/* The value of "KEY: 123 kB" or "KEY: 123"; @line begins with the key. */
static bool take_meminfo(struct text line, const char *key, uint64_t *ret)
{
	struct text number, unit;
	uint64_t v;

	if (!text_skip(&line, key) || !text_skip(&line, ":") || !text_word(&line, &number) ||
		!parse_u64(number, UINT64_MAX >> 10, &v))
		return false;
	*ret = text_word(&line, &unit) && text_equal(unit, "kB") ? v << 10 : v;
	return true;
}

/* @node: drop "Node N " at the beginning of each line. False if MemTotal is not in it. */
static bool parse_meminfo(
	struct text rest, bool node, struct node_memory *m, uint64_t *ret_huge_bytes)
{
	struct text line, word;
	bool found = false, ended;

	while (text_line(&rest, &line, &ended) && ended) {
		if (node && !(text_skip(&line, "Node ") && text_word(&line, &word)))
			continue;
		line = text_trim(line);
		if (take_meminfo(line, "MemTotal", &m->total_bytes))
			found = true;
		else if (!take_meminfo(line, "MemFree", &m->free_bytes) && ret_huge_bytes)
			take_meminfo(line, "Hugepagesize", ret_huge_bytes);
	}
	m->known = found;
	return found;
}

static int read_number(
	const struct hostfs *fs, const char *dir, const char *pool, const char *file, uint64_t *ret)
{
	_cleanup_free_ char *text = NULL;
	size_t len;
	int r;

	r = hostfs_read(fs, HOST_LIMIT_SMALL, &text, &len, "%s/%s/%s", dir, pool, file);
	if (r)
		return r;
	return parse_u64(text_trim(text_of(text, len)), UINT64_MAX, ret) ? 0 : HOST_E_FORMAT;
}

static void insert_pool(struct node_memory *m, const struct huge_pool *pool)
{
	unsigned at = 0;

	while (at < m->n_pools && m->pool[at].page_bytes < pool->page_bytes)
		at++;
	memmove(m->pool + at + 1, m->pool + at, (m->n_pools - at) * sizeof(*pool));
	m->pool[at] = *pool;
	m->n_pools++;
}

/* @dir: holds hugepages-<kB>kB directories; that it is missing is normal. */
static int read_pools(
	const struct hostfs *fs, const char *dir, struct host_nodes *h, struct node_memory *m)
{
	_cleanup_host_names_ struct host_names names = {0};
	int r = hostfs_list(fs, 256, &names, "%s", dir);

	if (r)
		return MIN2(r, 0);
	for (size_t i = 0; i < names.n; i++) {
		const char *name = names.name[i];
		struct text t = text_of(name, strlen(name));
		struct huge_pool pool = {0};
		uint64_t kb;

		if (!text_skip(&t, "hugepages-") || !text_ends(t, "kB"))
			continue;
		t.n -= 2;
		if (!parse_u64(t, UINT64_MAX >> 10, &kb) || kb == 0)
			continue;
		pool.page_bytes = kb << 10;
		r = read_number(fs, dir, name, "nr_hugepages", &pool.total_pages);
		if (r == 0)
			r = read_number(fs, dir, name, "free_hugepages", &pool.free_pages);
		if (r < 0)
			return r;
		if (r || m->n_pools == NODES_POOLS_MAX) {
			warn(h, "/%s/%s: %s", dir, name, r ? host_strerror(r) : "too many sizes");
			continue;
		}
		if (read_number(fs, dir, name, "surplus_hugepages", &pool.surplus_pages) < 0)
			return -ENOMEM;
		insert_pool(m, &pool);
	}
	return 0;
}

/* nodeN/cpulist, the CPUs that are online. */
static int read_node_cpus(const struct hostfs *fs, struct host_nodes *h, struct topology_node *node)
{
	char path[96];
	int r;

	snprintf(path, sizeof(path), NODE_DIR "/node%u/cpulist", node->id);
	r = read_list(fs, path, &node->cpus);
	if (r > 0)
		warn(h, "node %u: cpulist %s; it counts as without CPUs", node->id,
			host_strerror(r));
	/* the kernel lists online CPUs only, but not at the same moment as cpu/online */
	if (r == 0 && !idset_empty(&h->cpus_online))
		idset_and(&node->cpus, &h->cpus_online);
	node->has_cpu = !idset_empty(&node->cpus);
	return r;
}

static int read_node_memory(
	const struct hostfs *fs, struct host_nodes *h, unsigned id, struct node_memory *m)
{
	_cleanup_free_ char *text = NULL;
	char dir[96];
	size_t len;
	int r;

	r = hostfs_read(fs, HOST_LIMIT_SMALL, &text, &len, NODE_DIR "/node%u/meminfo", id);
	if (r < 0)
		return r;
	if (r == 0 && !parse_meminfo(text_of(text, len), true, m, NULL))
		r = HOST_E_FORMAT;
	if (r)
		warn(h, "node %u: meminfo %s; its memory is not known", id, host_strerror(r));
	snprintf(dir, sizeof(dir), NODE_DIR "/node%u/hugepages", id);
	if (read_pools(fs, dir, h, m) < 0)
		return -ENOMEM;
	return r;
}

/* @columns: one value for each online id. */
static int read_node_distance(const struct hostfs *fs, struct host_nodes *h, unsigned id,
	unsigned n_columns, uint16_t *columns)
{
	_cleanup_free_ char *text = NULL;
	size_t len;
	int r;

	r = hostfs_read(fs, HOST_LIMIT_SMALL, &text, &len, NODE_DIR "/node%u/distance", id);
	if (r == 0)
		r = nodes_parse_distance(text, len, n_columns, columns);
	if (r > 0) {
		memset(columns, 0, n_columns * sizeof(*columns));
		warn(h, "node %u: distance %s; remote distances count as %u", id, host_strerror(r),
			DISTANCE_REMOTE_DEFAULT);
	}
	return r;
}

/* Reads one node into the next free index, unless nothing of it can be read. */
static int read_node(const struct hostfs *fs, struct host_nodes *h, unsigned id, uint16_t *columns)
{
	unsigned idx = h->topology.n_nodes;
	struct topology_node *node = &h->topology.node[idx];
	struct node_memory *memory = &h->memory[idx];
	int cpus, mem, distance;

	*node = (struct topology_node){.id = id};
	cpus = read_node_cpus(fs, h, node);
	mem = read_node_memory(fs, h, id, memory);
	distance = read_node_distance(fs, h, id, idset_count(&h->online), columns);
	if (cpus < 0 || mem < 0 || distance < 0)
		return -ENOMEM;
	if (cpus && mem && distance) {
		warn(h, "node %u: nothing of it can be read; it is left out", id);
		*memory = (struct node_memory){0};
		return 0;
	}
	node->has_memory = memory->known ? memory->total_bytes > 0 : idset_has(&h->has_memory, id);
	h->topology.n_nodes++;
	return 0;
}

static int read_all_nodes(const struct hostfs *fs, struct host_nodes *h)
{
	unsigned n_columns = idset_count(&h->online);
	_cleanup_free_ uint16_t *columns = calloc((size_t)n_columns + 1, sizeof(*columns));
	/* as read, by index and column, until it is known which ids have an index */
	_cleanup_free_ uint16_t *table =
		calloc((size_t)TOPOLOGY_NODES_MAX * (n_columns + 1), sizeof(*table));
	struct topology *t = &h->topology;
	unsigned column = 0;
	int r;

	if (!columns || !table)
		return -ENOMEM;
	idset_foreach (id, &h->online) {
		unsigned idx = t->n_nodes;

		if (idx == TOPOLOGY_NODES_MAX) {
			warn(h, "more than %u nodes: node %d and later ones are left out",
				TOPOLOGY_NODES_MAX, id);
			break;
		}
		r = read_node(fs, h, (unsigned)id, columns);
		if (r)
			return r;
		if (t->n_nodes > idx)
			memcpy(table + (size_t)idx * n_columns, columns,
				n_columns * sizeof(*columns));
	}
	idset_foreach (id, &h->online) {
		int idx = topology_index(t, (unsigned)id);

		for (unsigned row = 0; idx >= 0 && row < t->n_nodes; row++)
			t->distance[row][idx] = table[(size_t)row * n_columns + column];
		column++;
	}
	return 0;
}

/* No /sys/devices/system/node: everything is one node 0. */
static int make_single_node(const struct hostfs *fs, struct host_nodes *h)
{
	struct topology *t = &h->topology;

	t->n_nodes = 1;
	t->node[0].id = 0;
	t->node[0].cpus = h->cpus_online;
	t->node[0].has_cpu = !idset_empty(&h->cpus_online);
	t->node[0].has_memory = !h->memory[0].known || h->memory[0].total_bytes > 0;
	t->distance[0][0] = DISTANCE_LOCAL;
	idset_add(&h->online, 0);
	if (t->node[0].has_cpu)
		idset_add(&h->has_cpu, 0);
	if (t->node[0].has_memory)
		idset_add(&h->has_memory, 0);
	return read_pools(fs, "sys/kernel/mm/hugepages", h, &h->memory[0]);
}

static int read_cpus(const struct hostfs *fs, struct host_nodes *h)
{
	int r;

	r = read_list(fs, CPU_DIR "/online", &h->cpus_online);
	if (r < 0 || r == HOST_E_FORMAT)
		return r;
	if (r)
		warn(h, "/" CPU_DIR "/online: %s; the nodes' own lists are used", host_strerror(r));
	r = read_optional_list(fs, CPU_DIR "/possible", h, &h->cpus_possible);
	if (r == 0)
		r = read_optional_list(fs, CPU_DIR "/isolated", h, &h->cpus_isolated);
	return r;
}

/* /proc/meminfo: the default huge page, and for a host without nodes its memory. */
static int read_host_meminfo(const struct hostfs *fs, struct host_nodes *h, struct node_memory *ret)
{
	_cleanup_free_ char *text = NULL;
	size_t len;
	int r;

	r = hostfs_read(fs, HOST_LIMIT_SMALL, &text, &len, "proc/meminfo");
	if (r < 0)
		return r;
	if (r == 0)
		parse_meminfo(text_of(text, len), false, ret, &h->huge_default_bytes);
	return 0;
}

static int read_nodes_dir(const struct hostfs *fs, struct host_nodes *h)
{
	int r;

	h->has_numa = true;
	r = read_optional_list(fs, NODE_DIR "/has_cpu", h, &h->has_cpu);
	if (r == 0)
		r = read_optional_list(fs, NODE_DIR "/has_memory", h, &h->has_memory);
	if (r == 0)
		r = read_all_nodes(fs, h);
	if (r == 0 && h->topology.n_nodes == 0)
		r = HOST_E_FORMAT;
	return r;
}

int nodes_read(const struct hostfs *fs, struct host_nodes *ret)
{
	_cleanup_free_ struct host_nodes *h = calloc(1, sizeof(*h));
	struct node_memory host_memory = {0};
	int r;

	if (!h)
		return -ENOMEM;
	r = read_cpus(fs, h);
	if (r)
		return r;
	r = read_host_meminfo(fs, h, &host_memory);
	if (r)
		return r;
	r = read_list(fs, NODE_DIR "/online", &h->online);
	if (r == 0 && !idset_empty(&h->online)) {
		r = read_nodes_dir(fs, h);
	} else if (r == 0 || r == HOST_E_GONE) {
		h->memory[0] = host_memory;
		r = make_single_node(fs, h);
	}
	if (r)
		return r;
	if (idset_empty(&h->cpus_online))
		topology_foreach (i, &h->topology)
			idset_or(&h->cpus_online, &h->topology.node[i].cpus);
	topology_finish(&h->topology);
	if (h->topology.mended)
		warn(h, "%u entries of the distance table cannot be true; they count as %u",
			h->topology.mended, DISTANCE_REMOTE_DEFAULT);
	*ret = *h;
	return 0;
}

const struct huge_pool *nodes_pool(
	const struct host_nodes *nodes, unsigned idx, uint64_t page_bytes)
{
	if (idx >= nodes->topology.n_nodes)
		return NULL;
	for (unsigned i = 0; i < nodes->memory[idx].n_pools; i++)
		if (nodes->memory[idx].pool[i].page_bytes == page_bytes)
			return &nodes->memory[idx].pool[i];
	return NULL;
}
