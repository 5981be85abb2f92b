/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The blocking calls, against a peer in a process of its own; real time, but little of it. */
#include <errno.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "qmp/sync.h"
#include "tests/qmp/server.h"
#include "tests/tap.h"

#define MS UINT64_C(1000000)
#define PATIENCE (20000 * MS)

/*
 * Answers each command by its name: "none" not at all, "event" with an event before the reply,
 * "hold" when the next command comes, "bye" by going away, any other one at once.
 */
static void serve_command(FILE *f, const char *line, char *held, size_t size)
{
	struct json_object *command = json_tokener_parse(line), *name = NULL, *id = NULL;
	const char *word;

	if (!json_object_object_get_ex(command, "execute", &name) ||
		!json_object_object_get_ex(command, "id", &id))
		_exit(1);
	word = json_object_get_string(name);
	if (strcmp(word, "bye") == 0)
		_exit(0);
	if (held[0])
		fputs(held, f);
	held[0] = '\0';
	if (strcmp(word, "event") == 0)
		fputs("{\"event\": \"E\"}\r\n", f);
	if (strcmp(word, "hold") == 0)
		snprintf(held, size, "{\"return\": {\"late\": true}, \"id\": %s}\r\n",
			json_object_to_json_string_ext(id, 0));
	else if (strcmp(word, "none") != 0)
		fprintf(f, "{\"return\": {\"to\": \"%s\"}, \"id\": %s}\r\n", word,
			json_object_to_json_string_ext(id, 0));
	json_object_put(command);
	fflush(f);
}

static void serve(const struct server *s, const char *greeting)
{
	int fd = accept(s->listener, NULL, NULL);
	FILE *f = fdopen(fd, "r+");
	char line[1024], held[256] = "";

	if (!f)
		_exit(1);
	fputs(greeting, f);
	fflush(f);
	for (;;) {
		fseek(f, 0, SEEK_CUR);
		if (!fgets(line, sizeof(line), f))
			_exit(0);
		serve_command(f, line, held, sizeof(held));
	}
}

struct scene {
	struct server server;
	pid_t pid;
	struct qmp *q;
	unsigned events;
	/* what the next event does, and with what result; whether the state `negotiating` frees */
	enum {
		NOTHING,
		ASK,
		WAIT,
		DISCONNECT,
		FREE
	} act;
	int result;
	bool free_early;
};

static void on_event(void *userdata, struct qmp *q, const struct qmp_event *event)
{
	struct scene *s = userdata;

	s->events++;
	if (s->act == ASK)
		s->result = qmp_sync_execute(q, "what", NULL, PATIENCE, NULL, NULL);
	else if (s->act == WAIT)
		s->result = qmp_sync_wait(q, PATIENCE, NULL, NULL, NULL);
	else if (s->act == DISCONNECT)
		qmp_disconnect(q);
	else if (s->act == FREE)
		s->q = qmp_free(q);
	s->act = NOTHING;
}

static void on_state(void *userdata, struct qmp *q, enum qmp_state state)
{
	struct scene *s = userdata;

	if (s->free_early && state == QMP_NEGOTIATING)
		qmp_free(q);
}

static int begin(struct scene *s, const char *greeting, uint64_t timeout_ns, struct qmp_error *err)
{
	struct qmp_config config = {.greeting_timeout_ns = timeout_ns,
		.on_event = on_event,
		.on_state = on_state,
		.userdata = s};

	server_init(&s->server);
	server_listen(&s->server, 1);
	fflush(NULL);
	s->pid = fork();
	if (s->pid == 0)
		serve(&s->server, greeting);
	return qmp_sync_open(s->server.path, &config, &s->q, err);
}

static void end(struct scene *s)
{
	qmp_free(s->q);
	/* an open connection would keep the peer alive */
	waitpid(s->pid, NULL, 0);
	server_deinit(&s->server);
}
#define SCENE __attribute__((cleanup(end))) struct scene

