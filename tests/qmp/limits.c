/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* How much a peer can make the client keep, and how much the caller can. */
#include <errno.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/qmp/fixture.h"
#include "tests/tap.h"

#define MIB ((size_t)1 << 20)
#ifdef __SANITIZE_ADDRESS__ /* which keeps what was freed, and a rim around each object */
#define MEMORY_MAX (300 * MIB)
#else
#define MEMORY_MAX (150 * MIB)
#endif
#define FIXTURE __attribute__((cleanup(fixture_deinit))) struct fixture

/* An event of exactly @size bytes. */
static void say_event_of(struct fixture *f, size_t size)
{
	static const char begin[] = "{\"event\":\"E\",\"data\":\"", end[] = "\"}";

	peer_say(&f->peer, begin, strlen(begin));
	peer_text_repeat(&f->peer.said, "x", 1, size - strlen(begin) - strlen(end));
	peer_say(&f->peer, end, strlen(end));
}

static void four_mebibytes_are_allowed_and_one_byte_more_is_not(struct tap *tap_)
{
	FIXTURE f;

	fixture_init(&f);
	fixture_ready(&f);
	say_event_of(&f, 4 * MIB);
	fixture_process(&f);
	say_event_of(&f, 4 * MIB);
	fixture_process(&f);
	CHECK_STR(fixture_notes(&f), "event E, event E");
	say_event_of(&f, 4 * MIB + 1);
	fixture_process(&f);
	CHECK_STR(fixture_notes(&f), "state broken too-big");
}

static void the_limit_of_a_message_is_configured(struct tap *tap_)
{
	static const size_t sizes[] = {100, 8191, 8192, 8193, 65536, 100000, 5 * MIB};

	for (size_t i = 0; i < 7; i++) {
		FIXTURE f;

		fixture_init(&f);
		f.config.message_bytes_max = sizes[i];
		fixture_ready(&f);
		say_event_of(&f, sizes[i]);
		fixture_process(&f);
		CHECK_STR(fixture_notes(&f), "event E");
		say_event_of(&f, sizes[i] + 1);
		fixture_process(&f);
		CHECK_STR(fixture_notes(&f), "state broken too-big");
	}
}

/* A message that never ends: @begin and then @more again and again. */
static void hear_without_end(const char *begin, const char *more)
{
	FIXTURE f;
	size_t said = 0;

	fixture_init(&f);
	fixture_ready(&f);
	peer_say(&f.peer, begin, strlen(begin));
	while (qmp_state_of(f.q) == QMP_READY && said < 64 * MIB) {
		peer_text_repeat(&f.peer.said, more, strlen(more), 65536 / strlen(more));
		said += 65536;
		fixture_process(&f);
	}
	if (qmp_state_of(f.q) != QMP_BROKEN || said > 5 * MIB)
		_exit(3);
}

/* One message of @times of @more, with numbers in it so that each is another one. */
static void hear_many(const char *begin, const char *more, const char *end, unsigned times)
{
	FIXTURE f;

	fixture_init(&f);
	fixture_ready(&f);
	peer_say(&f.peer, begin, strlen(begin));
	for (unsigned i = 0; i < times; i++) {
		char number[16];

		for (const char *c = more; *c; c++)
			if (*c == '#')
				peer_say(&f.peer, number, (size_t)sprintf(number, "%u", i));
			else
				peer_say(&f.peer, c, 1);
	}
	peer_say(&f.peer, end, strlen(end));
	fixture_process(&f);
	/* taken or refused, but heard to its end */
	if (f.n_notes != 1)
		_exit(3);
}

/* In a process of its own, since memory once used is counted for ever. */
static void check_memory(struct tap *tap_, const char *what, const char *begin, const char *more,
	const char *end, unsigned times)
{
	struct rusage usage;
	int status;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		if (times)
			hear_many(begin, more, end, times);
		else
			hear_without_end(begin, more);
		_exit(0);
	}
	REQUIRE(pid > 0 && wait4(pid, &status, 0, &usage) == pid);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	printf("# %s: %ld MiB\n", what, usage.ru_maxrss >> 10);
	CHECK((size_t)usage.ru_maxrss << 10 < MEMORY_MAX);
}

static void a_message_without_end_costs_bounded_memory(struct tap *tap_)
{
	check_memory(tap_, "text", "{\"a\": \"", "x", NULL, 0);
	check_memory(tap_, "spaces", "{", " ", NULL, 0);
	check_memory(tap_, "empty lists", "{\"a\": [", "[],", NULL, 0);
	check_memory(tap_, "empty objects", "{\"a\": [", "{},", NULL, 0);
	check_memory(tap_, "digits", "{\"a\": [", "1,", NULL, 0);
	check_memory(tap_, "members", "{", "\"a\":1,", NULL, 0);
	check_memory(tap_, "brackets", "{\"a\": ", "[", NULL, 0);
	check_memory(tap_, "escapes", "{\"a\": \"", "\\u0000", NULL, 0);
}

