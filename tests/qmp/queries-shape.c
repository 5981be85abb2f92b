/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Replies that no QEMU should give: each is refused by name, or does not matter. */
#include "qmp/queries.h"
#include "tests/qmp/samples.h"

union any {
	struct qmp_status status;
	struct qmp_version version;
	struct qmp_kvm kvm;
	struct qmp_name name;
	struct qmp_uuid uuid;
	struct qmp_cpus cpus;
	struct qmp_cpu_slots slots;
	struct qmp_memdevs memdevs;
	struct qmp_memory_devices devices;
	struct qmp_iothreads iothreads;
	struct qmp_balloon balloon;
	struct qmp_migrate migrate;
	struct qmp_stats stats;
};

static void nothing(void *unused)
{
}

#define FLAT(parse, member)                                                               \
	static int any_##member(struct json_object *r, union any *a, struct qmp_error *e) \
	{                                                                                 \
		return parse(r, &a->member, e);                                           \
	}
#define OWNS(parse, member, clear)          \
	FLAT(parse, member)                 \
	static void clear_##member(void *a) \
	{                                   \
		clear(a);                   \
	}

FLAT(qmp_parse_status, status)
FLAT(qmp_parse_version, version)
FLAT(qmp_parse_kvm, kvm)
FLAT(qmp_parse_name, name)
FLAT(qmp_parse_uuid, uuid)
FLAT(qmp_parse_balloon, balloon)
FLAT(qmp_parse_migrate, migrate)
OWNS(qmp_parse_cpus_fast, cpus, qmp_cpus_clear)
OWNS(qmp_parse_hotpluggable_cpus, slots, qmp_cpu_slots_clear)
OWNS(qmp_parse_memdev, memdevs, qmp_memdevs_clear)
OWNS(qmp_parse_memory_devices, devices, qmp_memory_devices_clear)
OWNS(qmp_parse_iothreads, iothreads, qmp_iothreads_clear)
OWNS(qmp_parse_stats, stats, qmp_stats_clear)

static const struct query {
	const char *command;
	int (*parse)(struct json_object *reply, union any *ret, struct qmp_error *err);
	void (*clear)(void *any);
} queries[] = {
	{"query-status", any_status, nothing},
	{"query-version", any_version, nothing},
	{"query-kvm", any_kvm, nothing},
	{"query-name", any_name, nothing},
	{"query-uuid", any_uuid, nothing},
	{"query-cpus-fast", any_cpus, clear_cpus},
	{"query-hotpluggable-cpus", any_slots, clear_slots},
	{"query-memdev", any_memdevs, clear_memdevs},
	{"query-memory-devices", any_devices, clear_devices},
	{"query-iothreads", any_iothreads, clear_iothreads},
	{"query-balloon", any_balloon, nothing},
	{"query-migrate", any_migrate, nothing},
	{"query-stats", any_stats, clear_stats},
};
#define QUERIES (sizeof(queries) / sizeof(queries[0]))

static const char *const values[] = {"null", "true", "false", "-1", "0", "4194305", "1.5", "1e300",
	"18446744073709551615", "99999999999999999999999", "-9223372036854775808", "''", "'x'",
	"[]", "{}", "[null]", "[[[{}]]]", "[-1,'a',{}]", "{'a':null}"};
#define VALUES (sizeof(values) / sizeof(values[0]))

#define UNTOUCHED 0x5a

static bool is_untouched(const void *any)
{
	const unsigned char *bytes = any;

	for (size_t i = 0; i < sizeof(union any); i++)
		if (bytes[i] != UNTOUCHED)
			return false;
	return true;
}

