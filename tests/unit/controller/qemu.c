/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * QEMUs found by their sockets, against monitors that are played here, in the same thread: pump()
 * lets both sides go on until nothing moves any more. The clock is a number.
 */
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

static void on_news(void *userdata)
{
	struct fixture *f = userdata;

	f->news++;
}

static bool on_started(void *userdata, pid_t pid, uint64_t *ret_start_ticks)
{
	struct fixture *f = userdata;

	for (unsigned i = 0; i < f->n; i++)
		if (f->m[i]->pid == pid && f->m[i]->dead)
			return false;
	*ret_start_ticks = 7;
	return true;
}

static void setup(struct fixture *f, bool share)
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

static struct monitor *monitor_new(struct fixture *f, const char *name)
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

static void monitor_end(struct monitor *m)
{
	if (m->client >= 0)
		close(m->client);
	if (m->listener >= 0)
		close(m->listener);
	m->client = m->listener = -1;
	unlink(m->path);
}

static void teardown(struct fixture *f)
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

static void say(struct monitor *m, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vdprintf(m->client, fmt, args);
	va_end(args);
	dprintf(m->client, "\r\n");
}

static void answer(struct monitor *m, char *line)
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
static bool monitor_step(struct monitor *m)
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

static void pump(struct fixture *f)
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
static void look(struct fixture *f)
{
	struct qemu_paths paths = {0};

	if (qemu_paths_find(&f->source, 1, &paths) < 0 || qemus_ask(f->qemus, &paths, f->now) < 0)
		abort();
	qemu_paths_clear(&paths);
	pump(f);
	if (qemus_list(f->qemus, f->now, &f->list) < 0)
		abort();
}

static void a_shared_monitor_is_asked_and_left(struct tap *tap_)
{
	struct fixture f;
	struct monitor *m;
	const struct virt_vm *vm;

	setup(&f, true);
	m = monitor_new(&f, "100.qmp");
	look(&f);
	REQUIRE(f.list.n_vms == 1);
	vm = &f.list.vm[0];
	CHECK_INT(vm->manager, VIRT_QMP);
	CHECK_STR(vm->name, "100"); /* it has no name of its own */
	CHECK_STR(vm->uuid, UUID);
	CHECK_STR(vm->socket, m->path);
	CHECK_INT(vm->pid, m->pid);
	CHECK_INT(vm->start_ticks, 7);
	CHECK_STR(vm->silent, "");
	CHECK_INT(vm->condition, VM_RUNNING);
	CHECK_INT(vm->ram_bytes, 1048576);
	REQUIRE(vm->n_threads == 2);
	CHECK_INT(vm->thread[1].id, 1);
	CHECK_INT(vm->thread[1].tid, 12);
	CHECK_INT(f.list.n_odd, 0);
	CHECK_INT(f.news, 1);
	CHECK_INT(m->client, -1); /* left to others */
	look(&f);
	CHECK_INT(m->clients, 2);
	CHECK_INT(f.news, 1); /* the same again is no news */
	teardown(&f);
}

static void one_that_is_not_shared_is_followed_by_events(struct tap *tap_)
{
	struct fixture f;
	struct monitor *m;

	setup(&f, false);
	m = monitor_new(&f, "100.qmp");
	m->name = "{\"name\":\"web\"}";
	look(&f);
	look(&f);
	REQUIRE(f.list.n_vms == 1);
	CHECK_STR(f.list.vm[0].name, "web");
	CHECK_INT(m->clients, 1);
	CHECK(m->client >= 0);
	m->status = "{\"running\":false,\"status\":\"paused\"}";
	f.now += 2 * SECOND;
	say(m, "{\"event\":\"RTC_CHANGE\",\"data\":{},\"timestamp\":{\"seconds\":1}}");
	pump(&f);
	CHECK_INT(f.news, 1); /* says nothing about where it runs */
	say(m, "{\"event\":\"STOP\",\"timestamp\":{\"seconds\":1,\"microseconds\":1}}");
	pump(&f);
	CHECK_INT(f.news, 2);
	qemus_list(f.qemus, f.now, &f.list);
	REQUIRE(f.list.n_vms == 1);
	CHECK_INT(f.list.vm[0].condition, VM_PAUSED);
	teardown(&f);
}

