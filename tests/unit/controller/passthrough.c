/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A monitor behind libvirt, with a function in libvirt's place; the real one is asked in the
 * scenarios. */
#include "controller/virt/passthrough.h"
#include "tests/tap.h"

struct monitor {
	const char *reply; /* NULL: the call fails */
	char asked[256];
	unsigned calls;
};

static int call(void *userdata, const char *command, char **ret_reply)
{
	struct monitor *m = userdata;

	m->calls++;
	snprintf(m->asked, sizeof(m->asked), "%s", command);
	if (!m->reply)
		return QMP_E_CLOSED;
	*ret_reply = strdup(m->reply);
	return *ret_reply ? 0 : -1;
}

static void the_threads_of_a_vm_are_learnt(struct tap *tap_)
{
	struct monitor m = {
		.reply =
			"{\"return\":[{\"thread-id\":603,\"cpu-index\":1,\"qom-path\":\"/m/1\",\"props\":{\"thread-id\":0}},"
			"{\"thread-id\":602,\"cpu-index\":0,\"qom-path\":\"/m/0\"}],\"id\":\"libvirt-479\"}"};
	struct virt_vm vm = {0};
	char why[SNAPSHOT_TEXT_MAX] = "";

	CHECK_INT(passthrough_ask_threads(call, &m, &vm, why), 0);
	CHECK_STR(why, "");
	CHECK_INT(m.calls, 1); /* each call taints: no greeting, no negotiation */
	CHECK_STR(m.asked, "{\"execute\":\"query-cpus-fast\"}");
	REQUIRE(vm.n_threads == 2);
	CHECK_INT(vm.thread[0].tid, 602);
	CHECK_INT(vm.thread[1].tid, 603);
	virt_vm_clear(&vm);
}

static void what_fails_is_named_at_once(struct tap *tap_)
{
	static const struct {
		const char *reply, *why;
		int result;
	} bad[] = {
		{NULL, "", QMP_E_CLOSED},
		{"", "not a whole JSON object", QMP_E_REMOTE},
		{"{", "not a whole JSON object", QMP_E_REMOTE},
		{"[]", "not a QMP message", QMP_E_REMOTE},
		{"{\"return\":{}}", "query-cpus-fast", QMP_E_SHAPE},
		{"{\"error\":{\"class\":\"CommandNotFound\",\"desc\":\"no\"},\"id\":\"libvirt-1\"}",
			"no", QMP_E_REMOTE},
	};

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct monitor m = {.reply = bad[i].reply};
		struct virt_vm vm = {0};
		char why[SNAPSHOT_TEXT_MAX] = "";
		uint64_t begin = qmp_sync_now_ns();

		CHECK_INT(passthrough_ask_threads(call, &m, &vm, why), bad[i].result);
		CHECK(strstr(why, bad[i].why) != NULL);
		/* the deadline is ten seconds: nothing here waits for it */
		CHECK(qmp_sync_now_ns() - begin < UINT64_C(8000000000));
		CHECK_INT(vm.n_threads, 0);
		virt_vm_clear(&vm);
	}
}

TAP_MAIN(TEST(the_threads_of_a_vm_are_learnt), TEST(what_fails_is_named_at_once))
