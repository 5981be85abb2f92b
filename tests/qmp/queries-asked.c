/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Whole questions: what is sent, and what is made of the answer. query-stats, too. */
#include "qmp/queries.h"
#include "tests/qmp/samples.h"

#define CLEANUP(f) __attribute__((cleanup(f)))

static void stats_of_10_0(struct tap *tap_)
{
	JSON reply = sample_return("qemu-10.0/query-stats");
	CLEANUP(qmp_stats_clear) struct qmp_stats s = {0};
	const struct qmp_vcpu_stats *v;

	REQUIRE(qmp_parse_stats(reply, &s, NULL) == 0);
	REQUIRE(s.n == 2);
	v = &s.vcpu[0];
	CHECK_STR(v->qom_path, "/machine/unattached/device[2]");
	for (unsigned i = 0; i < QMP_VCPU_STATS; i++)
		CHECK(v->has[i]);
	CHECK_INT(v->value[QMP_STAT_PF_TAKEN], 562);
	CHECK_INT(v->value[QMP_STAT_PF_FIXED], 284);
	CHECK_INT(v->value[QMP_STAT_PF_EMULATE], 0);
	CHECK_INT(v->value[QMP_STAT_PF_SPURIOUS], 1);
	CHECK_INT(v->value[QMP_STAT_PF_FAST], 1);
	CHECK_INT(s.vcpu[1].value[QMP_STAT_PF_MMIO_SPTE_CREATED], 11);
	CHECK_INT(s.vcpu[1].value[QMP_STAT_PF_GUEST], 0);
}

static void stats_with_some_names_only(struct tap *tap_)
{
	JSON reply =
		json_of("[{'provider':'cryptodev','stats':[{'name':1}]},"
			"{'provider':'kvm','qom-path':'/a','stats':[{'name':'pf_guest','value':3},"
			"{'name':'halt_wait_hist','value':[1,2]},{'name':'blocking','value':true},"
			"{'name':'pf_taken','value':18446744073709551615}]},"
			"{'provider':'kvm','qom-path':'/b','stats':[]}]");
	JSON none = sample_return("qemu-7.2/query-stats");
	CLEANUP(qmp_stats_clear) struct qmp_stats s = {0};

	REQUIRE(qmp_parse_stats(none, &s, NULL) == 0);
	CHECK_INT(s.n, 0);
	qmp_stats_clear(&s);
	REQUIRE(qmp_parse_stats(reply, &s, NULL) == 0);
	REQUIRE(s.n == 2);
	CHECK_STR(s.vcpu[0].qom_path, "/a");
	for (unsigned i = 0; i < QMP_VCPU_STATS; i++) {
		CHECK(s.vcpu[0].has[i] == (i == QMP_STAT_PF_GUEST || i == QMP_STAT_PF_TAKEN));
		CHECK(!s.vcpu[1].has[i]);
	}
	CHECK_INT(s.vcpu[0].value[QMP_STAT_PF_GUEST], 3);
	CHECK(s.vcpu[0].value[QMP_STAT_PF_TAKEN] == UINT64_MAX);
}

static void stats_ask_for_these_counters_only(struct tap *tap_)
{
	JSON arguments = qmp_stats_arguments();

	CHECK_STR(json_object_to_json_string_ext(arguments, JSON_C_TO_STRING_PLAIN),
		"{\"target\":\"vcpu\",\"providers\":[{\"provider\":\"kvm\",\"names\":[\"pf_taken\","
		"\"pf_fixed\",\"pf_emulate\",\"pf_spurious\",\"pf_fast\",\"pf_mmio_spte_created\","
		"\"pf_guest\"]}]}");
	CHECK_STR(qmp_vcpu_stat_name(QMP_VCPU_STATS), "unknown");
}

/* A monitor that answers from the samples and keeps the last command. */
struct monitor {
	const char *prefix; /* of the samples */
	const char *reply;  /* instead of a sample; NULL: none */
	char command[512];
};

