/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Real sockets: what is wrong with a path, a listener that is busy, and reconnecting. Time is
 * passed in, so that nothing waits.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/qmp/server.h"
#include "tests/tap.h"

#define SECOND UINT64_C(1000000000)
#define SERVER __attribute__((cleanup(server_deinit))) struct server
#define CLIENT __attribute__((cleanup(free_client))) struct qmp

static void free_client(struct qmp **q)
{
	*q = qmp_free(*q);
}

/* What connecting to @path comes to, in both ways of asking. */
static int try_path(struct tap *tap_, const char *path)
{
	struct qmp_transport t;
	struct qmp_error err = {0};
	CLIENT *q = NULL;
	int r = qmp_transport_unix(path, &t, &err);

	if (r == 0) {
		t.close(t.t);
		return 0;
	}
	CHECK_INT(err.code, r);
	CHECK(err.text[0] != '\0');
	if (qmp_new(NULL, &q) < 0)
		abort();
	if (r == QMP_E_BUSY)
		return r;
	CHECK_INT(qmp_connect(q, path, SECOND), r);
	CHECK_INT(qmp_state_of(q), QMP_BROKEN);
	CHECK_INT(qmp_last_error(q)->code, r);
	CHECK(qmp_deadline_ns(q) == QMP_NEVER);
	return r;
}

static void a_path_that_is_no_socket_is_named(struct tap *tap_)
{
	SERVER s;
	char path[256];

	server_init(&s);
	CHECK_INT(try_path(tap_, server_path(&s, path, "missing")), QMP_E_NOT_FOUND);
	CHECK_INT(try_path(tap_, ""), QMP_E_NOT_FOUND);
	CHECK_INT(try_path(tap_, s.dir), QMP_E_NOT_SOCKET);
	server_path(&s, path, "file");
	close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	CHECK_INT(try_path(tap_, path), QMP_E_NOT_SOCKET);
	CHECK_INT(try_path(tap_, server_path(&s, path, "file/below")), QMP_E_NOT_FOUND);
	server_path(&s, path, "fifo");
	CHECK_INT(mkfifo(path, 0600), 0);
	CHECK_INT(try_path(tap_, path), QMP_E_NOT_SOCKET);
	CHECK_INT(try_path(tap_, "/dev/null"), QMP_E_NOT_SOCKET);
	server_path(&s, path, "loop");
	CHECK_INT(symlink(path, path), 0);
	CHECK_INT(try_path(tap_, path), QMP_E_IO);
}

