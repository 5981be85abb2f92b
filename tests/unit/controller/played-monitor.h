/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * QEMUs found by their sockets, against monitors that are played here, in the same thread: pump()
 * lets both sides go on until nothing moves any more. The clock is a number.
 */
#pragma once

#include "controller/virt/qemu.h"

#include <poll.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/tap.h"

#define SECOND UINT64_C(1000000000)
#define UUID "ef1a7290-68fb-44f5-8d51-22024f44b939"

#define CPU(i, tid) "{\"cpu-index\":" #i ",\"thread-id\":" #tid ",\"qom-path\":\"/m/" #i "\"}"

struct monitor {
	char path[VIRT_SOCKET_MAX];
	int listener, client; /* -1: none */
	bool hangs;           /* greets, never answers */
	unsigned clients;     /* that came so far */
	pid_t pid;            /* of the process that listens */
	bool dead;
	const char *uuid, *name, *status, *migrate, *cpus;
};

struct fixture {
	char dir[64];
	struct monitor *m[80]; /* own */
	unsigned n;
	struct qemu_source source;
	struct qemus *qemus;
	struct virt_list list;
	uint64_t now;
	unsigned news;
};

static inline void on_news(void *userdata)
{
	struct fixture *f = userdata;

	f->news++;
}

static inline bool on_started(void *userdata, pid_t pid, uint64_t *ret_start_ticks)
{
	struct fixture *f = userdata;

	for (unsigned i = 0; i < f->n; i++)
		if (f->m[i]->pid == pid && f->m[i]->dead)
			return false;
	*ret_start_ticks = 7;
	return true;
}

static inline void setup(struct fixture *f, bool share)
{
	struct qemus_config config = {
		.notify = on_news, .started = on_started, .userdata = f, .tick_ns = 10 * SECOND};
	char pattern[128];

	memset(f, 0, sizeof(*f));
	snprintf(f->dir, sizeof(f->dir), "/tmp/numaherd-test-XXXXXX");
	if (!mkdtemp(f->dir) || qemus_new(&config, &f->qemus) < 0)
		abort();
	snprintf(pattern, sizeof(pattern), "%s/*.qmp", f->dir);
	f->source = (struct qemu_source){.pattern = strdup(pattern), .share = share};
	f->now = 1000 * SECOND;
}

static inline struct monitor *monitor_new(struct fixture *f, const char *name)
{
	struct monitor *m = f->m[f->n++] = malloc(sizeof(*m));
	struct sockaddr_un a = {.sun_family = AF_UNIX};

	if (!m)
		abort();
	*m = (struct monitor){.listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0),
		.client = -1,
		.uuid = UUID,
		.name = "{}",
		.status = "{\"running\":true,\"status\":\"running\"}",
		.migrate = "{}",
		.cpus = "[" CPU(0, 11) "," CPU(1, 12) "]"};
	snprintf(m->path, sizeof(m->path), "%s/%s", f->dir, name);
	memcpy(a.sun_path, m->path, sizeof(a.sun_path));
	if (bind(m->listener, (struct sockaddr *)&a, sizeof(a)) < 0)
		abort();
	/* who listens is who the kernel says is there: each a process of its own */
	m->pid = fork();
	if (m->pid == 0)
		_exit(listen(m->listener, 1) < 0);
	if (m->pid < 0 || waitpid(m->pid, NULL, 0) != m->pid)
		abort();
	return m;
}

static inline void monitor_end(struct monitor *m)
{
	if (m->client >= 0)
		close(m->client);
	if (m->listener >= 0)
		close(m->listener);
	m->client = m->listener = -1;
	unlink(m->path);
}

static inline void teardown(struct fixture *f)
{
	qemus_free(f->qemus);
	virt_list_clear(&f->list);
	for (unsigned i = 0; i < f->n; i++) {
		monitor_end(f->m[i]);
		free(f->m[i]);
	}
	free(f->source.pattern);
	rmdir(f->dir);
}

static inline void say(struct monitor *m, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vdprintf(m->client, fmt, args);
	va_end(args);
	dprintf(m->client, "\r\n");
}

