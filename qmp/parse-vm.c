/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Replies about the VM as a whole and its vCPUs.
 *
 * Why a vCPU's host thread is taken with such care: the caller moves what it names, and `props` has
 * a key of the same name that counts the guest's hyperthreads.
 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "qmp/parse.h"

static int read_status(struct json_object *reply, void *ret, struct qmp_error *err)
{
	struct parse_at at = parse_top("query-status", err);
	struct qmp_status s = {0};
	int r = qmp_take_is_object(&at, reply);

	if (r == 0)
		r = qmp_take_bool(&at, reply, "running", PARSE_MUST, &s.running);
	if (r == 0)
		r = qmp_take_text(&at, reply, "status", PARSE_MUST, s.status, sizeof(s.status));
	if (r == 0)
		*(struct qmp_status *)ret = s;
	return r;
}

int qmp_parse_status(struct json_object *ret_member, struct qmp_status *ret, struct qmp_error *err)
{
	return read_status(ret_member, ret, err);
}

int qmp_query_status(
	struct qmp *q, uint64_t timeout_ns, struct qmp_status *ret, struct qmp_error *err)
{
	return qmp_take_query(q, "query-status", NULL, timeout_ns, read_status, ret, err);
}

static int read_version(struct json_object *reply, void *ret, struct qmp_error *err)
{
	struct parse_at at = parse_top("query-version", err), below = parse_below(&at, "qemu");
	struct json_object *qemu = NULL;
	struct qmp_version v = {0};
	int r = qmp_take_is_object(&at, reply);

	if (r == 0)
		r = qmp_take_object(&at, reply, "qemu", PARSE_MUST, &qemu);
	if (r == 0)
		r = qmp_take_uint(&below, qemu, "major", PARSE_MUST, UINT16_MAX, &v.major);
	if (r == 0)
		r = qmp_take_uint(&below, qemu, "minor", PARSE_MUST, UINT16_MAX, &v.minor);
	if (r == 0)
		r = qmp_take_uint(&below, qemu, "micro", PARSE_MUST, UINT16_MAX, &v.micro);
	if (r == 0)
		r = qmp_take_text(&at, reply, "package", PARSE_MAY, v.package, sizeof(v.package));
	if (r == 0)
		*(struct qmp_version *)ret = v;
	return r;
}

int qmp_parse_version(
	struct json_object *ret_member, struct qmp_version *ret, struct qmp_error *err)
{
	return read_version(ret_member, ret, err);
}

int qmp_query_version(
	struct qmp *q, uint64_t timeout_ns, struct qmp_version *ret, struct qmp_error *err)
{
	return qmp_take_query(q, "query-version", NULL, timeout_ns, read_version, ret, err);
}

static int read_kvm(struct json_object *reply, void *ret, struct qmp_error *err)
{
	struct parse_at at = parse_top("query-kvm", err);
	struct qmp_kvm k = {0};
	int r = qmp_take_is_object(&at, reply);

	if (r == 0)
		r = qmp_take_bool(&at, reply, "enabled", PARSE_MUST, &k.enabled);
	if (r == 0)
		r = qmp_take_bool(&at, reply, "present", PARSE_MUST, &k.present);
	if (r == 0)
		*(struct qmp_kvm *)ret = k;
	return r;
}

int qmp_parse_kvm(struct json_object *ret_member, struct qmp_kvm *ret, struct qmp_error *err)
{
	return read_kvm(ret_member, ret, err);
}

int qmp_query_kvm(struct qmp *q, uint64_t timeout_ns, struct qmp_kvm *ret, struct qmp_error *err)
{
	return qmp_take_query(q, "query-kvm", NULL, timeout_ns, read_kvm, ret, err);
}

static int read_name(struct json_object *reply, void *ret, struct qmp_error *err)
{
	struct parse_at at = parse_top("query-name", err);
	struct qmp_name n = {0};
	int r = qmp_take_is_object(&at, reply);

	if (r == 0)
		r = qmp_take_text(&at, reply, "name", PARSE_MAY, n.name, sizeof(n.name));
	if (r == 0)
		*(struct qmp_name *)ret = n;
	return r;
}

int qmp_parse_name(struct json_object *ret_member, struct qmp_name *ret, struct qmp_error *err)
{
	return read_name(ret_member, ret, err);
}

int qmp_query_name(struct qmp *q, uint64_t timeout_ns, struct qmp_name *ret, struct qmp_error *err)
{
	return qmp_take_query(q, "query-name", NULL, timeout_ns, read_name, ret, err);
}

