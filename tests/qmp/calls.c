/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A monitor that takes whole commands: what it is given, and what is made of its replies. */
#include <errno.h>
#include <poll.h>

#include "tests/qmp/fixture.h"
#include "tests/tap.h"

#define SECOND UINT64_C(1000000000)

/* The monitor. */
struct monitor {
	unsigned called;
	char command[256]; /* the last one */
	int result;
	const char *reply; /* on 0 */
};

static int call(void *userdata, const char *command, char **ret_reply)
{
	struct monitor *m = userdata;

	m->called++;
	snprintf(m->command, sizeof(m->command), "%s", command);
	if (m->result == 0)
		*ret_reply = strdup(m->reply);
	return m->result;
}

#define FIXTURE __attribute__((cleanup(fixture_deinit))) struct fixture

static void turn(struct fixture *f)
{
	struct pollfd p = {.fd = qmp_fd(f->q), .events = qmp_wanted(f->q)};

	if (poll(&p, 1, 0) < 0 || qmp_process(f->q, p.revents, f->now_ns) < 0)
		abort();
}

static void begin(struct fixture *f, struct monitor *m)
{
	struct qmp_transport t;

	fixture_init(f);
	*m = (struct monitor){.reply = "{\"return\": {}}"};
	if (qmp_transport_calls(call, m, &t) < 0 || qmp_new(&f->config, &f->q) < 0 ||
		qmp_connect_transport(f->q, &t, f->now_ns) < 0)
		abort();
	for (unsigned i = 0; i < 5 && qmp_state_of(f->q) != QMP_READY; i++)
		turn(f);
}

static void it_is_ready_without_a_call(struct tap *tap_)
{
	FIXTURE f;
	struct monitor m;

	begin(&f, &m);
	CHECK_STR(fixture_notes(&f), "state greeting, state negotiating, state ready");
	CHECK_INT(m.called, 0);
	CHECK(!qmp_has_oob(f.q));
	CHECK_INT(qmp_peer_pid(f.q), 0);
	CHECK_INT(qmp_wanted(f.q), POLLIN);
	/* and then nothing is to be read: a loop would spin */
	CHECK_INT(poll(&(struct pollfd){.fd = qmp_fd(f.q), .events = POLLIN}, 1, 0), 0);
}

static void a_command_is_handed_on_without_id(struct tap *tap_)
{
	FIXTURE f;
	struct monitor m;
	struct call c = {.f = &f, .number = 1};
	struct json_object *arguments = json_tokener_parse("{\"target\": \"vcpu\"}");

	begin(&f, &m);
	f.n_notes = 0;
	CHECK_INT(qmp_execute(f.q, "query-stats", arguments, 0, f.now_ns, 0, fixture_on_reply, &c,
			  NULL),
		0);
	json_object_put(arguments);
	CHECK_STR(fixture_notes(&f), "");
	turn(&f);
	CHECK_STR(fixture_notes(&f), "reply 1 ok");
	CHECK_INT(m.called, 1);
	CHECK_STR(m.command, "{\"execute\":\"query-stats\",\"arguments\":{\"target\":\"vcpu\"}}");
}

/* One command that is answered with @reply; what came of it, and whether another one is answered.
 */
static const char *answered(const char *reply)
{
	FIXTURE f;
	struct monitor m;
	struct call c, next;

	begin(&f, &m);
	m.reply = reply;
	f.n_notes = 0;
	if (fixture_execute(&f, &c, 1, 20 * SECOND) != 0)
		abort();
	/* a large one takes some turns, but no time */
	for (unsigned i = 0; i < 20 && !c.ended; i++)
		turn(&f);
	m.reply = "{\"return\": {}}";
	if (qmp_state_of(f.q) == QMP_READY && fixture_execute(&f, &next, 2, 0) == 0)
		turn(&f);
	f.act = NULL;
	return fixture_notes(&f);
}

static void a_reply_belongs_to_its_command_whatever_id_it_has(struct tap *tap_)
{
	CHECK_STR(answered("{\"return\": {}}"), "reply 1 ok, reply 2 ok");
	CHECK_STR(answered("{\"return\": {}, \"id\": \"libvirt-17\"}"), "reply 1 ok, reply 2 ok");
	CHECK_STR(answered("{\"id\": null, \"return\": {}}\r\n"), "reply 1 ok, reply 2 ok");
	CHECK_STR(answered("  {\r\n\"return\": {}\n}\n"), "reply 1 ok, reply 2 ok");
	CHECK_STR(
		answered("{\"error\": {\"class\": \"GenericError\", \"desc\": \"x\"}, \"id\": 4}"),
		"reply 1 error-reply, reply 2 ok");
}

/* Nothing more can come, so the command ends at once, and only that one does. */
static void a_reply_that_is_none_ends_its_command(struct tap *tap_)
{
	static const char *const replies[] = {"garbage", "[1]", "", "\r\n", "{\"return\": {",
		"{\"return\": nonsense}", "{\"return\": \"\xff\"}"};

	for (size_t i = 0; i < 7; i++)
		CHECK_STR(answered(replies[i]), "reply 1 error-reply, reply 2 ok");
	CHECK_STR(answered("{\"ret\": 1}"), "reply 1 protocol, state broken protocol");
}

static void what_a_call_fails_of_reaches_the_command(struct tap *tap_)
{
	static const struct {
		int result;
		const char *notes;
	} cases[] = {
		{QMP_E_CLOSED, "reply 1 closed, state broken closed"},
		{QMP_E_PERM, "reply 1 error-reply"},
		{QMP_E_BUSY, "reply 1 error-reply"},
		{QMP_E_IO, "reply 1 error-reply"},
		{-EIO, "reply 1 io, state broken io"},
	};

	for (size_t i = 0; i < 5; i++) {
		FIXTURE f;
		struct monitor m;
		struct call c;

		begin(&f, &m);
		m.result = cases[i].result;
		f.n_notes = 0;
		CHECK_INT(fixture_execute(&f, &c, 1, 0), 0);
		CHECK_STR(fixture_notes(&f), "");
		turn(&f);
		CHECK_STR(fixture_notes(&f), cases[i].notes);
		/* a command is not tried again behind its sender's back */
		turn(&f);
		CHECK_INT(m.called, 1);
	}
}

static void many_commands_are_answered_in_their_order(struct tap *tap_)
{
	FIXTURE f;
	struct monitor m;
	struct call c[20];

	begin(&f, &m);
	f.n_notes = 0;
	for (int i = 0; i < 20; i++)
		CHECK_INT(fixture_execute(&f, &c[i], i, 0), 0);
	for (unsigned i = 0; i < 30 && f.n_notes < 20; i++)
		turn(&f);
	CHECK_INT(m.called, 20);
	CHECK_STR(f.note[0], "reply 0 ok");
	CHECK_STR(f.note[19], "reply 19 ok");
}

static void a_large_reply_comes_whole(struct tap *tap_)
{
	static char reply[300001];
	size_t n = (size_t)sprintf(reply, "{\"return\": \"");

	memset(reply + n, 'x', 299990 - n);
	strcpy(reply + 299990, "\"}");
	CHECK_STR(answered(reply), "reply 1 ok, reply 2 ok");
}

TAP_MAIN(TEST(it_is_ready_without_a_call), TEST(a_command_is_handed_on_without_id),
	TEST(a_reply_belongs_to_its_command_whatever_id_it_has),
	TEST(a_reply_that_is_none_ends_its_command), TEST(what_a_call_fails_of_reaches_the_command),
	TEST(many_commands_are_answered_in_their_order), TEST(a_large_reply_comes_whole))
