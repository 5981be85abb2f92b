/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What client.h promises besides what transcripts and callbacks show. */
#include <errno.h>
#include <poll.h>

#include "tests/qmp/fixture.h"
#include "tests/tap.h"

#define HANDSHAKE "{\"QMP\": {}} {\"return\": {}}" /* of a peer that does not wait to be asked */
#define FIXTURE __attribute__((cleanup(fixture_deinit))) struct fixture

static void sending_never_calls_back(struct tap *tap_)
{
	FIXTURE f;
	struct call call;

	fixture_init(&f);
	fixture_ready(&f);
	f.peer.error = EPIPE;
	CHECK_INT(fixture_execute(&f, &call, 1, 0), 0);
	CHECK_STR(fixture_notes(&f), "");
	fixture_process(&f);
	CHECK_STR(fixture_notes(&f), "reply 1 closed, state broken closed");
}

static void last_words_of_a_peer_that_takes_nothing_are_heard(struct tap *tap_)
{
	FIXTURE f;
	struct call call[2];

	fixture_init(&f);
	fixture_ready(&f);
	CHECK_INT(fixture_execute(&f, &call[0], 1, 0), 0);
	fixture_say_reply(&f, &call[0]);
	fixture_say(&f, "{\"event\": \"SHUTDOWN\"}");
	f.peer.hung_up = true;
	CHECK_INT(fixture_execute(&f, &call[1], 2, 0), 0);
	/* a loop that looked for POLLOUT only */
	CHECK(qmp_wanted(f.q) & POLLOUT);
	qmp_process(f.q, POLLOUT, f.now_ns);
	fixture_process(&f);
	CHECK_STR(fixture_notes(&f),
		"reply 1 ok, event SHUTDOWN, reply 2 closed, state broken closed");
}

static void what_waited_for_a_dead_peer_is_not_sent_to_the_next(struct tap *tap_)
{
	FIXTURE f;
	struct call call;
	struct qmp_transport t;
	char *line;

	fixture_init(&f);
	fixture_ready(&f);
	f.peer.takes = 10;
	CHECK_INT(fixture_execute(&f, &call, 1, 0), 0);
	CHECK(qmp_wanted(f.q) & POLLOUT);
	f.peer.hung_up = true;
	fixture_process(&f);
	CHECK_STR(fixture_notes(&f), "reply 1 closed, state broken closed");
	peer_reset(&f.peer);
	t = peer_transport(&f.peer);
	CHECK_INT(qmp_connect_transport(f.q, &t, f.now_ns), 0);
	CHECK_INT(qmp_wanted(f.q), POLLIN);
	fixture_say(&f, HANDSHAKE);
	fixture_process(&f);
	line = peer_next_line(&f.peer);
	CHECK(line && strstr(line, "\"qmp_capabilities\"") && !strstr(line, "\"c1\""));
	free(line);
}

static void only_a_client_without_a_connection_connects(struct tap *tap_)
{
	FIXTURE f;
	struct peer other;
	struct qmp_transport t;

	fixture_init(&f);
	fixture_ready(&f);
	peer_init(&other);
	t = peer_transport(&other);
	CHECK_INT(qmp_connect_transport(f.q, &t, f.now_ns), -EINVAL);
	CHECK_INT(other.closed, 1);
	CHECK_INT(qmp_connect(f.q, "/nowhere", f.now_ns), -EINVAL);
	CHECK_INT(qmp_state_of(f.q), QMP_READY);
	CHECK_STR(fixture_notes(&f), "");
	peer_deinit(&other);
}

static void a_timeout_of_for_ever_does_not_wrap_around(struct tap *tap_)
{
	FIXTURE f;
	struct call call;
	struct qmp_transport t;

	fixture_init(&f);
	f.config.greeting_timeout_ns = QMP_NEVER;
	f.config.message_timeout_ns = QMP_NEVER;
	t = peer_transport(&f.peer);
	REQUIRE(qmp_new(&f.config, &f.q) == 0);
	CHECK_INT(qmp_connect_transport(f.q, &t, f.now_ns), 0);
	fixture_process(&f);
	REQUIRE(qmp_state_of(f.q) == QMP_GREETING);
	fixture_say(&f, HANDSHAKE);
	fixture_process(&f);
	CHECK_INT(fixture_execute(&f, &call, 1, QMP_NEVER), 0);
	fixture_say(&f, "{");
	fixture_process(&f);
	CHECK(qmp_deadline_ns(f.q) > f.now_ns);
	CHECK_STR(fixture_notes(&f), "state greeting, state negotiating, state ready");
}

static void callbacks_may_be_missing(struct tap *tap_)
{
	FIXTURE f;

	fixture_init(&f);
	f.config.on_event = NULL;
	f.config.on_state = NULL;
	fixture_ready(&f);
	fixture_say(&f, "{\"event\": \"A\"}");
	fixture_process(&f);
	CHECK_INT(qmp_counters_of(f.q).events, 1);
	f.peer.hung_up = true;
	fixture_process(&f);
	CHECK_INT(qmp_state_of(f.q), QMP_BROKEN);
}

static void nothing_is_freed_safely(struct tap *tap_)
{
	struct qmp *q;

	CHECK(qmp_free(NULL) == NULL);
	REQUIRE(qmp_new(NULL, &q) == 0);
	CHECK_INT(qmp_state_of(q), QMP_DISCONNECTED);
	CHECK_INT(qmp_fd(q), -1);
	CHECK_INT(qmp_wanted(q), 0);
	CHECK(qmp_deadline_ns(q) == QMP_NEVER);
	CHECK_INT(qmp_last_error(q)->code, 0);
	CHECK(qmp_greeting_version(q) == NULL);
	CHECK_INT(qmp_peer_pid(q), 0);
	CHECK_INT(qmp_process(q, POLLIN | POLLOUT | POLLHUP, 1), 0);
	qmp_disconnect(q);
	CHECK_INT(qmp_state_of(q), QMP_DISCONNECTED);
	CHECK(qmp_free(q) == NULL);
}

static void every_condition_and_state_has_a_word(struct tap *tap_)
{
	for (int i = 0; i < QMP_RESULTS; i++) {
		CHECK(qmp_result_name(i)[0] != '\0');
		CHECK(strcmp(qmp_result_name(i), qmp_result_name(QMP_RESULTS)) != 0);
		for (int k = 0; k < i; k++)
			CHECK(strcmp(qmp_result_name(i), qmp_result_name(k)) != 0);
	}
	CHECK_STR(qmp_result_name(0), "ok");
	CHECK(qmp_result_name(-ENOMEM) && qmp_result_name(1000));
	for (int i = 0; i < QMP_STATES; i++)
		for (int k = 0; k < i; k++)
			CHECK(strcmp(qmp_state_name((enum qmp_state)i),
				      qmp_state_name((enum qmp_state)k)) != 0);
}

TAP_MAIN(TEST(sending_never_calls_back), TEST(last_words_of_a_peer_that_takes_nothing_are_heard),
	TEST(what_waited_for_a_dead_peer_is_not_sent_to_the_next),
	TEST(only_a_client_without_a_connection_connects),
	TEST(a_timeout_of_for_ever_does_not_wrap_around), TEST(callbacks_may_be_missing),
	TEST(nothing_is_freed_safely), TEST(every_condition_and_state_has_a_word))