static int answer(void *userdata, const char *command, char **ret_reply)
{
	struct monitor *m = userdata;
	JSON object = json_of(command);
	struct json_object *name = NULL;
	char path[256];

	snprintf(m->command, sizeof(m->command), "%s", command);
	json_object_object_get_ex(object, "execute", &name);
	snprintf(path, sizeof(path), "%s%s", m->prefix, json_object_get_string(name));
	if (m->reply) {
		*ret_reply = strdup(m->reply);
	} else {
		JSON reply = sample(path);

		*ret_reply = strdup(json_object_to_json_string(reply));
	}
	return *ret_reply ? 0 : QMP_E_IO;
}

static void freeq(struct qmp **q)
{
	qmp_free(*q);
}

static struct qmp *ask(struct monitor *m)
{
	struct qmp_transport transport;
	struct qmp *q = NULL;

	if (qmp_transport_calls(answer, m, &transport) != 0 ||
		qmp_sync_open_transport(&transport, NULL, &q, NULL) != 0)
		printf("# there is no monitor\n");
	return q;
}

#define SENT(m, want) CHECK_STR((m).command, "{\"execute\":\"" want "\"}")

static void each_query_asks_for_its_command(struct tap *tap_)
{
	struct monitor m = {.prefix = "qemu-7.2/"};
	CLEANUP(freeq) struct qmp *q = ask(&m);
	struct qmp_status status;
	struct qmp_version version;
	struct qmp_kvm kvm;
	struct qmp_name name;
	struct qmp_uuid uuid;
	struct qmp_migrate migrate;
	struct qmp_balloon balloon;

	REQUIRE(q);
	CHECK_INT(qmp_query_status(q, 0, &status, NULL), 0);
	CHECK_STR(status.status, "prelaunch");
	SENT(m, "query-status");
	CHECK_INT(qmp_query_version(q, 0, &version, NULL), 0);
	CHECK_INT(version.major, 7);
	SENT(m, "query-version");
	CHECK_INT(qmp_query_kvm(q, 0, &kvm, NULL), 0);
	SENT(m, "query-kvm");
	CHECK_INT(qmp_query_name(q, 0, &name, NULL), 0);
	CHECK_STR(name.name, "vm one");
	SENT(m, "query-name");
	CHECK_INT(qmp_query_uuid(q, 0, &uuid, NULL), 0);
	SENT(m, "query-uuid");
	CHECK_INT(qmp_query_migrate(q, 0, &migrate, NULL), 0);
	SENT(m, "query-migrate");
	CHECK_INT(qmp_query_balloon(q, 0, &balloon, NULL), 0);
	CHECK(balloon.has_balloon);
	SENT(m, "query-balloon");
}

static void each_list_asks_for_its_command(struct tap *tap_)
{
	struct monitor m = {.prefix = "qemu-7.2/"};
	CLEANUP(freeq) struct qmp *q = ask(&m);
	CLEANUP(qmp_cpus_clear) struct qmp_cpus cpus = {0};
	CLEANUP(qmp_cpu_slots_clear) struct qmp_cpu_slots slots = {0};
	CLEANUP(qmp_memdevs_clear) struct qmp_memdevs memdevs = {0};
	CLEANUP(qmp_memory_devices_clear) struct qmp_memory_devices devices = {0};
	CLEANUP(qmp_iothreads_clear) struct qmp_iothreads iothreads = {0};
	CLEANUP(qmp_stats_clear) struct qmp_stats stats = {0};

	REQUIRE(q);
	CHECK_INT(qmp_query_cpus_fast(q, 0, &cpus, NULL), 0);
	CHECK_INT(cpus.n, 2);
	SENT(m, "query-cpus-fast");
	CHECK_INT(qmp_query_hotpluggable_cpus(q, 0, &slots, NULL), 0);
	CHECK_INT(slots.n, 4);
	SENT(m, "query-hotpluggable-cpus");
	CHECK_INT(qmp_query_memdev(q, 0, &memdevs, NULL), 0);
	CHECK_INT(memdevs.n, 5);
	SENT(m, "query-memdev");
	CHECK_INT(qmp_query_memory_devices(q, 0, &devices, NULL), 0);
	CHECK_INT(devices.n, 4);
	SENT(m, "query-memory-devices");
	CHECK_INT(qmp_query_iothreads(q, 0, &iothreads, NULL), 0);
	CHECK_INT(iothreads.n, 1);
	SENT(m, "query-iothreads");
	m.prefix = "qemu-10.0/";
	CHECK_INT(qmp_query_stats(q, 0, &stats, NULL), 0);
	CHECK_INT(stats.n, 2);
	CHECK(strstr(
		m.command, "{\"execute\":\"query-stats\",\"arguments\":{\"target\":\"vcpu\","));
}