static void a_message_of_tiny_values_costs_bounded_memory(struct tap *tap_)
{
	check_memory(tap_, "lists", "{\"event\": \"E\", \"data\": [", "[],", "0]}", 65000);
	check_memory(tap_, "objects", "{\"event\": \"E\", \"data\": [", "{},", "0]}", 65000);
	check_memory(tap_, "one member each", "{\"event\": \"E\", \"data\": [", "{\"a\":1},", "0]}",
		65000);
	check_memory(tap_, "many lists", "{\"event\": \"E\", \"data\": [", "[],", "0]}", 500000);
	check_memory(tap_, "digits", "{\"event\": \"E\", \"data\": [", "1,", "0]}", 520000);
	check_memory(tap_, "strings", "{\"event\": \"E\", \"data\": [", "\"\",", "0]}", 520000);
	check_memory(
		tap_, "members", "{\"event\": \"E\", \"data\": {", "\"#\":0,", "\"\":0}}", 390000);
	check_memory(tap_, "too many", "{\"event\": \"E\", \"data\": [", "[],", "0]}", 1390000);
}

/* More than any honest answer has, in fewer bytes than are allowed; also when they trickle in. */
static void too_many_values_are_refused_by_name(struct tap *tap_)
{
	static const char *const more[] = {"[],", "{},", "1,", "\"\","};

	for (unsigned i = 0; i < 8; i++) {
		FIXTURE f;
		const char *text = more[i / 2];
		unsigned times = i < 4 ? 500000 : 1000000;

		fixture_init(&f);
		fixture_ready(&f);
		peer_say(&f.peer, "{\"a\": [", 7);
		for (unsigned k = 0; k < times && qmp_state_of(f.q) == QMP_READY; k += 1000) {
			peer_text_repeat(&f.peer.said, text, strlen(text), 1000);
			if (i % 2)
				fixture_process(&f);
		}
		peer_say(&f.peer, "0]}", 3);
		fixture_process(&f);
		CHECK_STR(fixture_notes(&f), "state broken too-many-values");
	}
}

/* The largest VM there is: its answers are no attack. */
static void a_reply_about_four_thousand_vcpus_is_accepted(struct tap *tap_)
{
	FIXTURE f;
	struct call call;

	fixture_init(&f);
	fixture_ready(&f);
	REQUIRE(fixture_execute(&f, &call, 1, 0) == 0);
	peer_say(&f.peer, "{\"return\": [", 12);
	for (unsigned i = 0; i < 4096; i++) {
		char item[1024];
		int n = snprintf(item, sizeof(item),
			"%s{\"provider\": \"kvm\", \"qom-path\": \"/machine/peripheral/vcpu%u\", "
			"\"stats\": [{\"name\": \"pf_taken\", \"value\": %u}, {\"name\": "
			"\"pf_fixed\", \"value\": 1}, {\"name\": \"pf_emulate\", \"value\": 1}, "
			"{\"name\": \"pf_spurious\", \"value\": 1}, {\"name\": \"pf_fast\", "
			"\"value\": 1}, {\"name\": \"pf_mmio_spte_created\", \"value\": 1}, "
			"{\"name\": \"pf_guest\", \"value\": 1}]}",
			i ? ", " : "", i, i);

		peer_say(&f.peer, item, (size_t)n);
	}
	peer_say(&f.peer, "]}", 2);
	fixture_process(&f);
	CHECK_STR(fixture_notes(&f), "reply 1 ok");
}

