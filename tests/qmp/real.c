/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The client and a real QEMU, whose guest never gets further than its firmware. Where a guest would
 * have to answer, the test writes to the I/O ports that ACPI code writes to.
 *
 *   test-qmp-real [--qemu PATH] [--accel tcg|kvm]
 */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "tests/qmp/real.h"

#define SECOND UINT64_C(1000000000)
#define JSON __attribute__((cleanup(put_json))) struct json_object
#define CLEANUP(f) __attribute__((cleanup(f)))

static void put_json(struct json_object **object)
{
	json_object_put(*object);
}

static void greeting_and_query_say_the_version(struct tap *tap_, struct real *r)
{
	struct qmp_version asked, greeted;
	unsigned program[3];

	REQUIRE(qmp_parse_version(qmp_greeting_version(r->q), &greeted, NULL) == 0);
	REQUIRE(qmp_query_version(r->q, r->patience_ns, &asked, NULL) == 0);
	REQUIRE(real_program_version(r, program));
	CHECK_INT(greeted.major, program[0]);
	CHECK_INT(greeted.minor, program[1]);
	CHECK_INT(greeted.micro, program[2]);
	CHECK_INT(asked.major, program[0]);
	CHECK_INT(asked.minor, program[1]);
	CHECK_INT(asked.micro, program[2]);
	CHECK_STR(asked.package, greeted.package);
	CHECK(qmp_has_oob(r->q));
}

static void the_peer_is_that_process(struct tap *tap_, struct real *r)
{
	CHECK_INT(qmp_peer_pid(r->q), r->pid);
}

static void what_it_is_is_what_it_was_started_as(struct tap *tap_, struct real *r)
{
	struct qmp_status status;
	struct qmp_kvm kvm;
	struct qmp_name name;
	struct qmp_uuid uuid;
	struct qmp_migrate migrate;
	struct qmp_balloon balloon;

	REQUIRE(qmp_query_status(r->q, r->patience_ns, &status, NULL) == 0);
	CHECK(!status.running);
	CHECK_STR(status.status, "prelaunch");
	REQUIRE(qmp_query_kvm(r->q, r->patience_ns, &kvm, NULL) == 0);
	CHECK_INT(kvm.enabled, real_is_kvm(r));
	CHECK(kvm.present);
	REQUIRE(qmp_query_name(r->q, r->patience_ns, &name, NULL) == 0);
	CHECK_STR(name.name, "numaherd-test");
	REQUIRE(qmp_query_uuid(r->q, r->patience_ns, &uuid, NULL) == 0);
	CHECK_STR(uuid.uuid, "12345678-9abc-def0-1234-56789abcdef0");
	REQUIRE(qmp_query_migrate(r->q, r->patience_ns, &migrate, NULL) == 0);
	CHECK(!migrate.under_way);
	CHECK_STR(migrate.status, "");
	REQUIRE(qmp_query_balloon(r->q, r->patience_ns, &balloon, NULL) == 0);
	CHECK(!balloon.has_balloon);
}

static void vcpus_and_iothreads_are_threads_of_it(struct tap *tap_, struct real *r)
{
	CLEANUP(qmp_cpus_clear) struct qmp_cpus cpus = {0};
	CLEANUP(qmp_iothreads_clear) struct qmp_iothreads iothreads = {0};

	REQUIRE(qmp_query_cpus_fast(r->q, r->patience_ns, &cpus, NULL) == 0);
	REQUIRE(cpus.n == 2);
	real_check_cpus(tap_, r, &cpus);
	CHECK(cpus.cpu[0].tid != cpus.cpu[1].tid);
	REQUIRE(qmp_query_iothreads(r->q, r->patience_ns, &iothreads, NULL) == 0);
	REQUIRE(iothreads.n == 1);
	CHECK_STR(iothreads.iothread[0].id, "io0");
	CHECK(real_is_thread(r, iothreads.iothread[0].tid));
	CHECK(iothreads.iothread[0].tid != cpus.cpu[0].tid);
}

