/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the client adds to the cost of parsing: the installed QEMU's reply to query-qmp-schema, as
 * it came over the socket, through json-c alone and through the client with all its limits and
 * checks. In CPU time and in turns, since the machine is others' too: what counts is the ratio of
 * neighbours.
 */
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "policy/base.h"
#include "tests/qmp/real-qemu.h"

#define ROUNDS 301u
#define READ_BYTES ((size_t)64 << 10) /* what one recv() gives at most */
#define REPLY_MAX ((size_t)4 << 20)
#define HELLO "{\"QMP\": {\"capabilities\": []}}{\"return\": {}}"

/* A transport that has one text to say. */
struct source {
	const char *bytes;
	size_t len, at;
};

static uint64_t cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static int source_fd(void *t)
{
	return 0; /* nobody polls it */
}

static ssize_t source_read(void *t, void *buf, size_t size)
{
	struct source *s = t;
	size_t n = MIN2(s->len - s->at, READ_BYTES);

	n = MIN2(n, size);
	memcpy(buf, s->bytes + s->at, n);
	s->at += n;
	return n ? (ssize_t)n : -EAGAIN;
}

static ssize_t source_write(void *t, const void *buf, size_t size)
{
	return (ssize_t)size;
}

static void source_close(void *t)
{
}

static void on_reply(void *userdata, struct qmp *q, int result, struct json_object *ret,
	const struct qmp_error *err)
{
	*(size_t *)userdata += result == 0 ? json_object_array_length(ret) : 0;
}

static uint64_t client_ns(struct qmp *q, struct source *s, const char *reply, size_t len, size_t *n)
{
	uint64_t begin = cpu_ns();

	*s = (struct source){reply, len, 0};
	if (qmp_execute(q, "query-qmp-schema", NULL, 0, 1, 0, on_reply, n, NULL) != 0)
		abort();
	while (s->at < s->len)
		if (qmp_process(q, POLLIN, 1) != 0)
			abort();
	return cpu_ns() - begin;
}

static uint64_t bare_ns(const char *reply, size_t len, size_t *n)
{
	uint64_t begin = cpu_ns();
	struct json_tokener *tokener = json_tokener_new();
	struct json_object *object = json_tokener_parse_ex(tokener, reply, (int)len), *ret;

	if (!json_object_object_get_ex(object, "return", &ret))
		abort();
	*n += json_object_array_length(ret);
	json_object_put(object);
	json_tokener_free(tokener);
	return cpu_ns() - begin;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *v)
{
	qsort(v, ROUNDS, sizeof(*v), compare);
	return v[ROUNDS / 2];
}

static bool read_line(int fd, char *buf, size_t size, size_t *ret_len)
{
	size_t len = 0;

	while (len < size) {
		ssize_t n = recv(fd, buf + len, 1, 0);

		if (n <= 0)
			return false;
		if (buf[len++] == '\n') {
			*ret_len = len;
			return true;
		}
	}
	return false;
}

/* The reply to query-qmp-schema with its line end; it has no id, since it was asked without one. */
static char *get_reply(struct real *r, size_t *ret_len)
{
	static const char ask[] = "{\"execute\": \"qmp_capabilities\"}\r\n"
				  "{\"execute\": \"query-qmp-schema\"}\r\n";
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	char *reply = malloc(REPLY_MAX);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool ok;

	/* the client waits until it is there; then it makes room for us */
	if (!reply || fd < 0 || !real_start(r, NULL) || !real_connect(r))
		abort();
	real_disconnect(r);
	snprintf(address.sun_path, sizeof(address.sun_path), "%s", r->path);
	ok = connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0 &&
	     send(fd, ask, strlen(ask), MSG_NOSIGNAL) == (ssize_t)strlen(ask);
	for (unsigned line = 0; ok && line < 3; line++)
		ok = read_line(fd, reply, REPLY_MAX, ret_len);
	close(fd);
	real_stop(r);
	if (ok)
		return reply;
	free(reply);
	return NULL;
}

static struct qmp *connect_source(struct source *s)
{
	struct qmp_transport t = {.fd = source_fd,
		.read = source_read,
		.write = source_write,
		.close = source_close,
		.t = s};
	struct qmp *q;

	*s = (struct source){HELLO, strlen(HELLO), 0};
	if (qmp_new(NULL, &q) < 0 || qmp_connect_transport(q, &t, 1) != 0 ||
		qmp_process(q, POLLIN, 1) != 0 || qmp_state_of(q) != QMP_READY)
		abort();
	return q;
}

int main(void)
{
	static double bare[ROUNDS], client[ROUNDS], ratio[ROUNDS];
	struct real r = {.qemu = "qemu-system-x86_64", .accel = "tcg", .patience_ns = 20000000000};
	size_t len = 0, of_bare = 0, of_client = 0;
	_cleanup_free_ char *reply = get_reply(&r, &len);
	struct source source;
	struct qmp *q;
	cpu_set_t one;

	if (!reply) {
		fprintf(stderr, "no reply of %s\n", r.qemu);
		return 1;
	}
	CPU_ZERO(&one);
	CPU_SET((unsigned)sched_getcpu(), &one);
	sched_setaffinity(0, sizeof(one), &one);
	q = connect_source(&source);
	for (unsigned i = 0; i < ROUNDS; i++) {
		/* who is first has a cold cache */
		if (i % 2)
			bare[i] = (double)bare_ns(reply, len, &of_bare);
		client[i] = (double)client_ns(q, &source, reply, len, &of_client);
		if (i % 2 == 0)
			bare[i] = (double)bare_ns(reply, len, &of_bare);
		ratio[i] = client[i] / bare[i];
	}
	qmp_free(q);
	if (of_bare != of_client)
		abort();
	printf("%-22s %10zu\n", "bytes of the reply", len);
	printf("%-22s %10.0f us\n", "json-c alone", median(bare) / 1000);
	printf("%-22s %10.0f us\n", "through the client", median(client) / 1000);
	printf("%-22s %10.3f\n", "ratio", median(ratio));
	printf("{\"bench\":\"qmp-parse\",\"bytes\":%zu,\"bare_ns\":%.0f,\"client_ns\":%.0f,"
	       "\"parse_ratio\":%.3f}\n",
		len, median(bare), median(client), median(ratio));
	return 0;
}
