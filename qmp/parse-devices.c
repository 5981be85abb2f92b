/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Replies about memory, I/O threads and the balloon.
 *
 * Why kinds and policies have an OTHER: QEMU adds words, and a VM must not become unreadable for
 * one device that nobody here knows.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "qmp/parse.h"

static void clear_memdev(void *item)
{
	free(((struct qmp_memdev *)item)->host_node);
}

void qmp_memdevs_clear(struct qmp_memdevs *memdevs)
{
	for (size_t i = 0; i < memdevs->n; i++)
		clear_memdev(&memdevs->memdev[i]);
	free(memdevs->memdev);
	*memdevs = (struct qmp_memdevs){0};
}

static int read_host_node(const struct parse_at *at, struct json_object *item, void *ret_item)
{
	uint64_t v = 0;
	int r = qmp_take_value_u64(at, item, QMP_HOST_NODE_MAX, &v);

	if (r == 0)
		*(unsigned *)ret_item = (unsigned)v;
	return r;
}

static int by_number(const void *a, const void *b)
{
	unsigned x = *(const unsigned *)a, y = *(const unsigned *)b;

	return (x > y) - (x < y);
}

static int read_host_nodes(
	const struct parse_at *at, struct json_object *item, struct qmp_memdev *m)
{
	static const struct parse_items how = {sizeof(unsigned), read_host_node, NULL};
	struct parse_at here = parse_below(at, "host-nodes");
	struct json_object *nodes = NULL;
	size_t n = 0;
	int r = qmp_take_list(at, item, "host-nodes", &nodes);

	if (r == 0)
		r = qmp_take_items(&here, nodes, &how, &m->host_node, &m->n_host_nodes);
	if (r != 0)
		return r;
	qsort(m->host_node, m->n_host_nodes, sizeof(*m->host_node), by_number);
	for (size_t i = 0; i < m->n_host_nodes; i++)
		if (n == 0 || m->host_node[n - 1] != m->host_node[i])
			m->host_node[n++] = m->host_node[i];
	m->n_host_nodes = n;
	return 0;
}

static int read_policy(
	const struct parse_at *at, struct json_object *item, enum qmp_host_policy *ret)
{
	static const char *const words[QMP_POLICY_OTHER] = {
		[QMP_POLICY_DEFAULT] = "default",
		[QMP_POLICY_PREFERRED] = "preferred",
		[QMP_POLICY_BIND] = "bind",
		[QMP_POLICY_INTERLEAVE] = "interleave",
	};
	unsigned policy = 0;
	char word[16];
	int r = qmp_take_text(at, item, "policy", PARSE_MUST, word, sizeof(word));

	if (r != 0)
		return r;
	while (policy < QMP_POLICY_OTHER && strcmp(word, words[policy]) != 0)
		policy++;
	*ret = (enum qmp_host_policy)policy;
	return 0;
}

static int read_memdev(const struct parse_at *at, struct json_object *item, void *ret_item)
{
	struct qmp_memdev *m = ret_item;
	int r = qmp_take_is_object(at, item);

	m->reserve = true;
	if (r == 0)
		r = qmp_take_text(at, item, "id", PARSE_MAY, m->id, sizeof(m->id));
	if (r == 0)
		r = qmp_take_bytes(at, item, "size", PARSE_MUST, &m->size_bytes);
	if (r == 0)
		r = qmp_take_bool(at, item, "merge", PARSE_MUST, &m->merge);
	if (r == 0)
		r = qmp_take_bool(at, item, "dump", PARSE_MUST, &m->dump);
	if (r == 0)
		r = qmp_take_bool(at, item, "prealloc", PARSE_MUST, &m->prealloc);
	if (r == 0)
		r = qmp_take_bool(at, item, "share", PARSE_MAY, &m->share);
	if (r == 0)
		r = qmp_take_bool(at, item, "reserve", PARSE_MAY, &m->reserve);
	if (r == 0)
		r = read_policy(at, item, &m->policy);
	return r == 0 ? read_host_nodes(at, item, m) : r;
}

static int read_memdevs(struct json_object *reply, void *ret, struct qmp_error *err)
{
	static const struct parse_items how = {
		sizeof(struct qmp_memdev), read_memdev, clear_memdev};
	struct parse_at at = parse_top("query-memdev", err);
	struct qmp_memdevs memdevs = {0};
	int r = qmp_take_items(&at, reply, &how, &memdevs.memdev, &memdevs.n);

	if (r == 0)
		*(struct qmp_memdevs *)ret = memdevs;
	return r;
}

int qmp_parse_memdev(struct json_object *ret_member, struct qmp_memdevs *ret, struct qmp_error *err)
{
	return read_memdevs(ret_member, ret, err);
}

int qmp_query_memdev(
	struct qmp *q, uint64_t timeout_ns, struct qmp_memdevs *ret, struct qmp_error *err)
{
	return qmp_take_query(q, "query-memdev", NULL, timeout_ns, read_memdevs, ret, err);
}

void qmp_memory_devices_clear(struct qmp_memory_devices *devices)
{
	free(devices->device);
	*devices = (struct qmp_memory_devices){0};
}

static int read_memory_kind(
	const struct parse_at *at, struct json_object *item, enum qmp_memory_kind *ret)
{
	static const char *const words[QMP_MEMORY_OTHER] = {
		[QMP_MEMORY_DIMM] = "dimm",
		[QMP_MEMORY_NVDIMM] = "nvdimm",
		[QMP_MEMORY_VIRTIO_MEM] = "virtio-mem",
		[QMP_MEMORY_VIRTIO_PMEM] = "virtio-pmem",
	};
	unsigned kind = 0;
	char word[16];
	int r = qmp_take_text(at, item, "type", PARSE_MUST, word, sizeof(word));

	if (r != 0)
		return r;
	while (kind < QMP_MEMORY_OTHER && strcmp(word, words[kind]) != 0)
		kind++;
	*ret = (enum qmp_memory_kind)kind;
	return 0;
}