static void kvm_has_counters_and_tcg_has_none(struct tap *tap_, struct real *r)
{
	CLEANUP(qmp_stats_clear) struct qmp_stats stats = {0};
	CLEANUP(qmp_cpus_clear) struct qmp_cpus cpus = {0};

	REQUIRE(qmp_query_cpus_fast(r->q, r->patience_ns, &cpus, NULL) == 0);
	REQUIRE(qmp_query_stats(r->q, r->patience_ns, &stats, NULL) == 0);
	REQUIRE(stats.n == (real_is_kvm(r) ? cpus.n : 0));
	for (size_t i = 0; i < stats.n; i++) {
		bool known = false;

		CHECK(stats.vcpu[i].has[QMP_STAT_PF_TAKEN]);
		for (size_t k = 0; k < cpus.n; k++)
			known |= strcmp(stats.vcpu[i].qom_path, cpus.cpu[k].qom_path) == 0;
		CHECK(known);
	}
}

static void an_error_is_told_by_its_class(struct tap *tap_, struct real *r)
{
	struct qmp_error err = {0};
	struct qmp_status status;

	CHECK_INT(real_ask(r, "query-nonsense", "", NULL, &err), QMP_E_REMOTE);
	CHECK_STR(err.class_name, "CommandNotFound");
	CHECK_INT(real_ask(r, "device_del", "{\"id\": \"nobody\"}", NULL, &err), QMP_E_REMOTE);
	CHECK_STR(err.class_name, "DeviceNotFound");
	CHECK_INT(real_ask(r, "device_del", "{\"idd\": 1}", NULL, &err), QMP_E_REMOTE);
	CHECK_STR(err.class_name, "GenericError");
	CHECK_INT(qmp_query_status(r->q, r->patience_ns, &status, NULL), 0);
}

static void a_reply_of_hundreds_of_kilobytes_is_whole(struct tap *tap_, struct real *r)
{
	JSON *schema = NULL;
	const char *text;

	REQUIRE(real_ask(r, "query-qmp-schema", "", &schema, NULL) == 0);
	REQUIRE(json_object_is_type(schema, json_type_array));
	text = json_object_to_json_string_ext(schema, JSON_C_TO_STRING_PLAIN);
	printf("# %zu bytes\n", strlen(text));
	CHECK(strlen(text) > 65536);
	CHECK(strstr(text, "\"query-qmp-schema\"") != NULL);
}

struct order {
	unsigned done;
	unsigned oob_at; /* 0: not yet */
	int failed;
};

static void on_schema(void *userdata, struct qmp *q, int result, struct json_object *ret,
	const struct qmp_error *err)
{
	struct order *o = userdata;

	o->done++;
	o->failed += result != 0 || json_object_array_length(ret) < 100;
}

static void on_oob(void *userdata, struct qmp *q, int result, struct json_object *ret,
	const struct qmp_error *err)
{
	struct order *o = userdata;

	o->oob_at = ++o->done;
	o->failed += result != 0 || !json_object_is_type(ret, json_type_array);
}

static bool all_done(void *userdata)
{
	return ((struct order *)userdata)->done == 7;
}

static void replies_overtake_each_other_out_of_band(struct tap *tap_, struct real *r)
{
	bool overtook = false;

	/* who wins a race is luck, so it has some tries; that all are answered is none */
	for (unsigned attempt = 0; attempt < 20 && !overtook; attempt++) {
		struct order o = {0};
		uint64_t now = qmp_sync_now_ns();

		for (unsigned i = 0; i < 6; i++)
			REQUIRE(qmp_execute(r->q, "query-qmp-schema", NULL, r->patience_ns, now, 0,
					on_schema, &o, NULL) == 0);
		REQUIRE(qmp_execute(r->q, "query-yank", NULL, r->patience_ns, now, QMP_OOB, on_oob,
				&o, NULL) == 0);
		REQUIRE(qmp_sync_wait(r->q, 2 * r->patience_ns, all_done, &o, NULL) == 0);
		REQUIRE(o.done == 7 && !o.failed);
		overtook = o.oob_at < 7;
	}
	CHECK(overtook);
}