/* 0 or a condition that is as it should be; else -1 after saying so. */
static int parse_any(const struct query *query, struct json_object *reply)
{
	struct qmp_error err = {0};
	union any any;
	int r;

	memset(&any, UNTOUCHED, sizeof(any));
	r = query->parse(reply, &any, &err);
	if (r == 0) {
		query->clear(&any);
		return 0;
	}
	if (r == QMP_E_SHAPE && err.code == r &&
		strncmp(err.text, query->command, strlen(query->command)) == 0 &&
		is_untouched(&any) && query->parse(reply, &any, NULL) == QMP_E_SHAPE)
		return r;
	printf("# %s: %d, '%s' for %s\n", query->command, r, err.text,
		json_object_to_json_string(reply));
	return -1;
}

static void any_value_in_place_of_a_reply(struct tap *tap_)
{
	for (size_t q = 0; q < QUERIES; q++)
		for (size_t i = 0; i < VALUES; i++) {
			JSON reply = json_of(values[i]);

			CHECK(parse_any(&queries[q], reply) >= 0);
		}
}

static struct json_object *copy(struct json_object *from)
{
	struct json_object *to = NULL;

	json_object_deep_copy(from, &to, NULL);
	return to;
}

/* Puts @value (NULL text: nothing at all) in place of the @nth value below @at; counts it down. */
static bool replace(struct json_object *at, const char *value, size_t *nth)
{
	if (json_object_is_type(at, json_type_array)) {
		for (size_t i = 0; i < json_object_array_length(at); i++) {
			if ((*nth)-- == 0) {
				if (value)
					json_object_array_put_idx(at, i, json_of(value));
				else
					json_object_array_del_idx(at, i, 1);
				return true;
			}
			if (replace(json_object_array_get_idx(at, i), value, nth))
				return true;
		}
	} else if (json_object_is_type(at, json_type_object)) {
		json_object_object_foreach(at, key, below)
		{
			if ((*nth)-- == 0) {
				if (value)
					json_object_object_add(at, key, json_of(value));
				else
					json_object_object_del(at, key);
				return true;
			}
			if (replace(below, value, nth))
				return true;
		}
	}
	return false;
}

/* Each value of a reply that is right gives way to each of `values`, and to nothing. */
static void mutate(struct tap *tap_, const struct query *query, struct json_object *real)
{
	bool more = true;
	unsigned refused = 0;

	CHECK_INT(parse_any(query, real), 0);
	for (size_t at = 0; more; at++)
		for (size_t i = 0; i <= VALUES && more; i++) {
			JSON reply = copy(real);
			size_t nth = at;
			int r;

			more = replace(reply, i < VALUES ? values[i] : NULL, &nth);
			r = parse_any(query, reply);
			CHECK(r >= 0);
			refused += r > 0;
		}
	CHECK(refused >= VALUES / 2);
}

static void any_value_in_place_of_any_value(struct tap *tap_)
{
	JSON stats = json_of("[{'provider':'kvm','qom-path':'/a','stats':["
			     "{'name':'pf_taken','value':1},{'name':'hist','value':[1,2]}]}]");

	for (size_t q = 0; q < QUERIES - 1; q++) {
		char path[128];

		snprintf(path, sizeof(path), "qemu-7.2/%s", queries[q].command);
		JSON real = sample_return(path);
		if (strcmp(queries[q].command, "query-migrate") == 0)
			json_object_object_add(real, "ram", json_of("{'total':2,'remaining':1}"));
		mutate(tap_, &queries[q], real);
	}
	mutate(tap_, &queries[QUERIES - 1], stats);
}

static const struct query *find(const char *command)
{
	for (size_t q = 0; q < QUERIES; q++)
		if (strcmp(queries[q].command, command) == 0)
			return &queries[q];
	abort();
}

