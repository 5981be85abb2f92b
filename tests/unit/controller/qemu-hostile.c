/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* QEMUs that hang, lie, flood or are held by others. */
#include "tests/unit/controller/played-monitor.h"

static void one_that_hangs_harms_nobody_and_stays_a_vm(struct tap *tap_)
{
	struct fixture f;
	struct monitor *m;

	m = setup_one(&f, true);
	monitor_new(&f, "101.qmp")->uuid = "a2aa705b-6d0f-4afc-a630-3b1d9f217ce0";
	look(&f);
	REQUIRE(f.list.n_vms == 2);
	m->hangs = true;
	f.now += 10 * SECOND;
	look(&f);
	wait_in_vain(&f);
	REQUIRE(f.list.n_vms == 2);
	CHECK_STR(f.list.vm[0].silent, ""); /* its last answers are still good */
	CHECK_INT(m->client, -1);           /* and its monitor was left */
	f.now += QEMU_STALE_NS;
	look(&f);
	wait_in_vain(&f);
	/* its pins are still ours to give back, so it must not be forgotten */
	REQUIRE(f.list.n_vms == 2);
	CHECK(strstr(f.list.vm[0].silent, "silent for 80 s") != NULL);
	CHECK(strstr(f.list.vm[0].silent, "query-status: no reply in time") != NULL);
	CHECK_STR(f.list.vm[1].silent, "");
	m->hangs = false;
	f.now += 60 * SECOND;
	look(&f);
	CHECK_STR(f.list.vm[0].silent, "");
	teardown(&f);
}

static void one_that_failed_is_asked_less_and_less_often(struct tap *tap_)
{
	struct fixture f;
	struct monitor *m;
	unsigned clients;

	m = setup_one(&f, true);
	m->hangs = true;
	for (unsigned i = 0; i < 30; i++) { /* five minutes */
		look(&f);
		wait_in_vain(&f);
		f.now += 5 * SECOND;
	}
	clients = m->clients;
	CHECK(clients >= 6 && clients <= 9);
	CHECK_INT(f.list.n_odd, 1);
	m->hangs = false;
	f.now += 60 * SECOND;
	look(&f);
	CHECK_INT(f.list.n_vms, 1);
	look(&f);
	CHECK_INT(m->clients, clients + 2);
	teardown(&f);
}

static void many_that_hang_do_not_keep_others_waiting(struct tap *tap_)
{
	struct fixture f;
	char name[32];

	setup(&f, true);
	for (unsigned i = 0; i < 80; i++) {
		snprintf(name, sizeof(name), "%u.qmp", 100 + i);
		monitor_new(&f, name)->hangs = i < 78;
	}
	look(&f);
	wait_in_vain(&f);
	CHECK_INT(f.list.n_vms, 2);
	teardown(&f);
}

/* Its monitor closes, or its socket is removed, but its process lives. */
static void a_lost_monitor_is_no_lost_vm(struct tap *tap_)
{
	for (unsigned share = 0; share < 2; share++) {
		struct fixture f;
		struct monitor *m;

		m = setup_one(&f, share == 1);
		look(&f);
		monitor_end(m);
		for (unsigned i = 0; i < 3; i++) {
			look(&f);
			CHECK_INT(f.list.n_vms, 1);
			f.now += 30 * SECOND;
		}
		CHECK_INT(f.news, 1);
		m->dead = true;
		look(&f);
		CHECK_INT(f.list.n_vms, 0);
		teardown(&f);
	}
}

static void an_identity_cannot_be_taken_away(struct tap *tap_)
{
	struct fixture f;
	struct monitor *m;

	setup(&f, true);
	monitor_new(&f, "101.qmp")->name = "{\"name\":\"first\"}";
	look(&f);
	m = monitor_new(&f, "100.qmp"); /* comes before it in the list, and claims to be it */
	m->name = "{\"name\":\"thief\"}";
	for (unsigned i = 0; i < 2; i++) {
		look(&f);
		REQUIRE(f.list.n_vms == 2);
		CHECK_STR(f.list.vm[0].name, "first");
		CHECK_STR(f.list.vm[0].uuid, UUID);
		CHECK(strcmp(f.list.vm[1].uuid, UUID) != 0);
		CHECK_INT(strlen(f.list.vm[1].uuid), 36);
	}
	teardown(&f);
}

