/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What callbacks may do: everything. The sanitizers say whether anything was touched afterwards. */
#include <poll.h>

#include "tests/qmp/fixture.h"
#include "tests/tap.h"

#define SECOND UINT64_C(1000000000)
#define HANDSHAKE "{\"QMP\": {}} {\"return\": {}}" /* of a peer that does not wait to be asked */
#define FIXTURE __attribute__((cleanup(fixture_deinit))) struct fixture

/* What a test's act() needs: up to three commands and another peer. */
struct scene {
	struct call call[4];
	struct peer other;
	const char *when; /* the note at which act() acts; NULL: never again */
	int result;
};

static bool now_is(struct fixture *f, const char *note)
{
	struct scene *s = f->userdata;

	if (!s->when || strcmp(s->when, note) != 0)
		return false;
	s->when = NULL;
	return true;
}

static void connect_other(struct fixture *f)
{
	struct scene *s = f->userdata;
	struct qmp_transport t = peer_transport(&s->other);

	s->result = qmp_connect_transport(f->q, &t, f->now_ns);
}

static void act_execute(struct fixture *f, const char *note)
{
	struct scene *s = f->userdata;

	if (now_is(f, note))
		s->result = fixture_execute(f, &s->call[3], 3, 0);
}

static void act_cancel(struct fixture *f, const char *note)
{
	struct scene *s = f->userdata;

	if (now_is(f, note))
		s->result = qmp_cancel(f->q, s->call[2].id);
}

static void act_disconnect(struct fixture *f, const char *note)
{
	if (now_is(f, note))
		qmp_disconnect(f->q);
}

static void act_free(struct fixture *f, const char *note)
{
	if (now_is(f, note))
		f->q = qmp_free(f->q);
}

static void act_connect(struct fixture *f, const char *note)
{
	if (now_is(f, note))
		connect_other(f);
}

static void act_process(struct fixture *f, const char *note)
{
	struct scene *s = f->userdata;

	if (now_is(f, note))
		s->result = qmp_process(f->q, POLLIN | POLLOUT, f->now_ns);
}

static void act_move(struct fixture *f, const char *note)
{
	if (!now_is(f, note))
		return;
	qmp_disconnect(f->q);
	connect_other(f);
}

/* A ready client with the commands 1 and 2 open. */
static void begin(struct fixture *f, struct scene *s, void (*act)(struct fixture *, const char *),
	const char *when)
{
	fixture_init(f);
	*s = (struct scene){.when = when, .result = -1};
	fixture_ready(f);
	if (fixture_execute(f, &s->call[1], 1, 5 * SECOND) != 0 ||
		fixture_execute(f, &s->call[2], 2, 5 * SECOND) != 0)
		abort();
	f->act = act;
	f->userdata = s;
}

/* An event, the replies to 1 and 2, another event, in one read. */
static void say_all(struct fixture *f, struct scene *s)
{
	fixture_say(f, "{\"event\": \"A\"}");
	fixture_say_reply(f, &s->call[1]);
	fixture_say_reply(f, &s->call[2]);
	fixture_say(f, "{\"event\": \"B\"}");
	fixture_process(f);
}

static void a_callback_may_execute(struct tap *tap_)
{
	static const char *const when[] = {"event A", "reply 1 ok", "event B"};

	for (size_t i = 0; i < 3; i++) {
		FIXTURE f;
		struct scene s;

		begin(&f, &s, act_execute, when[i]);
		say_all(&f, &s);
		CHECK_STR(fixture_notes(&f), "event A, reply 1 ok, reply 2 ok, event B");
		CHECK_INT(s.result, 0);
		fixture_say_reply(&f, &s.call[3]);
		fixture_process(&f);
		CHECK_STR(fixture_notes(&f), "reply 3 ok");
	}
}

static void a_callback_may_cancel_another_command(struct tap *tap_)
{
	FIXTURE f;
	struct scene s;

	begin(&f, &s, act_cancel, "reply 1 ok");
	say_all(&f, &s);
	CHECK_STR(fixture_notes(&f), "event A, reply 1 ok, reply 2 cancelled, event B");
	CHECK_INT(s.result, true);
	CHECK_INT(qmp_counters_of(f.q).strays, 1);
}