static void so_many_commands_are_open_and_no_more(struct tap *tap_)
{
	static struct call call[QMP_CALLS_MAX + 1];
	FIXTURE f;

	fixture_init(&f);
	fixture_ready(&f);
	for (unsigned i = 0; i < QMP_CALLS_MAX; i++)
		REQUIRE(fixture_execute(&f, &call[i], (int)i, 0) == 0);
	CHECK_INT(fixture_execute(&f, &call[QMP_CALLS_MAX], 999, 0), QMP_E_FULL);
	CHECK_STR(call[QMP_CALLS_MAX].wire_id, "");
	/* any of them may make room, by ending in any way */
	fixture_say_reply(&f, &call[100]);
	fixture_process(&f);
	CHECK_STR(fixture_notes(&f), "reply 100 ok");
	REQUIRE(fixture_execute(&f, &call[100], 100, 0) == 0);
	CHECK(qmp_cancel(f.q, call[200].id));
	CHECK_STR(fixture_notes(&f), "reply 200 cancelled");
	REQUIRE(fixture_execute(&f, &call[QMP_CALLS_MAX], 999, 0) == 0);
	for (unsigned i = 0; i < QMP_CALLS_MAX; i++) {
		fixture_say_reply(&f, &call[i]);
		fixture_process(&f);
		f.n_notes = 0;
	}
	fixture_say_reply(&f, &call[QMP_CALLS_MAX]);
	fixture_process(&f);
	for (unsigned i = 0; i <= QMP_CALLS_MAX; i++)
		CHECK_INT(call[i].ended, 1);
	CHECK_INT(qmp_counters_of(f.q).strays, 1);
}

static void commands_given_up_do_not_fill_the_list(struct tap *tap_)
{
	FIXTURE f;
	struct call call;

	fixture_init(&f);
	fixture_ready(&f);
	for (unsigned i = 0; i < 3 * QMP_CALLS_MAX; i++) {
		REQUIRE(fixture_execute(&f, &call, 1, 1) == 0);
		f.now_ns++;
		fixture_process(&f);
		CHECK_STR(fixture_notes(&f), "reply 1 timeout");
	}
}

static void a_peer_that_takes_nothing_fills_the_client_up(struct tap *tap_)
{
	FIXTURE f;
	struct call call;
	struct json_object *arguments = json_object_new_object();
	static char text[100001];
	unsigned sent = 0;
	char *line;

	fixture_init(&f);
	fixture_ready(&f);
	memset(text, 'x', 100000);
	json_object_object_add(arguments, "text", json_object_new_string(text));
	f.peer.takes = 150;
	call = (struct call){.f = &f};
	while (qmp_execute(f.q, "c", arguments, 0, f.now_ns, 0, fixture_on_reply, &call, NULL) == 0)
		sent++;
	CHECK_INT(sent, QMP_SEND_BYTES_MAX / 100000);
	CHECK_INT(f.peer.told.len, 150);
	CHECK_INT(qmp_wanted(f.q), POLLIN | POLLOUT);
	/* a loop that is told so sends the rest in pieces */
	for (unsigned i = 0; i < 20000 && (qmp_wanted(f.q) & POLLOUT); i++) {
		f.peer.takes = 777;
		fixture_process(&f);
	}
	CHECK_INT(qmp_wanted(f.q), POLLIN);
	f.peer.takes = SIZE_MAX;
	while ((line = peer_next_line(&f.peer))) {
		struct json_object *command = json_tokener_parse(line), *got = NULL;

		CHECK(json_object_object_get_ex(command, "arguments", &got));
		CHECK(json_object_equal(got, arguments));
		json_object_put(command);
		free(line);
		sent--;
	}
	CHECK_INT(sent, 0);
	json_object_put(arguments);
	CHECK_INT(call.ended, 0);
}

static void a_command_that_can_never_be_sent_is_refused(struct tap *tap_)
{
	FIXTURE f;
	struct call call = {.f = &f};
	struct json_object *arguments = json_object_new_object();
	char *text = calloc(1, QMP_SEND_BYTES_MAX + 1);

	REQUIRE(text);
	memset(text, 'x', QMP_SEND_BYTES_MAX);
	json_object_object_add(arguments, "text", json_object_new_string(text));
	fixture_init(&f);
	fixture_ready(&f);
	CHECK_INT(qmp_execute(f.q, "c", arguments, 0, f.now_ns, 0, fixture_on_reply, &call, NULL),
		QMP_E_FULL);
	CHECK_INT(qmp_wanted(f.q), POLLIN);
	CHECK_INT(fixture_execute(&f, &call, 1, 0), 0);
	json_object_put(arguments);
	free(text);
}

/* The measured ones first: a child begins with what its parent has used. */
TAP_MAIN(TEST(a_message_without_end_costs_bounded_memory),
	TEST(a_message_of_tiny_values_costs_bounded_memory),
	TEST(four_mebibytes_are_allowed_and_one_byte_more_is_not),
	TEST(the_limit_of_a_message_is_configured), TEST(too_many_values_are_refused_by_name),
	TEST(a_reply_about_four_thousand_vcpus_is_accepted),
	TEST(so_many_commands_are_open_and_no_more), TEST(commands_given_up_do_not_fill_the_list),
	TEST(a_peer_that_takes_nothing_fills_the_client_up),
	TEST(a_command_that_can_never_be_sent_is_refused))
