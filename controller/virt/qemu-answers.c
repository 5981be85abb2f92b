/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Why the process comes from the kernel and never from QEMU: a guest that has broken out of its
 * QEMU could name the threads of another VM. What it says about threads is only believed as far as
 * these are threads of the process that listens on the socket (the collector checks that).
 */
#include "controller/virt/qemu-answers.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define NIL_UUID "00000000-0000-0000-0000-000000000000"

static int take_status(struct json_object *ret, struct qemu_answers *a, struct qmp_error *err)
{
	return qmp_parse_status(ret, &a->status, err);
}

static int take_cpus(struct json_object *ret, struct qemu_answers *a, struct qmp_error *err)
{
	qmp_cpus_clear(&a->cpus);
	return qmp_parse_cpus_fast(ret, &a->cpus, err);
}

static int take_memdevs(struct json_object *ret, struct qemu_answers *a, struct qmp_error *err)
{
	qmp_memdevs_clear(&a->memdevs);
	return qmp_parse_memdev(ret, &a->memdevs, err);
}

static int take_migrate(struct json_object *ret, struct qemu_answers *a, struct qmp_error *err)
{
	return qmp_parse_migrate(ret, &a->migrate, err);
}

static int take_name(struct json_object *ret, struct qemu_answers *a, struct qmp_error *err)
{
	return qmp_parse_name(ret, &a->name, err);
}

static int take_uuid(struct json_object *ret, struct qemu_answers *a, struct qmp_error *err)
{
	return qmp_parse_uuid(ret, &a->uuid, err);
}

const struct qemu_question qemu_questions[QEMU_QUESTIONS] = {
	{"query-status", true, take_status},
	{"query-cpus-fast", true, take_cpus},
	{"query-memdev", true, take_memdevs},
	{"query-migrate", true, take_migrate},
	{"query-name", false, take_name},
	{"query-uuid", false, take_uuid},
};

void qemu_answers_clear(struct qemu_answers *a)
{
	qmp_cpus_clear(&a->cpus);
	qmp_memdevs_clear(&a->memdevs);
	memset(a, 0, sizeof(*a));
}

static enum vm_condition condition_of(const struct qemu_answers *a)
{
	/* memory or the device state is on its way somewhere, running or not */
	static const char *const busy[] = {
		"inmigrate", "finish-migrate", "postmigrate", "save-vm", "restore-vm"};

	if (a->migrate.under_way)
		return VM_BUSY;
	for (size_t i = 0; i < ARRAY_LEN(busy); i++)
		if (strcmp(a->status.status, busy[i]) == 0)
			return VM_BUSY;
	return a->status.running ? VM_RUNNING : VM_PAUSED;
}

/* The file's name without its directory and its last extension. */
static void name_of_socket(const char *socket, char *ret, size_t size)
{
	const char *slash = strrchr(socket, '/');
	char *dot;

	snprintf(ret, size, "%s", slash ? slash + 1 : socket);
	dot = strrchr(ret, '.');
	if (dot && dot != ret)
		*dot = '\0';
}

/* FNV-1a, marked as version 8, "vendor specific". */
void qemu_uuid_of_socket(const char *socket, char *ret)
{
	uint64_t h[2] = {UINT64_C(0xcbf29ce484222325), UINT64_C(0x84222325cbf29ce4)};

	for (const char *c = socket; *c; c++)
		for (unsigned i = 0; i < 2; i++)
			h[i] = (h[i] ^ (unsigned char)*c) * UINT64_C(0x100000001b3);
	snprintf(ret, SNAPSHOT_UUID_LEN, "%08x-%04x-8%03x-8%03x-%012llx", (unsigned)(h[0] >> 32),
		(unsigned)(h[0] >> 16) & 0xffff, (unsigned)h[0] & 0xfff,
		(unsigned)(h[1] >> 52) & 0xfff,
		(unsigned long long)(h[1] & UINT64_C(0xffffffffffff)));
}

int qemu_take_threads(const struct qmp_cpus *cpus, struct virt_vm *vm)
{
	unsigned n = (unsigned)MIN2(cpus->n, (size_t)SNAPSHOT_VCPUS_MAX);
	struct vcpu_thread *thread = calloc(n ? n : 1, sizeof(*thread));

	if (!thread)
		return -ENOMEM;
	for (unsigned i = 0; i < n; i++)
		thread[i] = (struct vcpu_thread){.id = cpus->cpu[i].index, .tid = cpus->cpu[i].tid};
	free(vm->thread);
	vm->thread = thread;
	vm->n_threads = n;
	return 0;
}

static void add_memory(const struct qmp_memdev *m, struct virt_vm *vm)
{
	vm->ram_bytes += m->size_bytes;
	if (vm->n_backends < VIRT_CELLS_MAX) {
		snprintf(vm->backend_id[vm->n_backends], sizeof(vm->backend_id[0]), "%.63s", m->id);
		vm->backend_bytes[vm->n_backends++] = m->size_bytes;
	}
	if (m->policy != QMP_POLICY_BIND)
		return;
	vm->numatune_strict = true;
	vm->has_nodeset = true;
	for (size_t i = 0; i < m->n_host_nodes; i++)
		idset_add(&vm->nodeset, m->host_node[i]);
}

int qemu_answers_vm(
	const struct qemu_answers *a, const char *socket, struct virt_vm *ret, char *why)
{
	struct virt_vm vm = {.manager = VIRT_QMP, .id = -1, .pid = a->pid};

	if (!a->pid) {
		snprintf(why, SNAPSHOT_TEXT_MAX,
			"the kernel does not say which process listens there");
		return QEMU_E_UNKNOWN_PROCESS;
	}
	for (size_t i = 0; i < a->memdevs.n; i++)
		add_memory(&a->memdevs.memdev[i], &vm);
	if (!a->cpus.n || !vm.ram_bytes) {
		snprintf(why, SNAPSHOT_TEXT_MAX, "a QEMU without %s",
			a->cpus.n ? "memory backends" : "vCPUs");
		return QEMU_E_VALUE;
	}
	snprintf(vm.socket, sizeof(vm.socket), "%s", socket);
	if (a->name.name[0])
		snprintf(vm.name, sizeof(vm.name), "%s", a->name.name);
	else
		name_of_socket(socket, vm.name, sizeof(vm.name));
	if (a->uuid.uuid[0] && strcmp(a->uuid.uuid, NIL_UUID) != 0)
		memcpy(vm.uuid, a->uuid.uuid, sizeof(vm.uuid));
	else
		qemu_uuid_of_socket(socket, vm.uuid);
	vm.condition = condition_of(a);
	if (qemu_take_threads(&a->cpus, &vm) < 0)
		return -ENOMEM;
	vm.max_vcpus = vm.n_threads;
	*ret = vm;
	return 0;
}