static int read_memory_device(const struct parse_at *at, struct json_object *item, void *ret_item)
{
	struct parse_at below = parse_below(at, "data");
	struct qmp_memory_device *d = ret_item;
	struct json_object *data = NULL;
	enum parse_need need;
	const char *address;
	int r = qmp_take_is_object(at, item);

	d->slot = d->node = -1;
	if (r == 0)
		r = read_memory_kind(at, item, &d->kind);
	if (r == 0)
		r = qmp_take_object(at, item, "data", PARSE_MUST, &data);
	if (r != 0)
		return r;
	need = d->kind == QMP_MEMORY_OTHER ? PARSE_MAY : PARSE_MUST;
	address = d->kind == QMP_MEMORY_DIMM || d->kind == QMP_MEMORY_NVDIMM ? "addr" : "memaddr";
	r = qmp_take_text(&below, data, "id", PARSE_MAY, d->id, sizeof(d->id));
	if (r == 0)
		r = qmp_take_text(&below, data, "memdev", need, d->memdev, sizeof(d->memdev));
	if (r == 0)
		r = qmp_take_bytes(&below, data, address, PARSE_MAY, &d->address);
	if (r == 0)
		r = qmp_take_bytes(&below, data, "size", need, &d->size_bytes);
	if (r == 0)
		r = qmp_take_int(&below, data, "slot", PARSE_MAY, &d->slot);
	if (r == 0)
		r = qmp_take_int(&below, data, "node", PARSE_MAY, &d->node);
	if (r == 0)
		r = qmp_take_bool(&below, data, "hotplugged", PARSE_MAY, &d->hotplugged);
	if (r == 0)
		r = qmp_take_bool(&below, data, "hotpluggable", PARSE_MAY, &d->hotpluggable);
	return r;
}

static int read_memory_devices(struct json_object *reply, void *ret, struct qmp_error *err)
{
	static const struct parse_items how = {
		sizeof(struct qmp_memory_device), read_memory_device, NULL};
	struct parse_at at = parse_top("query-memory-devices", err);
	struct qmp_memory_devices devices = {0};
	int r = qmp_take_items(&at, reply, &how, &devices.device, &devices.n);

	if (r == 0)
		*(struct qmp_memory_devices *)ret = devices;
	return r;
}

int qmp_parse_memory_devices(
	struct json_object *ret_member, struct qmp_memory_devices *ret, struct qmp_error *err)
{
	return read_memory_devices(ret_member, ret, err);
}

int qmp_query_memory_devices(
	struct qmp *q, uint64_t timeout_ns, struct qmp_memory_devices *ret, struct qmp_error *err)
{
	return qmp_take_query(
		q, "query-memory-devices", NULL, timeout_ns, read_memory_devices, ret, err);
}

void qmp_iothreads_clear(struct qmp_iothreads *iothreads)
{
	free(iothreads->iothread);
	*iothreads = (struct qmp_iothreads){0};
}

static int read_iothread(const struct parse_at *at, struct json_object *item, void *ret_item)
{
	struct qmp_iothread *t = ret_item;
	int r = qmp_take_is_object(at, item);

	if (r == 0)
		r = qmp_take_text(at, item, "id", PARSE_MUST, t->id, sizeof(t->id));
	return r == 0 ? qmp_take_tid(at, item, "thread-id", &t->tid) : r;
}

static int read_iothreads(struct json_object *reply, void *ret, struct qmp_error *err)
{
	static const struct parse_items how = {sizeof(struct qmp_iothread), read_iothread, NULL};
	struct parse_at at = parse_top("query-iothreads", err);
	struct qmp_iothreads iothreads = {0};
	int r = qmp_take_items(&at, reply, &how, &iothreads.iothread, &iothreads.n);

	if (r == 0)
		*(struct qmp_iothreads *)ret = iothreads;
	return r;
}

int qmp_parse_iothreads(
	struct json_object *ret_member, struct qmp_iothreads *ret, struct qmp_error *err)
{
	return read_iothreads(ret_member, ret, err);
}

int qmp_query_iothreads(
	struct qmp *q, uint64_t timeout_ns, struct qmp_iothreads *ret, struct qmp_error *err)
{
	return qmp_take_query(q, "query-iothreads", NULL, timeout_ns, read_iothreads, ret, err);
}

static int read_balloon(struct json_object *reply, void *ret, struct qmp_error *err)
{
	struct parse_at at = parse_top("query-balloon", err);
	struct qmp_balloon b = {.has_balloon = true};
	int r = qmp_take_is_object(&at, reply);

	if (r == 0)
		r = qmp_take_bytes(&at, reply, "actual", PARSE_MUST, &b.actual_bytes);
	if (r == 0)
		*(struct qmp_balloon *)ret = b;
	return r;
}

int qmp_parse_balloon(
	struct json_object *ret_member, struct qmp_balloon *ret, struct qmp_error *err)
{
	return read_balloon(ret_member, ret, err);
}

int qmp_query_balloon(
	struct qmp *q, uint64_t timeout_ns, struct qmp_balloon *ret, struct qmp_error *err)
{
	struct qmp_error why = {0};
	int r = qmp_take_query(q, "query-balloon", NULL, timeout_ns, read_balloon, ret, &why);

	if (r == QMP_E_REMOTE && strcmp(why.class_name, "DeviceNotActive") == 0) {
		*ret = (struct qmp_balloon){0};
		return 0;
	}
	if (r > 0 && err)
		*err = why;
	return r;
}