static bool is_uuid(const char *text)
{
	static const char form[] = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";

	for (size_t i = 0; i < sizeof(form); i++)
		if (form[i] == 'x' ? !isxdigit((unsigned char)text[i]) : text[i] != form[i])
			return false;
	return true;
}

static int read_uuid(struct json_object *reply, void *ret, struct qmp_error *err)
{
	struct parse_at at = parse_top("query-uuid", err);
	struct qmp_uuid *uuid = ret;
	char text[sizeof(uuid->uuid) + 1]; /* one more: what is too long is not a UUID */
	int r = qmp_take_is_object(&at, reply);

	if (r == 0)
		r = qmp_take_text(&at, reply, "UUID", PARSE_MUST, text, sizeof(text));
	if (r != 0)
		return r;
	if (!is_uuid(text))
		return qmp_take_wrong(&at, "UUID is not a UUID");
	memcpy(uuid->uuid, text, sizeof(uuid->uuid));
	return 0;
}

int qmp_parse_uuid(struct json_object *ret_member, struct qmp_uuid *ret, struct qmp_error *err)
{
	return read_uuid(ret_member, ret, err);
}

int qmp_query_uuid(struct qmp *q, uint64_t timeout_ns, struct qmp_uuid *ret, struct qmp_error *err)
{
	return qmp_take_query(q, "query-uuid", NULL, timeout_ns, read_uuid, ret, err);
}

void qmp_cpus_clear(struct qmp_cpus *cpus)
{
	free(cpus->cpu);
	*cpus = (struct qmp_cpus){0};
}

static int read_cpu(const struct parse_at *at, struct json_object *item, void *ret_item)
{
	struct qmp_cpu *c = ret_item;
	int r = qmp_take_is_object(at, item);

	if (r == 0)
		r = qmp_take_uint(at, item, "cpu-index", PARSE_MUST, QMP_CPU_INDEX_MAX, &c->index);
	if (r == 0)
		r = qmp_take_tid(at, item, "thread-id", &c->tid);
	if (r == 0)
		r = qmp_take_text(
			at, item, "qom-path", PARSE_MUST, c->qom_path, sizeof(c->qom_path));
	if (r == 0)
		r = qmp_take_text(at, item, "target", PARSE_MAY, c->target, sizeof(c->target));
	if (r == 0)
		r = qmp_take_props(at, item, PARSE_MAY, &c->props);
	return r;
}

static int by_index(const void *a, const void *b)
{
	const struct qmp_cpu *x = a, *y = b;

	return (x->index > y->index) - (x->index < y->index);
}

static int by_tid(const void *a, const void *b)
{
	pid_t x = *(const pid_t *)a, y = *(const pid_t *)b;

	return (x > y) - (x < y);
}

/* Returns 0 or -ENOMEM. */
static int find_shared_thread(const struct qmp_cpus *cpus, bool *ret)
{
	pid_t *tids = malloc((cpus->n ? cpus->n : 1) * sizeof(*tids));
	bool shared = false;

	if (!tids)
		return -ENOMEM;
	for (size_t i = 0; i < cpus->n; i++)
		tids[i] = cpus->cpu[i].tid;
	qsort(tids, cpus->n, sizeof(*tids), by_tid);
	for (size_t i = 1; i < cpus->n; i++)
		shared |= tids[i] == tids[i - 1];
	free(tids);
	*ret = shared;
	return 0;
}

static int read_cpus(struct json_object *reply, void *ret, struct qmp_error *err)
{
	static const struct parse_items how = {sizeof(struct qmp_cpu), read_cpu, NULL};
	struct parse_at at = parse_top("query-cpus-fast", err);
	_cleanup_(qmp_cpus_clear) struct qmp_cpus cpus = {0};
	int r = qmp_take_items(&at, reply, &how, &cpus.cpu, &cpus.n);

	if (r != 0)
		return r;
	qsort(cpus.cpu, cpus.n, sizeof(*cpus.cpu), by_index);
	for (size_t i = 1; i < cpus.n; i++)
		if (cpus.cpu[i].index == cpus.cpu[i - 1].index)
			return qmp_take_wrong(
				&at, "two items have the cpu-index %u", cpus.cpu[i].index);
	r = find_shared_thread(&cpus, &cpus.shared_thread);
	if (r != 0)
		return r;
	*(struct qmp_cpus *)ret = cpus;
	cpus = (struct qmp_cpus){0};
	return 0;
}