static void a_command_that_ends_is_not_there_to_be_cancelled(struct tap *tap_)
{
	FIXTURE f;
	struct scene s;

	begin(&f, &s, act_cancel, "reply 2 ok");
	say_all(&f, &s);
	CHECK_INT(s.result, false);
	CHECK_INT(s.call[2].ended, 1);
	CHECK(!qmp_cancel(f.q, 0));
	CHECK(!qmp_cancel(f.q, UINT64_MAX));
}

static void a_callback_may_disconnect(struct tap *tap_)
{
	static const struct {
		const char *when, *notes;
	} cases[] = {
		{"event A", "event A, reply 1 cancelled, reply 2 cancelled, state disconnected"},
		{"reply 1 ok", "event A, reply 1 ok, reply 2 cancelled, state disconnected"},
		{"event B", "event A, reply 1 ok, reply 2 ok, event B, state disconnected"},
	};

	for (size_t i = 0; i < 3; i++) {
		FIXTURE f;
		struct scene s;

		begin(&f, &s, act_disconnect, cases[i].when);
		say_all(&f, &s);
		CHECK_STR(fixture_notes(&f), cases[i].notes);
		CHECK_INT(f.peer.closed, 1);
		CHECK_INT(qmp_fd(f.q), -1);
		CHECK(qmp_deadline_ns(f.q) == QMP_NEVER);
	}
}

static void a_callback_may_free(struct tap *tap_)
{
	static const struct {
		const char *when, *notes;
	} cases[] = {
		{"event A", "event A, reply 1 cancelled, reply 2 cancelled"},
		{"reply 1 ok", "event A, reply 1 ok, reply 2 cancelled"},
		{"reply 2 ok", "event A, reply 1 ok, reply 2 ok"},
		{"event B", "event A, reply 1 ok, reply 2 ok, event B"},
	};

	for (size_t i = 0; i < 4; i++) {
		FIXTURE f;
		struct scene s;

		begin(&f, &s, act_free, cases[i].when);
		say_all(&f, &s);
		CHECK_STR(fixture_notes(&f), cases[i].notes);
		CHECK_INT(f.peer.closed, 1);
	}
}

static void a_state_callback_may_disconnect_or_free(struct tap *tap_)
{
	static const char *const states[] = {
		"state greeting", "state negotiating", "state ready", "state broken closed"};

	for (size_t i = 0; i < 8; i++) {
		FIXTURE f;
		struct scene s = {.when = states[i / 2]};
		struct qmp_transport t;

		fixture_init(&f);
		t = peer_transport(&f.peer);
		REQUIRE(qmp_new(&f.config, &f.q) == 0);
		f.act = i % 2 ? act_free : act_disconnect;
		f.userdata = &s;
		fixture_say(&f, HANDSHAKE);
		f.peer.hung_up = true;
		CHECK_INT(qmp_connect_transport(f.q, &t, f.now_ns), 0);
		if (f.q)
			fixture_process(&f);
		CHECK_INT(f.peer.closed, 1);
		CHECK(s.when == NULL);
		CHECK((f.q == NULL) == (i % 2));
		CHECK(!f.q || qmp_state_of(f.q) == QMP_DISCONNECTED);
	}
}

static void a_callback_may_connect_to_another_peer(struct tap *tap_)
{
	static const char *const when[] = {"event A", "reply 1 ok"};

	for (size_t i = 0; i < 2; i++) {
		FIXTURE f;
		struct scene s;

		begin(&f, &s, act_move, when[i]);
		peer_init(&s.other);
		say_all(&f, &s);
		/* what the old peer said behind it is gone */
		CHECK_STR(fixture_notes(&f),
			i == 0 ? "event A, reply 1 cancelled, reply 2 cancelled, state "
				 "disconnected, state greeting"
			       : "event A, reply 1 ok, reply 2 cancelled, state disconnected, "
				 "state greeting");
		CHECK_INT(s.result, 0);
		CHECK_INT(f.peer.closed, 1);
		CHECK_INT(qmp_fd(f.q), s.other.event);
		peer_say(&s.other, HANDSHAKE, strlen(HANDSHAKE));
		peer_process(&s.other, f.q, f.now_ns);
		CHECK_STR(fixture_notes(&f), "state negotiating, state ready");
		f.q = qmp_free(f.q);
		CHECK_INT(s.other.closed, 1);
		peer_deinit(&s.other);
	}
}

