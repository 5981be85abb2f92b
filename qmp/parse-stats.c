/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Why the counters are named in the question: KVM has some fifty of them for each vCPU, and with
 * many vCPUs the reply would be megabytes.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "qmp/parse.h"

const char *qmp_vcpu_stat_name(enum qmp_vcpu_stat stat)
{
	static const char *const names[QMP_VCPU_STATS] = {
		[QMP_STAT_PF_TAKEN] = "pf_taken",
		[QMP_STAT_PF_FIXED] = "pf_fixed",
		[QMP_STAT_PF_EMULATE] = "pf_emulate",
		[QMP_STAT_PF_SPURIOUS] = "pf_spurious",
		[QMP_STAT_PF_FAST] = "pf_fast",
		[QMP_STAT_PF_MMIO_SPTE_CREATED] = "pf_mmio_spte_created",
		[QMP_STAT_PF_GUEST] = "pf_guest",
	};

	return stat < QMP_VCPU_STATS ? names[stat] : "unknown";
}

void qmp_stats_clear(struct qmp_stats *stats)
{
	free(stats->vcpu);
	*stats = (struct qmp_stats){0};
}

/* Puts @value (NULL: there was no memory for it) into @object. */
static bool put(struct json_object *object, const char *key, struct json_object *value)
{
	if (value && json_object_object_add(object, key, value) == 0)
		return true;
	json_object_put(value);
	return false;
}

static bool append(struct json_object *array, struct json_object *value)
{
	if (value && json_object_array_add(array, value) == 0)
		return true;
	json_object_put(value);
	return false;
}

static struct json_object *kvm_provider(void)
{
	_cleanup_put_ struct json_object *provider = json_object_new_object();
	_cleanup_put_ struct json_object *names = json_object_new_array();

	if (!provider || !names || !put(provider, "provider", json_object_new_string("kvm")))
		return NULL;
	for (unsigned i = 0; i < QMP_VCPU_STATS; i++)
		if (!append(names, json_object_new_string(qmp_vcpu_stat_name(i))))
			return NULL;
	if (!put(provider, "names", json_object_get(names)))
		return NULL;
	return json_object_get(provider);
}

struct json_object *qmp_stats_arguments(void)
{
	_cleanup_put_ struct json_object *arguments = json_object_new_object();
	_cleanup_put_ struct json_object *providers = json_object_new_array();

	if (!arguments || !providers || !put(arguments, "target", json_object_new_string("vcpu")) ||
		!append(providers, kvm_provider()) ||
		!put(arguments, "providers", json_object_get(providers)))
		return NULL;
	return json_object_get(arguments);
}

/* One counter; those that nobody asked for may be lists and booleans, and are passed over. */
static int read_stat(const struct parse_at *at, struct json_object *item, void *ret)
{
	struct qmp_vcpu_stats *s = ret;
	char name[32] = "";
	int r = qmp_take_is_object(at, item);

	if (r == 0)
		r = qmp_take_text(at, item, "name", PARSE_MUST, name, sizeof(name));
	for (unsigned i = 0; r == 0 && i < QMP_VCPU_STATS; i++) {
		if (strcmp(name, qmp_vcpu_stat_name(i)) != 0)
			continue;
		r = qmp_take_u64(at, item, "value", PARSE_MUST, UINT64_MAX, &s->value[i]);
		s->has[i] = r == 0;
	}
	return r;
}

static int read_vcpu(const struct parse_at *at, struct json_object *item, void *ret_item)
{
	struct parse_at below = parse_below(at, "stats"), one = {.up = &below, .err = at->err};
	struct qmp_vcpu_stats *s = ret_item;
	struct json_object *stats = NULL;
	char provider[16] = "";
	int r = qmp_take_is_object(at, item);

	if (r == 0)
		r = qmp_take_text(at, item, "provider", PARSE_MUST, provider, sizeof(provider));
	if (r == 0 && strcmp(provider, "kvm") != 0)
		return PARSE_SKIP;
	if (r == 0)
		r = qmp_take_text(
			at, item, "qom-path", PARSE_MUST, s->qom_path, sizeof(s->qom_path));
	if (r == 0)
		r = qmp_take_list(at, item, "stats", &stats);
	for (; r == 0 && one.item < json_object_array_length(stats); one.item++)
		r = read_stat(&one, json_object_array_get_idx(stats, one.item), s);
	return r;
}

static int read_stats(struct json_object *reply, void *ret, struct qmp_error *err)
{
	static const struct parse_items how = {sizeof(struct qmp_vcpu_stats), read_vcpu, NULL};
	struct parse_at at = parse_top("query-stats", err);
	struct qmp_stats stats = {0};
	int r = qmp_take_items(&at, reply, &how, &stats.vcpu, &stats.n);

	if (r == 0)
		*(struct qmp_stats *)ret = stats;
	return r;
}

int qmp_parse_stats(struct json_object *ret_member, struct qmp_stats *ret, struct qmp_error *err)
{
	return read_stats(ret_member, ret, err);
}

int qmp_query_stats(
	struct qmp *q, uint64_t timeout_ns, struct qmp_stats *ret, struct qmp_error *err)
{
	_cleanup_put_ struct json_object *arguments = qmp_stats_arguments();

	if (!arguments)
		return -ENOMEM;
	return qmp_take_query(q, "query-stats", arguments, timeout_ns, read_stats, ret, err);
}
