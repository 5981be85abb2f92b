/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* QEMUs that are found by their sockets and do what they should. */
#include "tests/unit/controller/played-monitor.h"

static void a_shared_monitor_is_asked_and_left(struct tap *tap_)
{
	struct fixture f;
	struct monitor *m;
	const struct virt_vm *vm;

	m = setup_one(&f, true);
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

	m = setup_one(&f, false);
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

static void plugging_is_news(struct tap *tap_)
{
	struct fixture f;
	struct monitor *m;

	m = setup_one(&f, true);
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

static void one_that_ends_is_gone_at_once(struct tap *tap_)
{
	for (unsigned share = 0; share < 2; share++) {
		struct fixture f;
		struct monitor *m;

		m = setup_one(&f, share == 1);
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

static void another_process_behind_the_same_path_is_another_vm(struct tap *tap_)
{
	struct fixture f;
	struct monitor *m, *m2;

	m = setup_one(&f, true);
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

	m = setup_one(&f, true);
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
	TEST(one_that_is_not_shared_is_followed_by_events), TEST(plugging_is_news),
	TEST(one_that_ends_is_gone_at_once),
	TEST(another_process_behind_the_same_path_is_another_vm),
	TEST(a_dead_socket_is_no_trouble_and_a_file_is), TEST(one_qemu_with_two_sockets_is_one_vm),
	TEST(without_a_uuid_the_path_says_who_it_is), TEST(libvirts_word_comes_first))