static void check_time(struct tap *tap_, const struct real *r, const struct real_event *e)
{
	struct timespec now;
	int64_t age_us;

	clock_gettime(CLOCK_REALTIME, &now);
	age_us = now.tv_sec * INT64_C(1000000) + now.tv_nsec / 1000 - e->time_us;
	CHECK(age_us >= -1000000 && age_us < (int64_t)(2 * r->patience_ns / 1000));
}

static void running_and_stopping_are_events_with_a_time(struct tap *tap_, struct real *r)
{
	const struct real_event *resume, *stop;
	struct qmp_status status;

	REQUIRE(real_ask(r, "cont", "", NULL, NULL) == 0);
	resume = real_event(r, "RESUME", "");
	REQUIRE(resume);
	check_time(tap_, r, resume);
	REQUIRE(qmp_query_status(r->q, r->patience_ns, &status, NULL) == 0);
	CHECK(status.running);
	CHECK_STR(status.status, "running");
	REQUIRE(real_ask(r, "stop", "", NULL, NULL) == 0);
	stop = real_event(r, "STOP", "");
	REQUIRE(stop);
	check_time(tap_, r, stop);
	CHECK(stop->time_us >= resume->time_us);
	REQUIRE(qmp_query_status(r->q, r->patience_ns, &status, NULL) == 0);
	CHECK(!status.running);
	CHECK_STR(status.status, "paused");
}

/* One client at a time: the second one is connected, but hears nothing until the first one goes. */
static void a_second_client_has_to_wait(struct tap *tap_, struct real *r)
{
	struct qmp_config hasty = {
		.greeting_timeout_ns = SECOND / 4, .connect_timeout_ns = SECOND / 4};
	struct qmp *others[8] = {NULL}, *late = NULL;
	struct qmp_status status;
	struct qmp_error err = {0};
	int result = 0;

	CHECK_INT(qmp_sync_open(r->path, &hasty, &late, &err), QMP_E_NO_GREETING);
	/* more of them than QEMU queues */
	for (size_t i = 0; i < 8 && qmp_new(&hasty, &others[i]) == 0; i++)
		CHECK_INT(qmp_connect(others[i], r->path, qmp_sync_now_ns()), 0);
	result = qmp_sync_open(r->path, &hasty, &late, &err);
	CHECK_INT(result, QMP_E_BUSY);
	for (size_t i = 0; i < 8; i++)
		qmp_free(others[i]);
	qmp_free(result == 0 ? late : NULL);
	/* the one that has it has noticed nothing */
	the_peer_is_that_process(tap_, r);
	CHECK_INT(qmp_query_status(r->q, r->patience_ns, &status, NULL), 0);
	real_disconnect(r);
	REQUIRE(real_connect(r));
	CHECK_INT(qmp_query_status(r->q, r->patience_ns, &status, NULL), 0);
}

static void quitting_is_an_event_and_then_the_end(struct tap *tap_, struct real *r)
{
	struct qmp_status status;
	struct qmp_error err = {0};
	int result = real_ask(r, "quit", "", NULL, &err);

	/* QEMU may be gone before it has answered */
	CHECK(result == 0 || result == QMP_E_CLOSED);
	CHECK(real_event(r, "SHUTDOWN", "\"reason\":\"host-qmp-quit\"") != NULL);
	CHECK_INT(qmp_sync_wait(r->q, r->patience_ns, NULL, NULL, &err), QMP_E_CLOSED);
	CHECK_INT(err.code, QMP_E_CLOSED);
	CHECK_INT(qmp_query_status(r->q, r->patience_ns, &status, &err), QMP_E_STATE);
	CHECK_INT(real_wait(r), 0);
	real_stop(r);
}

static bool is_ready(void *userdata)
{
	struct real *r = userdata;

	return qmp_state_of(r->q) == QMP_READY;
}

static bool is_broken(void *userdata)
{
	struct real *r = userdata;

	return qmp_state_of(r->q) == QMP_BROKEN;
}