static void errors_name_command_item_and_key(struct tap *tap_)
{
	static const struct {
		const char *command, *reply, *says; /* after "COMMAND: " */
	} v[] = {
		{"query-status", "{}", "running is missing"},
		{"query-status", "{'running':1}", "running is not true or false"},
		{"query-status", "{'running':true,'status':null}", "status is not a string"},
		{"query-status", "[]", "not an object"},
		{"query-version", "{'qemu':[]}", "qemu is not an object"},
		{"query-version", "{'qemu':{'major':-1}}",
			"qemu: major is not a whole number from 0 to 65535"},
		{"query-uuid", "{'UUID':'x'}", "UUID is not a UUID"},
		{"query-uuid", "{'UUID':'12345678-1234-1234-1234-123456789abc0'}",
			"UUID is not a UUID"},
		{"query-uuid", "{'UUID':'12345678-1234-1234-1234-123456789abg'}",
			"UUID is not a UUID"},
		{"query-name", "{'name':null}", "name is not a string"},
		{"query-cpus-fast", "{}", "not a list"},
		{"query-cpus-fast", "[{'cpu-index':1,'thread-id':1,'qom-path':'/'},7]",
			"item 1: not an object"},
		{"query-cpus-fast", "[{'cpu-index':65536}]",
			"item 0: cpu-index is not a whole number from 0 to 65535"},
		{"query-cpus-fast", "[{'cpu-index':1,'thread-id':0}]",
			"item 0: thread-id is not a whole number from 1 to 4194304"},
		{"query-cpus-fast", "[{'cpu-index':1,'thread-id':4194305}]",
			"item 0: thread-id is not a whole number from 1 to 4194304"},
		{"query-cpus-fast", "[{'cpu-index':1,'thread-id':'1'}]",
			"item 0: thread-id is not a whole number from 1 to 4194304"},
		{"query-cpus-fast",
			"[{'cpu-index':1,'thread-id':2,'qom-path':'','props':{'node-id':-1}}]",
			"item 0: props: node-id is not a whole number from 0 to 2147483647"},
		{"query-hotpluggable-cpus", "[{'type':'a','vcpus-count':1}]",
			"item 0: props is missing"},
		{"query-memdev", "[{'size':9223372036854775808}]",
			"item 0: size is not a whole number from 0 to 9223372036854775807"},
		{"query-memdev",
			"[{'size':1,'merge':true,'dump':true,'prealloc':true,'policy':'bind',"
			"'host-nodes':[0,1024]}]",
			"item 0: host-nodes: item 1: not a whole number from 0 to 1023"},
		{"query-memdev",
			"[{'size':1,'merge':true,'dump':true,'prealloc':true,'policy':'bind'}]",
			"item 0: host-nodes is missing"},
		{"query-memory-devices", "[{'type':'dimm','data':{}}]",
			"item 0: data: memdev is missing"},
		{"query-memory-devices", "[{'type':'virtio-mem','data':{'memdev':'m'}}]",
			"item 0: data: size is missing"},
		{"query-memory-devices", "[{'data':{}}]", "item 0: type is missing"},
		{"query-iothreads", "[{'id':'a'}]", "item 0: thread-id is missing"},
		{"query-balloon", "{'actual':1.0}",
			"actual is not a whole number from 0 to 9223372036854775807"},
		{"query-migrate", "{'status':1}", "status is not a string"},
		{"query-migrate", "{'ram':{'total':1}}", "ram: remaining is missing"},
		{"query-stats", "[{'provider':'kvm'}]", "item 0: qom-path is missing"},
		{"query-stats", "[{'provider':'kvm','qom-path':'','stats':1}]",
			"item 0: stats is not a list"},
		{"query-stats",
			"[{'provider':'kvm','qom-path':'','stats':[{'name':'pf_taken','value':-3}]}]",
			"item 0: stats: item 0: value is not a whole number from 0 to "
			"18446744073709551615"},
	};

	for (size_t i = 0; i < sizeof(v) / sizeof(v[0]); i++) {
		JSON reply = json_of(v[i].reply);
		struct qmp_error err = {0};
		char want[256];
		union any any;

		snprintf(want, sizeof(want), "%s: %s", v[i].command, v[i].says);
		CHECK_INT(find(v[i].command)->parse(reply, &any, &err), QMP_E_SHAPE);
		CHECK_STR(err.text, want);
	}
}