static void a_question_is_answered(struct tap *tap_)
{
	SCENE s = {0};
	struct json_object *ret = NULL;
	struct qmp_error err = {0};

	REQUIRE(begin(&s, "{\"QMP\": {}}\r\n", PATIENCE, &err) == 0);
	CHECK_INT(qmp_state_of(s.q), QMP_READY);
	CHECK_INT(qmp_peer_pid(s.q), getpid());
	REQUIRE(qmp_sync_execute(s.q, "what", NULL, PATIENCE, &ret, &err) == 0);
	CHECK_STR(json_object_to_json_string_ext(ret, 0), "{\"to\":\"what\"}");
	json_object_put(ret);
	CHECK_INT(qmp_sync_execute(s.q, "event", NULL, 0, NULL, NULL), 0);
	CHECK_INT(s.events, 1);
	CHECK_INT(err.code, 0);
}

static void a_peer_without_a_greeting_is_given_up(struct tap *tap_)
{
	SCENE s = {0};
	struct qmp_error err = {0};
	uint64_t before = qmp_sync_now_ns();

	CHECK_INT(begin(&s, "", 50 * MS, &err), QMP_E_NO_GREETING);
	CHECK_INT(err.code, QMP_E_NO_GREETING);
	CHECK(qmp_sync_now_ns() - before >= 50 * MS);
	CHECK(s.q == NULL);
}

static void a_path_that_is_none_is_named(struct tap *tap_)
{
	struct qmp *q = NULL;
	struct qmp_error err = {0};

	CHECK_INT(qmp_sync_open("/nonexistent/socket", NULL, &q, &err), QMP_E_NOT_FOUND);
	CHECK_INT(err.code, QMP_E_NOT_FOUND);
	CHECK(q == NULL);
	CHECK_INT(qmp_sync_open("/nonexistent/socket", NULL, &q, NULL), QMP_E_NOT_FOUND);
}

static void a_question_without_an_answer_ends_in_time(struct tap *tap_)
{
	SCENE s = {0};
	struct json_object *ret = NULL;
	struct qmp_error err = {0};

	REQUIRE(begin(&s, "{\"QMP\": {}}\r\n", PATIENCE, NULL) == 0);
	CHECK_INT(qmp_sync_execute(s.q, "none", NULL, 30 * MS, &ret, &err), QMP_E_TIMEOUT);
	CHECK_INT(err.code, QMP_E_TIMEOUT);
	CHECK(ret == NULL);
	/* its answer comes with the next one, and is not taken for it */
	CHECK_INT(qmp_sync_execute(s.q, "hold", NULL, 30 * MS, NULL, &err), QMP_E_TIMEOUT);
	REQUIRE(qmp_sync_execute(s.q, "next", NULL, PATIENCE, &ret, &err) == 0);
	CHECK_STR(json_object_to_json_string_ext(ret, 0), "{\"to\":\"next\"}");
	json_object_put(ret);
	CHECK_INT(qmp_counters_of(s.q).strays, 1);
}

static void a_peer_that_leaves_ends_the_question(struct tap *tap_)
{
	SCENE s = {0};
	struct qmp_error err = {0};

	REQUIRE(begin(&s, "{\"QMP\": {}}\r\n", PATIENCE, NULL) == 0);
	CHECK_INT(qmp_sync_execute(s.q, "bye", NULL, PATIENCE, NULL, &err), QMP_E_CLOSED);
	CHECK_INT(err.code, QMP_E_CLOSED);
	CHECK_INT(qmp_sync_execute(s.q, "what", NULL, PATIENCE, NULL, &err), QMP_E_STATE);
	CHECK_INT(err.code, QMP_E_STATE);
	CHECK_INT(qmp_sync_wait(s.q, PATIENCE, NULL, NULL, &err), QMP_E_CLOSED);
	CHECK_INT(err.code, QMP_E_CLOSED);
}

static bool two_events(void *userdata)
{
	return ((struct scene *)userdata)->events == 2;
}

static bool never(void *userdata)
{
	return false;
}