static void a_killed_one_is_gone_and_its_socket_refused(struct tap *tap_, struct real *r)
{
	static const char *const balloon[] = {"-device", "virtio-balloon-pci", NULL};
	struct qmp_balloon b = {0};
	struct qmp_error err = {0};
	struct qmp *late = NULL;

	REQUIRE(real_start(r, balloon) && real_connect(r));
	REQUIRE(qmp_query_balloon(r->q, r->patience_ns, &b, NULL) == 0);
	CHECK(b.has_balloon);
	CHECK_INT(b.actual_bytes, 128 << 20);
	kill(r->pid, SIGKILL);
	CHECK_INT(qmp_sync_wait(r->q, r->patience_ns, is_broken, r, &err), QMP_E_CLOSED);
	CHECK_INT(real_wait(r), SIGKILL);
	CHECK_INT(qmp_sync_open(r->path, NULL, &late, &err), QMP_E_REFUSED);
	CHECK_INT(is_ready(r), false);
	real_stop(r);
}

struct real_test {
	const char *name;
	void (*fn)(struct tap *tap_, struct real *r);
	bool kvm_only;
};

static const struct real_test tests[] = {
#define ROW(fn)                \
	{                      \
#fn, fn, false \
	}
#define PLUG(fn)                      \
	{                             \
#fn, real_##fn, false \
	}
	ROW(greeting_and_query_say_the_version),
	ROW(the_peer_is_that_process),
	ROW(what_it_is_is_what_it_was_started_as),
	ROW(vcpus_and_iothreads_are_threads_of_it),
	PLUG(its_memory_is_what_it_was_given),
	ROW(kvm_has_counters_and_tcg_has_none),
	ROW(an_error_is_told_by_its_class),
	ROW(a_reply_of_hundreds_of_kilobytes_is_whole),
	ROW(replies_overtake_each_other_out_of_band),
	ROW(running_and_stopping_are_events_with_a_time),
	PLUG(a_dimm_is_added),
	PLUG(a_dimm_goes_when_the_guest_ejects_it),
	PLUG(a_vcpu_is_added_to_a_slot_that_is_free),
	PLUG(a_vcpu_stays_when_no_guest_lets_it_go),
	{"a_vcpu_goes_when_the_guest_ejects_it", real_a_vcpu_goes_when_the_guest_ejects_it, true},
	ROW(a_second_client_has_to_wait),
	ROW(quitting_is_an_event_and_then_the_end),
	ROW(a_killed_one_is_gone_and_its_socket_refused),
};
#define N_TESTS (sizeof(tests) / sizeof(tests[0]))

static bool start(struct real *r)
{
	unsigned version[3];

	if (real_program_version(r, version))
		return real_start(r, NULL) && real_connect(r);
	printf("# %s cannot be run: install the package qemu-system-x86\n", r->qemu);
	return false;
}

static int run(struct real *r)
{
	unsigned failed = 0, number = 0;
	size_t n = N_TESTS;
	bool up;

	for (size_t i = 0; i < N_TESTS; i++)
		n -= tests[i].kvm_only && !real_is_kvm(r);
	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("1..%zu\n", n);
	up = start(r);
	for (size_t i = 0; i < N_TESTS; i++) {
		struct tap tap = {.name = tests[i].name};
		bool ok;

		if (tests[i].kvm_only && !real_is_kvm(r))
			continue;
		if (up)
			tests[i].fn(&tap, r);
		ok = up && !tap.failures;
		printf("%s %u - %s\n", ok ? "ok" : "not ok", ++number, tap.name);
		failed += !ok;
	}
	real_stop(r);
	return failed ? 1 : 0;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {{"qemu", required_argument, NULL, 'q'},
		{"accel", required_argument, NULL, 'a'}, {0}};
	struct real r = {.qemu = "qemu-system-x86_64", .accel = "tcg"};
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (c == 'q')
			r.qemu = optarg;
		else if (c == 'a' && (strcmp(optarg, "tcg") == 0 || strcmp(optarg, "kvm") == 0))
			r.accel = optarg;
		else
			return 2;
	}
	r.patience_ns = (real_is_kvm(&r) ? 60 : 20) * SECOND;
	return run(&r);
}