static inline void answer(struct monitor *m, char *line)
{
	const char *id = strstr(line, "\"id\":\"");
	int n = id ? atoi(id + strlen("\"id\":\"")) : 0;

	if (strstr(line, "qmp_capabilities"))
		say(m, "{\"return\":{},\"id\":\"%d\"}", n);
	else if (m->hangs)
		return;
	else if (strstr(line, "query-status"))
		say(m, "{\"return\":%s,\"id\":\"%d\"}", m->status, n);
	else if (strstr(line, "query-cpus-fast"))
		say(m, "{\"return\":%s,\"id\":\"%d\"}", m->cpus, n);
	else if (strstr(line, "query-memdev"))
		say(m,
			"{\"return\":[{\"size\":1048576,\"merge\":true,\"dump\":true,\"prealloc\":false,"
			"\"host-nodes\":[],\"policy\":\"default\"}],\"id\":\"%d\"}",
			n);
	else if (strstr(line, "query-migrate"))
		say(m, "{\"return\":%s,\"id\":\"%d\"}", m->migrate, n);
	else if (strstr(line, "query-name"))
		say(m, "{\"return\":%s,\"id\":\"%d\"}", m->name, n);
	else if (strstr(line, "query-uuid") && m->uuid)
		say(m, "{\"return\":{\"UUID\":\"%s\"},\"id\":\"%d\"}", m->uuid, n);
	else
		say(m, "{\"error\":{\"class\":\"CommandNotFound\",\"desc\":\"no\"},\"id\":\"%d\"}",
			n);
}

/* True if something happened. */
static inline bool monitor_step(struct monitor *m)
{
	char buf[8192], *line, *rest = buf;
	struct pollfd p = {.fd = m->client < 0 ? m->listener : m->client, .events = POLLIN};
	ssize_t n;

	if (p.fd < 0 || poll(&p, 1, 0) != 1)
		return false;
	if (m->client < 0) {
		m->client = accept4(m->listener, NULL, NULL, SOCK_CLOEXEC);
		m->clients++;
		say(m, "{\"QMP\":{\"version\":{},\"capabilities\":[]}}");
		return true;
	}
	n = read(m->client, buf, sizeof(buf) - 1);
	if (n <= 0) {
		close(m->client);
		m->client = -1;
		return true;
	}
	buf[n] = '\0';
	while ((line = strsep(&rest, "\n")))
		if (line[0] == '{')
			answer(m, line);
	return true;
}

static inline void pump(struct fixture *f)
{
	bool moved = true;

	/* a deadline that stays in the past would keep the daemon's loop busy for ever */
	for (unsigned turns = 0; moved; turns++) {
		struct pollfd p = {.fd = qemus_fd(f->qemus), .events = POLLIN};

		if (turns > 100000)
			abort();
		moved = false;
		for (unsigned i = 0; i < f->n; i++)
			moved |= monitor_step(f->m[i]);
		if (poll(&p, 1, 0) == 1 || qemus_deadline_ns(f->qemus) <= f->now) {
			qemus_process(f->qemus, f->now);
			moved = true;
		}
	}
}

/* One look, to its end; the list is what came of it. */
static inline void look(struct fixture *f)
{
	struct qemu_paths paths = {0};

	if (qemu_paths_find(&f->source, 1, &paths) < 0 || qemus_ask(f->qemus, &paths, f->now) < 0)
		abort();
	qemu_paths_clear(&paths);
	pump(f);
	if (qemus_list(f->qemus, f->now, &f->list) < 0)
		abort();
}

/* The usual beginning: one monitor. */
static inline struct monitor *setup_one(struct fixture *f, bool share)
{
	setup(f, share);
	return monitor_new(f, "100.qmp");
}

/* Lets the time pass in which a monitor that hangs may answer. */
static inline void wait_in_vain(struct fixture *f)
{
	f->now += QEMU_ANSWER_NS;
	pump(f);
	qemus_list(f->qemus, f->now, &f->list);
}
