/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Round trips through the client and the loop of client.h, against a peer that does nothing but
 * answer; beside them the same bytes by send() and recv() alone. How many system calls the client
 * makes is counted by strace, in two runs of this program that differ by a known number of round
 * trips, so that what begins and ends a program does not count.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <signal.h>
#include <unistd.h>

#include "policy/base.h"
#include "qmp/sync.h"

#define SLICE 2000u /* round trips in one go */
#define SLICES 15u
#define COUNTED 2000u
#define GREETING "{\"QMP\": {\"capabilities\": []}}\r\n"

/* Answers each line that has an "id" in it; the client writes whole lines. */
static void serve(int fd)
{
	char line[4096], reply[256];
	ssize_t n;

	while ((n = recv(fd, line, sizeof(line) - 1, 0)) > 0) {
		const char *id;
		int len;

		line[n] = '\0';
		id = strstr(line, "\"id\":");
		len = snprintf(reply, sizeof(reply), "{\"return\": {}, %.*s}\r\n",
			id ? (int)strcspn(id, "}") : 0, id ? id : "");
		if (send(fd, reply, (size_t)len, MSG_NOSIGNAL) != len)
			break;
	}
	_exit(0);
}

/* The socket to a peer in a process of its own, which greets first if @greets. */
static int start_peer(bool greets)
{
	int fds[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
		abort();
	pid = fork();
	if (pid < 0)
		abort();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(fds[0]);
		if (greets && send(fds[1], GREETING, strlen(GREETING), MSG_NOSIGNAL) < 0)
			_exit(1);
		serve(fds[1]);
	}
	close(fds[1]);
	return fds[0];
}

static void on_reply(void *userdata, struct qmp *q, int result, struct json_object *ret,
	const struct qmp_error *err)
{
	if (result != 0)
		abort();
	*(bool *)userdata = true;
}

static void turn(struct qmp *q)
{
	struct pollfd p = {.fd = qmp_fd(q), .events = qmp_wanted(q)};

	if (poll(&p, 1, 10000) <= 0 || qmp_process(q, p.revents, qmp_sync_now_ns()) != 0 ||
		qmp_fd(q) < 0)
		abort();
}

static void by_client(struct qmp *q, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		bool done = false;

		if (qmp_execute(q, "query-status", NULL, 5000000000, qmp_sync_now_ns(), 0, on_reply,
			    &done, NULL) != 0)
			abort();
		while (!done)
			turn(q);
	}
}

static void by_hand(int fd, unsigned n)
{
	static const char line[] = "{\"execute\":\"query-status\",\"id\":\"10000\"}\r\n";
	char reply[256];

	for (unsigned i = 0; i < n; i++)
		if (send(fd, line, strlen(line), MSG_NOSIGNAL) != (ssize_t)strlen(line) ||
			recv(fd, reply, sizeof(reply), 0) <= 0)
			abort();
}

static struct qmp *connect_client(void)
{
	struct qmp_transport t;
	struct qmp *q;

	if (qmp_transport_fd(start_peer(/* greets= */ true), &t, NULL) != 0 ||
		qmp_new(NULL, &q) < 0 || qmp_connect_transport(q, &t, qmp_sync_now_ns()) != 0)
		abort();
	while (qmp_state_of(q) != QMP_READY)
		turn(q);
	return q;
}

struct counts {
	long sends, receives, polls;
};

/* What `strace -c` has written: columns "% time", seconds, usecs/call, calls, [errors,] syscall. */
static bool read_counts(const char *path, struct counts *ret)
{
	char line[256], name[64], last[64];
	double share, seconds;
	long per_call, calls;
	FILE *f = fopen(path, "re");

	*ret = (struct counts){0};
	while (f && fgets(line, sizeof(line), f)) {
		int n = sscanf(line, "%lf %lf %ld %ld %63s %63s", &share, &seconds, &per_call,
			&calls, name, last);

		if (n < 5)
			continue;
		if (n == 6)
			memcpy(name, last, sizeof(name));
		if (strcmp(name, "sendto") == 0 || strcmp(name, "sendmsg") == 0 ||
			strcmp(name, "write") == 0 || strcmp(name, "writev") == 0)
			ret->sends += calls;
		else if (strcmp(name, "recvfrom") == 0 || strcmp(name, "recvmsg") == 0 ||
			 strcmp(name, "read") == 0 || strcmp(name, "readv") == 0)
			ret->receives += calls;
		else if (strcmp(name, "poll") == 0 || strcmp(name, "ppoll") == 0)
			ret->polls += calls;
	}
	if (f)
		fclose(f);
	return f && ret->sends > 0;
}

/* This program once more, under strace, for @n round trips of the client. */
static bool count(unsigned n, struct counts *ret)
{
	char path[] = "/tmp/numaherd-strace-XXXXXX", self[4096] = "", number[16];
	int fd = mkstemp(path), status = -1;
	bool ok;
	pid_t pid;

	if (fd < 0 || readlink("/proc/self/exe", self, sizeof(self) - 1) < 0)
		return false;
	close(fd);
	snprintf(number, sizeof(number), "%u", n);
	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		execlp("strace", "strace", "-c", "-o", path, self, "--count", number, (char *)NULL);
		perror("strace");
		_exit(127);
	}
	ok = pid > 0 && waitpid(pid, &status, 0) == pid && status == 0 && read_counts(path, ret);
	unlink(path);
	return ok;
}

static int measure(void)
{
	struct qmp *q = connect_client();
	int bare = start_peer(/* greets= */ false);
	double best_client = 0, best_bare = 0, per_second, syscalls, polls;
	struct counts few, many;

	for (unsigned i = 0; i < SLICES; i++) {
		uint64_t begin = qmp_sync_now_ns(), middle, end;

		by_client(q, SLICE);
		middle = qmp_sync_now_ns();
		by_hand(bare, SLICE);
		end = qmp_sync_now_ns();
		best_client = MAX2(best_client, SLICE * 1e9 / (double)(middle - begin));
		best_bare = MAX2(best_bare, SLICE * 1e9 / (double)(end - middle));
	}
	qmp_free(q);
	close(bare);
	if (!count(COUNTED, &few) || !count(2 * COUNTED, &many)) {
		fprintf(stderr, "strace could not count system calls\n");
		return 1;
	}
	per_second = best_client;
	syscalls = (double)(many.sends + many.receives - few.sends - few.receives) / COUNTED;
	polls = (double)(many.polls - few.polls) / COUNTED;
	printf("%-38s %10.0f\n", "round trips per second, send and recv", best_bare);
	printf("%-38s %10.0f\n", "round trips per second, client", per_second);
	printf("%-38s %10.3f\n", "ratio", per_second / best_bare);
	printf("%-38s %10.3f\n", "sends per round trip",
		(double)(many.sends - few.sends) / COUNTED);
	printf("%-38s %10.3f\n", "receives per round trip",
		(double)(many.receives - few.receives) / COUNTED);
	printf("%-38s %10.3f\n", "polls per round trip, of the loop", polls);
	printf("{\"bench\":\"qmp-roundtrip\",\"roundtrips_per_second\":%.0f,"
	       "\"bare_per_second\":%.0f,\"roundtrip_ratio\":%.3f,"
	       "\"syscalls_per_roundtrip\":%.3f,\"polls_per_roundtrip\":%.3f}\n",
		per_second, best_bare, per_second / best_bare, syscalls, polls);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 3 && strcmp(argv[1], "--count") == 0) {
		struct qmp *q = connect_client();

		by_client(q, (unsigned)strtoul(argv[2], NULL, 10));
		qmp_free(q);
		return 0;
	}
	return measure();
}