static void a_flood_of_events_is_asked_about_once_a_second(struct tap *tap_)
{
	struct fixture f;
	struct monitor *m;
	uint64_t asked;

	setup(&f, false);
	m = monitor_new(&f, "100.qmp");
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

static void plugging_is_news(struct tap *tap_)
{
	struct fixture f;
	struct monitor *m;

	setup(&f, true);
	m = monitor_new(&f, "100.qmp");
	look(&f);
	m->cpus = "[" CPU(3, 14) "," CPU(0, 11) "]";
	look(&f);
	CHECK_INT(f.news, 2);
	REQUIRE(f.list.n_vms == 1 && f.list.vm[0].n_threads == 2);
	CHECK_INT(f.list.vm[0].thread[1].id, 3);
	m->migrate = "{\"status\":\"active\"}";
	look(&f);
	CHECK_INT(f.news, 3);
	REQUIRE(f.list.n_vms == 1);
	CHECK_INT(f.list.vm[0].condition, VM_BUSY);
	teardown(&f);
}

/* Lets the time pass in which a monitor that hangs may answer. */
static void wait_in_vain(struct fixture *f)
{
	f->now += QEMU_ANSWER_NS;
	pump(f);
	qemus_list(f->qemus, f->now, &f->list);
}

static void one_that_hangs_harms_nobody_and_stays_a_vm(struct tap *tap_)
{
	struct fixture f;
	struct monitor *m;

	setup(&f, true);
	m = monitor_new(&f, "100.qmp");
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

	setup(&f, true);
	m = monitor_new(&f, "100.qmp");
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

static void one_that_ends_is_gone_at_once(struct tap *tap_)
{
	for (unsigned share = 0; share < 2; share++) {
		struct fixture f;
		struct monitor *m;

		setup(&f, share == 1);
		m = monitor_new(&f, "100.qmp");
		look(&f);
		CHECK_INT(f.list.n_vms, 1);
		m->dead = true;
		monitor_end(m);
		if (share)
			look(&f);
		else
			pump(&f); /* its connection tells */
		qemus_list(f.qemus, f.now, &f.list);
		CHECK_INT(f.list.n_vms, 0);
		CHECK_INT(f.list.n_odd, 0);
		CHECK_INT(f.news, 2);
		teardown(&f);
	}
}

/* Its monitor closes, or its socket is removed, but its process lives. */
static void a_lost_monitor_is_no_lost_vm(struct tap *tap_)
{
	for (unsigned share = 0; share < 2; share++) {
		struct fixture f;
		struct monitor *m;

		setup(&f, share == 1);
		m = monitor_new(&f, "100.qmp");
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

static void another_process_behind_the_same_path_is_another_vm(struct tap *tap_)
{
	struct fixture f;
	struct monitor *m, *m2;

	setup(&f, true);
	m = monitor_new(&f, "100.qmp");
	look(&f);
	monitor_end(m);
	m->dead = true;
	m2 = monitor_new(&f, "100.qmp");
	look(&f);
	REQUIRE(f.list.n_vms == 1);
	CHECK_INT(f.list.vm[0].pid, m2->pid);
	CHECK_STR(f.list.vm[0].uuid, UUID);
	CHECK_INT(f.news, 2);
	teardown(&f);
}

/* The file of a socket that a QEMU which crashed has left behind. */
static void a_dead_socket_is_no_trouble_and_a_file_is(struct tap *tap_)
{
	struct fixture f;
	struct monitor *m;
	char path[128];

	setup(&f, true);
	m = monitor_new(&f, "100.qmp");
	close(m->listener);
	m->listener = -1;
	look(&f);
	CHECK_INT(f.list.n_odd, 0);
	snprintf(path, sizeof(path), "%s/file.qmp", f.dir);
	mkdir(path, 0700);
	look(&f);
	CHECK_INT(f.list.n_odd, 1);
	CHECK(strstr(f.list.odd, "file.qmp: not a socket") != NULL);
	rmdir(path);
	teardown(&f);
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

static void one_qemu_with_two_sockets_is_one_vm(struct tap *tap_)
{
	struct fixture f;

	setup(&f, true);
	monitor_new(&f, "100.qmp");
	monitor_new(&f, "101.qmp");
	/* now the same process listens on both */
	for (unsigned i = 0; i < 2; i++) {
		listen(f.m[i]->listener, 1);
		f.m[i]->pid = getpid();
		f.m[i]->uuid = NULL;
	}
	look(&f);
	CHECK_INT(f.list.n_vms, 1);
	CHECK_INT(f.list.n_odd, 0);
	teardown(&f);
}

static void without_a_uuid_the_path_says_who_it_is(struct tap *tap_)
{
	struct fixture f;
	char first[SNAPSHOT_UUID_LEN];

	setup(&f, true);
	monitor_new(&f, "100.qmp")->uuid = NULL; /* does not know the question */
	monitor_new(&f, "101.qmp")->uuid = "00000000-0000-0000-0000-000000000000";
	look(&f);
	REQUIRE(f.list.n_vms == 2);
	memcpy(first, f.list.vm[0].uuid, sizeof(first));
	CHECK_INT(strlen(first), 36);
	CHECK(strcmp(first, f.list.vm[1].uuid) != 0);
	look(&f);
	CHECK_STR(f.list.vm[0].uuid, first);
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

	setup(&f, false);
	m = monitor_new(&f, "100.qmp");
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

	setup(&f, false);
	m = monitor_new(&f, "100.qmp");
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

	setup(&f, true);
	m = monitor_new(&f, "100.qmp");
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

static void libvirts_word_comes_first(struct tap *tap_)
{
	struct virt_vm bare = {.manager = VIRT_QMP, .uuid = UUID, .name = "b"};
	struct virt_vm other = {.manager = VIRT_QMP, .uuid = "x", .name = "a"};
	struct virt_vm known = {.uuid = UUID, .name = "b"}, both[] = {bare, other};
	struct virt_list l = {.n_vms = 1, .vm = &known, .asked_ns = 42}, all = {0};
	struct virt_list more = {.n_vms = 2, .vm = both, .n_odd = 1, .odd = "why"};

	REQUIRE(virt_list_copy(&l, &all) == 0);
	REQUIRE(virt_list_merge(&all, &more) == 0);
	REQUIRE(all.n_vms == 2);
	CHECK_STR(all.vm[0].name, "a");
	CHECK_INT(all.vm[1].manager, VIRT_LIBVIRT);
	CHECK_INT(all.n_odd, 1);
	/* pins are judged by when libvirt said them: the time belongs to the list, wherever it goes
	 */
	CHECK_INT(all.asked_ns, 42);
	CHECK_STR(all.odd, "why");
	virt_list_clear(&all);
}

TAP_MAIN(TEST(a_shared_monitor_is_asked_and_left),
	TEST(one_that_is_not_shared_is_followed_by_events),
	TEST(a_flood_of_events_is_asked_about_once_a_second), TEST(plugging_is_news),
	TEST(one_that_hangs_harms_nobody_and_stays_a_vm),
	TEST(one_that_failed_is_asked_less_and_less_often),
	TEST(many_that_hang_do_not_keep_others_waiting), TEST(one_that_ends_is_gone_at_once),
	TEST(a_lost_monitor_is_no_lost_vm),
	TEST(another_process_behind_the_same_path_is_another_vm),
	TEST(a_dead_socket_is_no_trouble_and_a_file_is), TEST(an_identity_cannot_be_taken_away),
	TEST(one_qemu_with_two_sockets_is_one_vm), TEST(without_a_uuid_the_path_says_who_it_is),
	TEST(odd_names_are_only_names), TEST(an_event_while_it_is_asked_is_not_forgotten),
	TEST(a_flood_ends_the_connection), TEST(answers_of_another_shape_are_odd),
	TEST(libvirts_word_comes_first))