static struct json_object *times(const char *item, size_t n)
{
	struct json_object *array = json_object_new_array();

	for (size_t i = 0; i < n; i++)
		json_object_array_add(array, json_of(item));
	return array;
}

static void lists_have_an_end(struct tap *tap_)
{
	static const struct {
		const char *command, *item;
	} v[] = {
		{"query-iothreads", "{'id':'a','thread-id':1}"},
		{"query-hotpluggable-cpus", "{'type':'a','vcpus-count':1,'props':{}}"},
		{"query-memdev", "{'size':1,'merge':true,'dump':true,'prealloc':true,"
				 "'policy':'bind','host-nodes':[1]}"},
		{"query-memory-devices", "{'type':'x','data':{}}"},
		{"query-stats", "{'provider':'kvm','qom-path':'/','stats':[]}"},
	};

	for (size_t i = 0; i < sizeof(v) / sizeof(v[0]); i++) {
		JSON most = times(v[i].item, QMP_ITEMS_MAX);
		JSON too_many = times(v[i].item, 10000);
		struct qmp_error err = {0};
		char want[128];
		union any any;

		CHECK_INT(parse_any(find(v[i].command), most), 0);
		snprintf(want, sizeof(want), "%s: 10000 items, more than 8192", v[i].command);
		CHECK_INT(find(v[i].command)->parse(too_many, &any, &err), QMP_E_SHAPE);
		CHECK_STR(err.text, want);
	}
}

static void lists_within_lists_have_an_end(struct tap *tap_)
{
	JSON memdevs = json_of("[{'size':1,'merge':true,'dump':true,'prealloc':true,"
			       "'policy':'bind','host-nodes':[]}]");
	JSON stats = json_of("[{'provider':'kvm','qom-path':'/','stats':[]}]");

	json_object_object_add(
		json_object_array_get_idx(memdevs, 0), "host-nodes", times("5", QMP_ITEMS_MAX + 1));
	CHECK_INT(parse_any(find("query-memdev"), memdevs), QMP_E_SHAPE);
	json_object_object_add(json_object_array_get_idx(stats, 0), "stats",
		times("{'name':'pf_taken','value':1}", QMP_ITEMS_MAX + 1));
	CHECK_INT(parse_any(find("query-stats"), stats), QMP_E_SHAPE);
}

static void as_many_vcpus_as_there_may_be(struct tap *tap_)
{
	JSON reply = json_object_new_array();
	union any any;

	for (unsigned i = 0; i < QMP_ITEMS_MAX + 1; i++) {
		struct json_object *cpu = json_of("{'qom-path':'/'}");

		json_object_object_add(cpu, "cpu-index", json_object_new_int((int)(60000 - i)));
		json_object_object_add(cpu, "thread-id", json_object_new_int((int)(i + 1)));
		json_object_array_add(reply, cpu);
	}
	CHECK_INT(parse_any(find("query-cpus-fast"), reply), QMP_E_SHAPE);
	json_object_array_del_idx(reply, 0, 1);
	REQUIRE(qmp_parse_cpus_fast(reply, &any.cpus, NULL) == 0);
	CHECK_INT(any.cpus.n, QMP_ITEMS_MAX);
	CHECK(!any.cpus.shared_thread);
	for (size_t i = 1; i < any.cpus.n; i++)
		CHECK(any.cpus.cpu[i - 1].index < any.cpus.cpu[i].index);
	qmp_cpus_clear(&any.cpus);
}

TAP_MAIN(TEST(any_value_in_place_of_a_reply), TEST(any_value_in_place_of_any_value),
	TEST(errors_name_command_item_and_key), TEST(lists_have_an_end),
	TEST(lists_within_lists_have_an_end), TEST(as_many_vcpus_as_there_may_be))