static void a_vm_without_a_balloon_is_no_error(struct tap *tap_)
{
	static const char *const prefixes[] = {"qemu-7.2/bare-", "qemu-10.0/"};

	for (size_t i = 0; i < 2; i++) {
		struct monitor m = {.prefix = prefixes[i]};
		CLEANUP(freeq) struct qmp *q = ask(&m);
		struct qmp_balloon b = {.has_balloon = true, .actual_bytes = 1};

		REQUIRE(q);
		CHECK_INT(qmp_query_balloon(q, 0, &b, NULL), 0);
		CHECK(!b.has_balloon && b.actual_bytes == 0);
	}
}

static void other_errors_of_the_balloon_are_passed_on(struct tap *tap_)
{
	struct monitor m = {.prefix = "",
		.reply = "{\"error\":{\"class\":\"KVMMissingCap\",\"desc\":\"no sync MMU\"}}"};
	CLEANUP(freeq) struct qmp *q = ask(&m);
	struct qmp_balloon b = {.actual_bytes = 7};
	struct qmp_error err = {0};

	REQUIRE(q);
	CHECK_INT(qmp_query_balloon(q, 0, &b, &err), QMP_E_REMOTE);
	CHECK_STR(err.class_name, "KVMMissingCap");
	CHECK_INT(b.actual_bytes, 7);
	CHECK_INT(qmp_query_balloon(q, 0, &b, NULL), QMP_E_REMOTE);
}

static void errors_and_wrong_shapes_come_out(struct tap *tap_)
{
	struct monitor m = {.prefix = "",
		.reply = "{\"error\":{\"class\":\"CommandNotFound\",\"desc\":\"no such\"}}"};
	CLEANUP(freeq) struct qmp *q = ask(&m);
	struct qmp_cpus cpus = {.n = 9};
	struct qmp_stats stats = {.n = 9};
	struct qmp_error err = {0};

	REQUIRE(q);
	CHECK_INT(qmp_query_stats(q, 0, &stats, &err), QMP_E_REMOTE);
	CHECK_STR(err.class_name, "CommandNotFound");
	m.reply = "{\"return\":{\"a\":1}}";
	CHECK_INT(qmp_query_cpus_fast(q, 0, &cpus, &err), QMP_E_SHAPE);
	CHECK_STR(err.text, "query-cpus-fast: not a list");
	m.reply = "{\"return\":null}";
	CHECK_INT(qmp_query_stats(q, 0, &stats, &err), QMP_E_SHAPE);
	CHECK(cpus.n == 9 && stats.n == 9);
	m.reply = "{\"return\":[]}";
	CHECK_INT(qmp_query_cpus_fast(q, 0, &cpus, &err), 0);
	qmp_cpus_clear(&cpus);
}

TAP_MAIN(TEST(stats_of_10_0), TEST(stats_with_some_names_only),
	TEST(stats_ask_for_these_counters_only), TEST(each_query_asks_for_its_command),
	TEST(each_list_asks_for_its_command), TEST(a_vm_without_a_balloon_is_no_error),
	TEST(other_errors_of_the_balloon_are_passed_on), TEST(errors_and_wrong_shapes_come_out))