static void a_break_may_be_answered_by_connecting(struct tap *tap_)
{
	static const char *const when[] = {
		"reply 1 closed", "reply 2 closed", "state broken closed"};

	for (size_t i = 0; i < 3; i++) {
		FIXTURE f;
		struct scene s;

		begin(&f, &s, act_connect, when[i]);
		peer_init(&s.other);
		f.peer.hung_up = true;
		fixture_process(&f);
		CHECK_INT(s.result, 0);
		/* both end with what broke the connection they were sent over */
		CHECK_INT(s.call[1].result, QMP_E_CLOSED);
		CHECK_INT(s.call[2].result, QMP_E_CLOSED);
		CHECK_INT(s.call[1].ended, 1);
		CHECK_INT(s.call[2].ended, 1);
		CHECK_INT(qmp_state_of(f.q), QMP_GREETING);
		f.q = qmp_free(f.q);
		CHECK_INT(s.other.closed, 1);
		peer_deinit(&s.other);
	}
}

static void a_callback_may_process_and_changes_nothing(struct tap *tap_)
{
	static const char *const when[] = {"event A", "reply 1 ok", "event B"};

	for (size_t i = 0; i < 3; i++) {
		FIXTURE f;
		struct scene s;

		begin(&f, &s, act_process, when[i]);
		say_all(&f, &s);
		CHECK_STR(fixture_notes(&f), "event A, reply 1 ok, reply 2 ok, event B");
		CHECK_INT(s.result, 0);
	}
}

static void freeing_wins_over_connecting(struct tap *tap_)
{
	FIXTURE f;
	struct scene s;

	begin(&f, &s, act_connect, "reply 1 cancelled");
	peer_init(&s.other);
	f.q = qmp_free(f.q);
	CHECK_STR(fixture_notes(&f), "reply 1 cancelled, reply 2 cancelled");
	/* a transport is taken over in any case, so nobody else will close it */
	CHECK_INT(s.other.closed, 1);
	peer_deinit(&s.other);
}

static void a_cancelled_command_may_ask_again(struct tap *tap_)
{
	FIXTURE f;
	struct scene s;

	begin(&f, &s, act_execute, "reply 2 cancelled");
	CHECK(qmp_cancel(f.q, s.call[2].id));
	CHECK_INT(s.result, 0);
	s.when = "reply 1 cancelled";
	qmp_disconnect(f.q);
	CHECK_INT(s.result, QMP_E_STATE);
	/* 3 was open, then overwritten by the attempt that was refused: not a note of its own */
	CHECK_STR(fixture_notes(&f), "reply 2 cancelled, reply 1 cancelled, reply 3 cancelled, "
				     "state disconnected");
}

static void a_callback_of_a_cancelled_or_late_command_may_free(struct tap *tap_)
{
	for (unsigned late = 0; late < 2; late++) {
		FIXTURE f;
		struct scene s;

		begin(&f, &s, act_free, late ? "reply 1 timeout" : "reply 1 cancelled");
		if (late)
			qmp_process(f.q, 0, f.now_ns + 5 * SECOND);
		else
			CHECK(qmp_cancel(f.q, s.call[1].id));
		CHECK_STR(fixture_notes(&f), late ? "reply 1 timeout, reply 2 cancelled"
						  : "reply 1 cancelled, reply 2 cancelled");
		CHECK_INT(f.peer.closed, 1);
	}
}

static void a_late_command_may_cancel_another_late_one(struct tap *tap_)
{
	FIXTURE f;
	struct scene s;

	begin(&f, &s, act_cancel, "reply 1 timeout");
	f.now_ns += 5 * SECOND;
	fixture_process(&f);
	CHECK_STR(fixture_notes(&f), "reply 1 timeout, reply 2 cancelled");
}

TAP_MAIN(TEST(a_callback_may_execute), TEST(a_callback_may_cancel_another_command),
	TEST(a_command_that_ends_is_not_there_to_be_cancelled), TEST(a_callback_may_disconnect),
	TEST(a_callback_may_free), TEST(a_state_callback_may_disconnect_or_free),
	TEST(a_callback_may_connect_to_another_peer), TEST(a_break_may_be_answered_by_connecting),
	TEST(a_callback_may_process_and_changes_nothing), TEST(freeing_wins_over_connecting),
	TEST(a_cancelled_command_may_ask_again),
	TEST(a_callback_of_a_cancelled_or_late_command_may_free),
	TEST(a_late_command_may_cancel_another_late_one))