int qmp_parse_cpus_fast(struct json_object *ret_member, struct qmp_cpus *ret, struct qmp_error *err)
{
	return read_cpus(ret_member, ret, err);
}

int qmp_query_cpus_fast(
	struct qmp *q, uint64_t timeout_ns, struct qmp_cpus *ret, struct qmp_error *err)
{
	return qmp_take_query(q, "query-cpus-fast", NULL, timeout_ns, read_cpus, ret, err);
}

void qmp_cpu_slots_clear(struct qmp_cpu_slots *slots)
{
	free(slots->slot);
	*slots = (struct qmp_cpu_slots){0};
}

static int read_slot(const struct parse_at *at, struct json_object *item, void *ret_item)
{
	struct qmp_cpu_slot *s = ret_item;
	int r = qmp_take_is_object(at, item);

	if (r == 0)
		r = qmp_take_text(at, item, "type", PARSE_MUST, s->type, sizeof(s->type));
	if (r == 0)
		r = qmp_take_uint(
			at, item, "vcpus-count", PARSE_MUST, QMP_CPU_INDEX_MAX + 1, &s->vcpus);
	if (r == 0)
		r = qmp_take_props(at, item, PARSE_MUST, &s->props);
	if (r == 0)
		r = qmp_take_text(
			at, item, "qom-path", PARSE_MAY, s->qom_path, sizeof(s->qom_path));
	s->present = r == 0 && json_object_object_get_ex(item, "qom-path", NULL);
	return r;
}

static int read_slots(struct json_object *reply, void *ret, struct qmp_error *err)
{
	static const struct parse_items how = {sizeof(struct qmp_cpu_slot), read_slot, NULL};
	struct parse_at at = parse_top("query-hotpluggable-cpus", err);
	struct qmp_cpu_slots slots = {0};
	int r = qmp_take_items(&at, reply, &how, &slots.slot, &slots.n);

	if (r == 0)
		*(struct qmp_cpu_slots *)ret = slots;
	return r;
}

int qmp_parse_hotpluggable_cpus(
	struct json_object *ret_member, struct qmp_cpu_slots *ret, struct qmp_error *err)
{
	return read_slots(ret_member, ret, err);
}

int qmp_query_hotpluggable_cpus(
	struct qmp *q, uint64_t timeout_ns, struct qmp_cpu_slots *ret, struct qmp_error *err)
{
	return qmp_take_query(q, "query-hotpluggable-cpus", NULL, timeout_ns, read_slots, ret, err);
}

/*
 * A word that is not known counts as under way: what must not be disturbed is left alone, and
 * migration has got new phases with most versions.
 */
static bool migration_is_over(const char *status)
{
	static const char *const over[] = {"", "none", "cancelled", "completed", "failed"};

	for (size_t i = 0; i < ARRAY_LEN(over); i++)
		if (strcmp(status, over[i]) == 0)
			return true;
	return false;
}

static int read_migrate(struct json_object *reply, void *ret, struct qmp_error *err)
{
	struct parse_at at = parse_top("query-migrate", err), below = parse_below(&at, "ram");
	struct json_object *ram = NULL;
	struct qmp_migrate m = {0};
	int r = qmp_take_is_object(&at, reply);

	if (r == 0)
		r = qmp_take_text(&at, reply, "status", PARSE_MAY, m.status, sizeof(m.status));
	if (r == 0)
		r = qmp_take_object(&at, reply, "ram", PARSE_MAY, &ram);
	if (r == 0 && ram)
		r = qmp_take_bytes(&below, ram, "total", PARSE_MUST, &m.ram_total_bytes);
	if (r == 0 && ram)
		r = qmp_take_bytes(&below, ram, "remaining", PARSE_MUST, &m.ram_remaining_bytes);
	if (r != 0)
		return r;
	m.under_way = !migration_is_over(m.status);
	*(struct qmp_migrate *)ret = m;
	return 0;
}

int qmp_parse_migrate(
	struct json_object *ret_member, struct qmp_migrate *ret, struct qmp_error *err)
{
	return read_migrate(ret_member, ret, err);
}

int qmp_query_migrate(
	struct qmp *q, uint64_t timeout_ns, struct qmp_migrate *ret, struct qmp_error *err)
{
	return qmp_take_query(q, "query-migrate", NULL, timeout_ns, read_migrate, ret, err);
}
