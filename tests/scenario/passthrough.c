/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * libvirt's monitor passthrough against a real libvirtd and real guests: what their QEMUs say about
 * their vCPU threads is what libvirt's cgroups say. Runs inside the emulated host, TAP.
 */
#include "controller/virt/passthrough.h"

#include "controller/host/vcpus.h"
#include "tests/tap.h"

struct fixture {
	struct virt_session *session;
	struct virt_list list;
	struct hostfs fs;
};

static void on_event(void *userdata, enum virt_event event)
{
}

static bool setup(struct fixture *f)
{
	memset(f, 0, sizeof(*f));
	if (hostfs_open(&f->fs, "/") != 0 || virt_session_new(NULL, on_event, f, &f->session) < 0 ||
		virt_session_refresh(f->session, &f->list) != 0) {
		printf("# %s\n", f->session ? virt_session_error(f->session) : "no session");
		return false;
	}
	return true;
}

static void teardown(struct fixture *f)
{
	virt_list_clear(&f->list);
	virt_session_free(f->session);
	hostfs_close(&f->fs);
}

/* The threads by libvirt's cgroups, of the process in libvirt's pid file. */
static int by_cgroups(struct fixture *f, const char *name, struct vcpu_threads *ret)
{
	_cleanup_(vm_cgroup_clear) struct vm_cgroup cg = {0};
	_cleanup_free_ char *pid = NULL;
	int r = hostfs_read(&f->fs, HOST_LIMIT_SMALL, &pid, NULL, "run/libvirt/qemu/%s.pid", name);

	if (r == 0)
		r = vm_cgroup_find(&f->fs, atoi(pid), &cg);
	return r == 0 ? vcpu_threads_find(&f->fs, atoi(pid), &cg, ret) : r;
}

static void qemu_says_what_the_cgroups_say(struct tap *tap_)
{
	struct fixture f;

	REQUIRE(setup(&f));
	CHECK(f.list.n_vms > 0);
	for (unsigned i = 0; i < f.list.n_vms; i++) {
		struct virt_vm *vm = &f.list.vm[i];
		struct passthrough p = {.session = f.session, .uuid = vm->uuid};
		struct vcpu_threads threads = {0};
		char why[SNAPSHOT_TEXT_MAX] = "";

		CHECK_INT(passthrough_ask_threads(passthrough_call, &p, vm, why), 0);
		CHECK_STR(why, "");
		CHECK_INT(by_cgroups(&f, vm->name, &threads), 0);
		CHECK_INT(threads.source, VCPUS_FROM_CGROUP);
		CHECK_INT(vm->n_threads, threads.n);
		for (unsigned k = 0; k < vm->n_threads && k < threads.n; k++) {
			CHECK_INT(vm->thread[k].id, threads.vcpu[k].id);
			CHECK_INT(vm->thread[k].tid, threads.vcpu[k].tid);
		}
		vcpu_threads_clear(&threads);
	}
	teardown(&f);
}

static void a_vm_that_is_not_there_is_a_closed_monitor(struct tap *tap_)
{
	struct virt_vm vm = {.uuid = "00000000-0000-0000-0000-00000000dead"};
	struct passthrough p = {.uuid = vm.uuid};
	char why[SNAPSHOT_TEXT_MAX] = "";
	struct fixture f;

	REQUIRE(setup(&f));
	p.session = f.session;
	CHECK_INT(passthrough_ask_threads(passthrough_call, &p, &vm, why), QMP_E_CLOSED);
	CHECK_INT(vm.n_threads, 0);
	teardown(&f);
}

static void a_command_that_qemu_does_not_know_is_its_error(struct tap *tap_)
{
	struct passthrough p;
	struct qmp_transport transport;
	struct qmp_error err = {0};
	struct fixture f;
	struct qmp *q;

	REQUIRE(setup(&f));
	REQUIRE(f.list.n_vms > 0);
	p = (struct passthrough){.session = f.session, .uuid = f.list.vm[0].uuid};
	REQUIRE(qmp_transport_calls(passthrough_call, &p, &transport) == 0);
	REQUIRE(qmp_sync_open_transport(&transport, NULL, &q, &err) == 0);
	CHECK_INT(qmp_sync_execute(q, "no-such", NULL, 0, NULL, &err), QMP_E_REMOTE);
	CHECK_STR(err.class_name, "CommandNotFound");
	CHECK_INT(qmp_state_of(q), QMP_READY);
	qmp_free(q);
	teardown(&f);
}

int main(void)
{
	static const struct tap_test tests[] = {TEST(qemu_says_what_the_cgroups_say),
		TEST(a_vm_that_is_not_there_is_a_closed_monitor),
		TEST(a_command_that_qemu_does_not_know_is_its_error)};

	if (virt_events_start() < 0)
		return 1;
	return tap_run(tests, ARRAY_LEN(tests));
}