static void waiting_ends_with_enough_or_with_time(struct tap *tap_)
{
	SCENE s = {0};
	uint64_t before;

	REQUIRE(begin(&s, "{\"QMP\": {}}\r\n{\"event\": \"A\"}\r\n{\"event\": \"B\"}\r\n", PATIENCE,
			NULL) == 0);
	CHECK_INT(qmp_sync_wait(s.q, QMP_NEVER, two_events, &s, NULL), 0);
	CHECK_INT(s.events, 2);
	before = qmp_sync_now_ns();
	CHECK_INT(qmp_sync_wait(s.q, 30 * MS, never, &s, NULL), 0);
	CHECK(qmp_sync_now_ns() - before >= 30 * MS);
	CHECK_INT(qmp_sync_wait(s.q, 0, NULL, NULL, NULL), 0);
}

static void a_callback_may_not_wait(struct tap *tap_)
{
	SCENE s = {0};

	REQUIRE(begin(&s, "{\"QMP\": {}}\r\n", PATIENCE, NULL) == 0);
	for (int act = ASK; act <= WAIT; act++) {
		s.act = act;
		s.result = 0;
		CHECK_INT(qmp_sync_execute(s.q, "event", NULL, PATIENCE, NULL, NULL), 0);
		CHECK_INT(s.result, -EDEADLK);
	}
	CHECK_INT(s.events, 2);
}

static void a_callback_that_ends_the_connection_ends_the_waiting(struct tap *tap_)
{
	for (unsigned i = 0; i < 4; i++) {
		SCENE s = {0};
		struct qmp_error err = {0};

		REQUIRE(begin(&s, "{\"QMP\": {}}\r\n", PATIENCE, NULL) == 0);
		s.act = i % 2 ? FREE : DISCONNECT;
		if (i < 2) {
			CHECK_INT(qmp_sync_execute(s.q, "event", NULL, PATIENCE, NULL, &err),
				QMP_E_CANCELLED);
		} else {
			CHECK_INT(qmp_execute(s.q, "event", NULL, 0, qmp_sync_now_ns(), 0,
					  server_on_reply, &s.result, NULL),
				0);
			CHECK_INT(qmp_sync_wait(s.q, PATIENCE, never, &s, &err), QMP_E_CANCELLED);
			CHECK_INT(s.result, QMP_E_CANCELLED);
		}
		CHECK_INT(err.code, QMP_E_CANCELLED);
		CHECK((s.q == NULL) == (i % 2));
	}
}

static void a_callback_that_frees_ends_the_opening(struct tap *tap_)
{
	SCENE s = {.free_early = true};
	struct qmp_error err = {0};

	CHECK_INT(begin(&s, "{\"QMP\": {}}\r\n", PATIENCE, &err), QMP_E_CANCELLED);
	CHECK_INT(err.code, QMP_E_CANCELLED);
	CHECK(s.q == NULL);
}

static void a_transport_is_taken_over_in_any_case(struct tap *tap_)
{
	struct qmp_config hasty = {.greeting_timeout_ns = 10 * MS};
	struct qmp_transport t;
	struct qmp *q = NULL;
	int fds[2];
	char byte;

	REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0);
	REQUIRE(qmp_transport_fd(fds[0], &t, NULL) == 0);
	CHECK_INT(qmp_sync_open_transport(&t, &hasty, &q, NULL), QMP_E_NO_GREETING);
	CHECK_INT(read(fds[1], &byte, 1), 0);
	close(fds[1]);
}

TAP_MAIN(TEST(a_question_is_answered), TEST(a_peer_without_a_greeting_is_given_up),
	TEST(a_path_that_is_none_is_named), TEST(a_question_without_an_answer_ends_in_time),
	TEST(a_peer_that_leaves_ends_the_question), TEST(waiting_ends_with_enough_or_with_time),
	TEST(a_callback_may_not_wait), TEST(a_callback_that_ends_the_connection_ends_the_waiting),
	TEST(a_callback_that_frees_ends_the_opening), TEST(a_transport_is_taken_over_in_any_case))