static void a_socket_of_another_type_is_no_monitor(struct tap *tap_)
{
	static const int types[] = {SOCK_DGRAM, SOCK_SEQPACKET};

	for (size_t i = 0; i < 2; i++) {
		SERVER s;
		char path[256];
		int fd = socket(AF_UNIX, types[i] | SOCK_CLOEXEC, 0);
		struct sockaddr_un address;

		server_init(&s);
		server_path(&s, path, "other");
		server_address(&address, path);
		CHECK_INT(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
		if (types[i] == SOCK_SEQPACKET)
			CHECK_INT(listen(fd, 1), 0);
		CHECK_INT(try_path(tap_, path), QMP_E_NOT_SOCKET);
		close(fd);
	}
}

static void a_path_has_at_most_107_bytes(struct tap *tap_)
{
	char path[4096] = "/";

	memset(path + 1, 'x', 106);
	CHECK_INT(try_path(tap_, path), QMP_E_NOT_FOUND);
	path[107] = 'x';
	CHECK_INT(try_path(tap_, path), QMP_E_PATH_TOO_LONG);
	memset(path + 1, 'x', sizeof(path) - 2);
	CHECK_INT(try_path(tap_, path), QMP_E_PATH_TOO_LONG);
}

static void a_socket_that_nobody_listens_on_is_refused(struct tap *tap_)
{
	SERVER s;

	server_init(&s);
	server_listen(&s, 1);
	close(s.listener);
	s.listener = -1;
	CHECK_INT(try_path(tap_, s.path), QMP_E_REFUSED);
}

/* Root may everything, so somebody else has to ask. */
static int try_as_nobody(const char *path)
{
	struct qmp_transport t;
	struct qmp_error err;
	pid_t pid;
	int status;

	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		if (setgid(65534) < 0 || setuid(65534) < 0)
			_exit(200);
		_exit(qmp_transport_unix(path, &t, &err));
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
		return -1;
	return WEXITSTATUS(status);
}

static void permission_is_denied_by_name(struct tap *tap_)
{
	SERVER s;

	if (geteuid() != 0)
		printf("# needs root, to become somebody else\n");
	REQUIRE(geteuid() == 0);
	server_init(&s);
	server_listen(&s, 8);
	/* by the directory, by the socket, not at all */
	CHECK_INT(try_as_nobody(s.path), QMP_E_PERM);
	CHECK_INT(chmod(s.dir, 0755), 0);
	CHECK_INT(chmod(s.path, 0600), 0);
	CHECK_INT(try_as_nobody(s.path), QMP_E_PERM);
	CHECK_INT(chmod(s.path, 0666), 0);
	CHECK_INT(try_as_nobody(s.path), 0);
}

static void a_busy_socket_is_waited_for_and_then_named(struct tap *tap_)
{
	struct qmp_config config = {.connect_timeout_ns = 2 * SECOND};
	CLIENT *q = NULL;
	uint64_t now = 5 * SECOND;
	unsigned turns = 0;
	SERVER s;

	server_init(&s);
	server_listen(&s, 0);
	REQUIRE(server_fill(&s));
	CHECK_INT(try_path(tap_, s.path), QMP_E_BUSY);
	REQUIRE(qmp_new(&config, &q) == 0);
	CHECK_INT(qmp_connect(q, s.path, now), 0);
	while (qmp_state_of(q) == QMP_CONNECTING && turns++ < 10000) {
		CHECK_INT(qmp_fd(q), -1);
		CHECK_INT(qmp_wanted(q), 0);
		REQUIRE(qmp_deadline_ns(q) > now && qmp_deadline_ns(q) <= 8 * SECOND);
		now = qmp_deadline_ns(q);
		CHECK_INT(qmp_process(q, 0, now), 0);
	}
	CHECK_INT(qmp_state_of(q), QMP_BROKEN);
	CHECK_INT(qmp_last_error(q)->code, QMP_E_BUSY);
	CHECK(now >= 7 * SECOND && now < 8 * SECOND);
	/* it neither spins nor sleeps */
	CHECK(turns >= 4 && turns <= 2000);
}

static void a_socket_that_is_no_longer_busy_is_taken(struct tap *tap_)
{
	CLIENT *q = NULL;
	uint64_t now = SECOND;
	SERVER s;

	server_init(&s);
	server_listen(&s, 0);
	REQUIRE(server_fill(&s));
	REQUIRE(qmp_new(NULL, &q) == 0);
	CHECK_INT(qmp_connect(q, s.path, now), 0);
	CHECK_INT(qmp_state_of(q), QMP_CONNECTING);
	server_empty(&s);
	now = qmp_deadline_ns(q);
	CHECK_INT(qmp_process(q, 0, now), 0);
	CHECK_INT(qmp_state_of(q), QMP_GREETING);
	CHECK(qmp_fd(q) >= 0);
	/* the time for the greeting begins here */
	CHECK(qmp_deadline_ns(q) == now + 5 * SECOND);
}

static void connecting_is_left_by_disconnecting(struct tap *tap_)
{
	CLIENT *q = NULL;
	SERVER s;

	server_init(&s);
	server_listen(&s, 0);
	REQUIRE(server_fill(&s));
	REQUIRE(qmp_new(NULL, &q) == 0);
	CHECK_INT(qmp_connect(q, s.path, SECOND), 0);
	CHECK_INT(qmp_connect(q, s.path, SECOND), -EINVAL);
	qmp_disconnect(q);
	CHECK_INT(qmp_state_of(q), QMP_DISCONNECTED);
	CHECK(qmp_deadline_ns(q) == QMP_NEVER);
	CHECK_INT(qmp_process(q, 0, 100 * SECOND), 0);
	CHECK_INT(qmp_state_of(q), QMP_DISCONNECTED);
}

static void a_listener_that_never_accepts_gives_no_greeting(struct tap *tap_)
{
	CLIENT *q = NULL;
	SERVER s;

	server_init(&s);
	server_listen(&s, 1);
	REQUIRE(qmp_new(NULL, &q) == 0);
	CHECK_INT(qmp_connect(q, s.path, SECOND), 0);
	CHECK_INT(qmp_state_of(q), QMP_GREETING);
	CHECK_INT(qmp_peer_pid(q), getpid());
	CHECK(qmp_deadline_ns(q) == 6 * SECOND);
	qmp_process(q, 0, 6 * SECOND - 1);
	CHECK_INT(qmp_state_of(q), QMP_GREETING);
	qmp_process(q, 0, 6 * SECOND);
	CHECK_INT(qmp_state_of(q), QMP_BROKEN);
	CHECK_INT(qmp_last_error(q)->code, QMP_E_NO_GREETING);
	CHECK_INT(qmp_fd(q), -1);
	CHECK_INT(qmp_peer_pid(q), 0);
}

/* Lets time pass to the next try. Returns how long it was; checks that nothing came before. */
static uint64_t next_try(struct tap *tap_, struct qmp *q, uint64_t *now)
{
	uint64_t waited = qmp_deadline_ns(q) - *now;
	uint64_t breaks = qmp_counters_of(q).breaks;

	CHECK_INT(qmp_state_of(q), QMP_BROKEN);
	qmp_process(q, 0, *now + waited - 1);
	CHECK_INT(qmp_state_of(q), QMP_BROKEN);
	CHECK_INT(qmp_counters_of(q).breaks, breaks);
	*now += waited;
	qmp_process(q, 0, *now);
	return waited;
}

static void reconnecting_backs_off_up_to_a_bound(struct tap *tap_)
{
	static const uint64_t waits[] = {100, 200, 400, 800, 1500, 1500, 1500};
	struct qmp_config config = {.reconnect_min_ns = 100, .reconnect_max_ns = 1500};
	CLIENT *q = NULL;
	uint64_t now = SECOND;
	SERVER s;

	server_init(&s);
	REQUIRE(qmp_new(&config, &q) == 0);
	CHECK_INT(qmp_connect(q, s.path, now), QMP_E_NOT_FOUND);
	for (size_t i = 0; i < 7; i++)
		CHECK_INT(next_try(tap_, q, &now), waits[i]);
	CHECK_INT(qmp_counters_of(q).breaks, 8);
	/* now there is somebody, who gives a greeting and leaves: no reason to hurry yet */
	server_listen(&s, 1);
	CHECK_INT(next_try(tap_, q, &now), 1500);
	CHECK_INT(qmp_state_of(q), QMP_GREETING);
	CHECK_INT(qmp_last_error(q)->code, 0);
	server_accept(&s);
	server_say(&s, "{\"QMP\": {}}");
	qmp_process(q, POLLIN, now);
	server_hang_up(&s);
	qmp_process(q, POLLIN | POLLHUP, now);
	CHECK_INT(next_try(tap_, q, &now), 1500);
	/* one that negotiates, too */
	server_accept(&s);
	server_say(&s, "{\"QMP\": {}}{\"return\": {}}");
	qmp_process(q, POLLIN, now);
	CHECK_INT(qmp_state_of(q), QMP_READY);
	server_hang_up(&s);
	qmp_process(q, POLLIN | POLLHUP, now);
	CHECK_INT(qmp_last_error(q)->code, QMP_E_CLOSED);
	CHECK_INT(next_try(tap_, q, &now), 100);
	CHECK_INT(qmp_state_of(q), QMP_GREETING);
}

static void a_break_ends_commands_and_does_not_repeat_them(struct tap *tap_)
{
	struct qmp_config config = {.reconnect_min_ns = SECOND};
	CLIENT *q = NULL;
	uint64_t now = SECOND;
	int result = -1;
	SERVER s;

	server_init(&s);
	server_listen(&s, 1);
	REQUIRE(qmp_new(&config, &q) == 0);
	server_handshake(&s, q, now);
	CHECK_INT(qmp_execute(q, "quit", NULL, 0, now, 0, server_on_reply, &result, NULL), 0);
	server_hang_up(&s);
	qmp_process(q, POLLIN | POLLHUP, now);
	CHECK_INT(result, QMP_E_CLOSED);
	CHECK_INT(next_try(tap_, q, &now), SECOND);
	server_accept(&s);
	server_say(&s, "{\"QMP\": {}}{\"return\": {}}");
	qmp_process(q, POLLIN, now);
	CHECK_INT(qmp_state_of(q), QMP_READY);
	CHECK(strstr(server_heard(&s), "qmp_capabilities") != NULL);
	CHECK(strstr(server_heard(&s), "quit") == NULL);
	/* somebody who has had enough */
	server_hang_up(&s);
	qmp_process(q, POLLIN | POLLHUP, now);
	qmp_disconnect(q);
	CHECK(qmp_deadline_ns(q) == QMP_NEVER);
}

static void a_transport_does_not_reconnect(struct tap *tap_)
{
	struct qmp_config config = {.reconnect_min_ns = SECOND};
	struct qmp_transport t;
	CLIENT *q = NULL;
	int fds[2];

	REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0);
	REQUIRE(qmp_new(&config, &q) == 0);
	REQUIRE(qmp_transport_fd(fds[0], &t, NULL) == 0);
	CHECK(fcntl(fds[0], F_GETFL) & O_NONBLOCK);
	CHECK_INT(qmp_connect_transport(q, &t, SECOND), 0);
	CHECK_INT(qmp_fd(q), fds[0]);
	CHECK_INT(qmp_peer_pid(q), getpid());
	close(fds[1]);
	qmp_process(q, POLLIN | POLLHUP, SECOND);
	CHECK_INT(qmp_last_error(q)->code, QMP_E_CLOSED);
	CHECK(qmp_deadline_ns(q) == QMP_NEVER);
	CHECK_INT(fcntl(fds[0], F_GETFD), -1);
}