static void odd_names_are_only_names(struct tap *tap_)
{
	struct fixture f;

	setup(&f, true);
	monitor_new(&f, "100.qmp")->name = "{\"name\":\"a\\\"b\\\\\\u0007{\"}";
	look(&f);
	REQUIRE(f.list.n_vms == 1);
	CHECK_STR(f.list.vm[0].name, "a\"b\\?{");
	teardown(&f);
}

static void an_event_while_it_is_asked_is_not_forgotten(struct tap *tap_)
{
	struct fixture f;
	struct monitor *m;

	m = setup_one(&f, false);
	look(&f);
	m->hangs = true;
	f.now += 2 * SECOND;
	look(&f); /* asked, not answered yet */
	say(m, "{\"event\":\"STOP\",\"timestamp\":{\"seconds\":1,\"microseconds\":1}}");
	f.now += SECOND;
	pump(&f);
	m->hangs = false;
	m->status = "{\"running\":false,\"status\":\"paused\"}";
	wait_in_vain(&f); /* the question times out, the next one is answered */
	f.now += 60 * SECOND;
	look(&f);
	REQUIRE(f.list.n_vms == 1);
	CHECK_INT(f.list.vm[0].condition, VM_PAUSED);
	teardown(&f);
}

static void a_flood_ends_the_connection(struct tap *tap_)
{
	struct fixture f;
	struct monitor *m;

	m = setup_one(&f, false);
	look(&f);
	for (unsigned i = 0; i < 3000 && m->client >= 0; i++) {
		say(m, "{\"event\":\"RTC_CHANGE\",\"timestamp\":{\"seconds\":1}}");
		if (i % 100 == 0)
			pump(&f);
	}
	pump(&f);
	CHECK_INT(m->client, -1);
	f.now += QEMU_STALE_NS + SECOND;
	qemus_list(f.qemus, f.now, &f.list);
	REQUIRE(f.list.n_vms == 1);
	CHECK(strstr(f.list.vm[0].silent, "it sends too many events") != NULL);
	teardown(&f);
}

static void answers_of_another_shape_are_odd(struct tap *tap_)
{
	struct fixture f;
	struct monitor *m;

	m = setup_one(&f, true);
	m->cpus = "[" CPU(0, -5) "]";
	look(&f);
	CHECK_INT(f.list.n_vms, 0);
	CHECK_INT(f.list.n_odd, 1);
	CHECK(strstr(f.list.odd, "query-cpus-fast") != NULL);
	m->cpus = "[]";
	f.now += 60 * SECOND;
	look(&f);
	CHECK(strstr(f.list.odd, "a QEMU without vCPUs") != NULL);
	m->cpus = "\x80";
	f.now += 60 * SECOND;
	look(&f);
	CHECK(strstr(f.list.odd, "not JSON") != NULL);
	teardown(&f);
}

static void a_flood_of_events_is_asked_about_once_a_second(struct tap *tap_)
{
	struct fixture f;
	struct monitor *m;
	uint64_t asked;

	m = setup_one(&f, false);
	look(&f);
	for (unsigned i = 0; i < 50; i++)
		say(m, "{\"event\":\"STOP\",\"timestamp\":{\"seconds\":1,\"microseconds\":1}}");
	m->status = "{\"running\":false,\"status\":\"paused\"}";
	pump(&f);
	CHECK_INT(f.news, 1); /* it has just been asked */
	asked = qemus_deadline_ns(f.qemus);
	CHECK(asked > f.now && asked <= f.now + SECOND);
	f.now = asked;
	pump(&f);
	CHECK_INT(f.news, 2);
	teardown(&f);
}

TAP_MAIN(TEST(one_that_hangs_harms_nobody_and_stays_a_vm),
	TEST(one_that_failed_is_asked_less_and_less_often),
	TEST(many_that_hang_do_not_keep_others_waiting), TEST(a_lost_monitor_is_no_lost_vm),
	TEST(an_identity_cannot_be_taken_away), TEST(odd_names_are_only_names),
	TEST(an_event_while_it_is_asked_is_not_forgotten), TEST(a_flood_ends_the_connection),
	TEST(answers_of_another_shape_are_odd),
	TEST(a_flood_of_events_is_asked_about_once_a_second))