static void an_fd_that_is_no_stream_is_left_alone(struct tap *tap_)
{
	struct qmp_transport t;
	struct qmp_error err;
	int fds[2], file = open("/dev/null", O_RDWR | O_CLOEXEC);

	CHECK_INT(qmp_transport_fd(file, &t, &err), QMP_E_NOT_SOCKET);
	CHECK_INT(err.code, QMP_E_NOT_SOCKET);
	CHECK_INT(close(file), 0);
	REQUIRE(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, fds) == 0);
	CHECK_INT(qmp_transport_fd(fds[0], &t, &err), QMP_E_NOT_SOCKET);
	CHECK_INT(close(fds[0]), 0);
	CHECK_INT(close(fds[1]), 0);
	CHECK(qmp_transport_fd(fds[0], &t, &err) > 0);
	CHECK(qmp_transport_fd(-1, &t, &err) > 0);
}

/* The kernel's buffers fill up, then ours; nothing is lost and nothing is sent twice. */
static void a_peer_that_does_not_read_for_a_while_gets_all(struct tap *tap_)
{
	struct json_object *arguments = json_object_new_object();
	CLIENT *q = NULL;
	unsigned sent = 0, heard = 0;
	int result = -1;
	static char text[50001];
	SERVER s;

	memset(text, 'x', sizeof(text) - 1);
	json_object_object_add(arguments, "text", json_object_new_string(text));
	server_init(&s);
	server_listen(&s, 1);
	REQUIRE(qmp_new(NULL, &q) == 0);
	server_handshake(&s, q, SECOND);
	while (qmp_execute(q, "c", arguments, 0, SECOND, 0, server_on_reply, &result, NULL) == 0)
		sent++;
	CHECK(sent > 20 && sent < QMP_CALLS_MAX);
	CHECK_INT(qmp_wanted(q), POLLIN | POLLOUT);
	for (unsigned i = 0; i < 10000 && qmp_wanted(q) != POLLIN; i++) {
		heard += server_lines(&s);
		qmp_process(q, POLLOUT, SECOND);
	}
	heard += server_lines(&s);
	CHECK_INT(heard, sent);
	CHECK_INT(qmp_state_of(q), QMP_READY);
	json_object_put(arguments);
}

TAP_MAIN(TEST(a_path_that_is_no_socket_is_named), TEST(a_socket_of_another_type_is_no_monitor),
	TEST(a_path_has_at_most_107_bytes), TEST(a_socket_that_nobody_listens_on_is_refused),
	TEST(permission_is_denied_by_name), TEST(a_busy_socket_is_waited_for_and_then_named),
	TEST(a_socket_that_is_no_longer_busy_is_taken), TEST(connecting_is_left_by_disconnecting),
	TEST(a_listener_that_never_accepts_gives_no_greeting),
	TEST(reconnecting_backs_off_up_to_a_bound),
	TEST(a_break_ends_commands_and_does_not_repeat_them), TEST(a_transport_does_not_reconnect),
	TEST(an_fd_that_is_no_stream_is_left_alone),
	TEST(a_peer_that_does_not_read_for_a_while_gets_all))
