/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Why all state is read again at each refresh: events of a broken connection are lost, and libvirtd
 * may have been upgraded meanwhile. Events only say "look again soon"; what is true is what the
 * list says.
 */
#include "controller/virt/session.h"

#include <errno.h>
#include <libvirt/libvirt-qemu.h>
#include <libvirt/libvirt.h>
#include <libvirt/virterror.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "controller/virt/domainxml.h"

#define EVENTS_MAX 8

struct virt_session {
	char *uri;
	virt_notify notify;
	void *userdata;
	virConnectPtr conn;
	int event[EVENTS_MAX];
	unsigned n_events;
	pthread_mutex_t lock; /* guards lost, which the event thread sets */
	bool lost;
	unsigned pin_flags; /* the test driver knows no live pins */
	char version[32];
	char error[SNAPSHOT_TEXT_MAX];
};

static void swallow_error(void *userdata, virErrorPtr error)
{
	/* every failing call is reported where it was made; libvirt's own stderr line is noise */
}

static void *event_loop(void *arg)
{
	for (;;)
		if (virEventRunDefaultImpl() < 0)
			virResetLastError();
	return NULL;
}

/* A timer that never matters keeps the loop from sleeping for ever before the first fd is added. */
static void idle_timer(int timer, void *opaque)
{
}

int virt_events_start(void)
{
	pthread_t thread;
	sigset_t all, old;
	int r;

	virSetErrorFunc(NULL, swallow_error);
	if (virEventRegisterDefaultImpl() < 0 ||
		virEventAddTimeout(1000, idle_timer, NULL, NULL) < 0)
		return -ENOMEM;
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &old);
	r = pthread_create(&thread, NULL, event_loop, NULL);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (r != 0)
		return -r;
	pthread_setname_np(thread, "virt-events");
	pthread_detach(thread);
	return 0;
}

static void note_error(struct virt_session *s, const char *what)
{
	virErrorPtr e = virGetLastError();

	snprintf(s->error, sizeof(s->error), "%s: %s", what,
		e && e->message ? e->message : "unknown libvirt error");
}

/* Which condition libvirt's last error stands for. */
static int condition_of_error(void)
{
	virErrorPtr e = virGetLastError();

	if (!e)
		return VIRT_E_REFUSED;
	switch (e->code) {
	case VIR_ERR_NO_DOMAIN:
	case VIR_ERR_OPERATION_INVALID: /* "domain is not running" */
		return VIRT_E_GONE;
	case VIR_ERR_OPERATION_TIMEOUT: /* "cannot acquire state change lock" */
		return VIRT_E_BUSY;
	case VIR_ERR_RPC:
	case VIR_ERR_NO_CONNECT:
	case VIR_ERR_INVALID_CONN:
		return VIRT_E_LOST;
	default:
		return e->domain == VIR_FROM_RPC ? VIRT_E_LOST : VIRT_E_REFUSED;
	}
}

static void set_lost(struct virt_session *s, bool lost)
{
	pthread_mutex_lock(&s->lock);
	s->lost = lost;
	pthread_mutex_unlock(&s->lock);
}

static bool is_lost(struct virt_session *s)
{
	bool lost;

	pthread_mutex_lock(&s->lock);
	lost = s->lost;
	pthread_mutex_unlock(&s->lock);
	return lost;
}

static void on_close(virConnectPtr conn, int reason, void *opaque)
{
	struct virt_session *s = opaque;

	if (reason == VIR_CONNECT_CLOSE_REASON_CLIENT)
		return;
	set_lost(s, true);
	s->notify(s->userdata, VIRT_EVENT_LOST);
}

static int on_lifecycle(virConnectPtr conn, virDomainPtr dom, int event, int detail, void *opaque)
{
	struct virt_session *s = opaque;

	s->notify(s->userdata, VIRT_EVENT_VMS);
	return 0;
}

static void on_tunable(virConnectPtr conn, virDomainPtr dom, virTypedParameterPtr params,
	int nparams, void *opaque)
{
	on_lifecycle(conn, dom, 0, 0, opaque);
}

static void on_device(virConnectPtr conn, virDomainPtr dom, const char *alias, void *opaque)
{
	on_lifecycle(conn, dom, 0, 0, opaque);
}

static void on_job(virConnectPtr conn, virDomainPtr dom, virTypedParameterPtr params, int nparams,
	void *opaque)
{
	on_lifecycle(conn, dom, 0, 0, opaque);
}

/* A driver without an event (the test driver lacks most) is no reason not to work. */
static void want_event(struct virt_session *s, int id, virConnectDomainEventGenericCallback cb)
{
	int r = virConnectDomainEventRegisterAny(s->conn, NULL, id, cb, s, NULL);

	if (r >= 0 && s->n_events < EVENTS_MAX)
		s->event[s->n_events++] = r;
}

static void disconnect(struct virt_session *s)
{
	if (!s->conn)
		return;
	for (unsigned i = 0; i < s->n_events; i++)
		virConnectDomainEventDeregisterAny(s->conn, s->event[i]);
	s->n_events = 0;
	virConnectUnregisterCloseCallback(s->conn, on_close);
	virConnectClose(s->conn);
	s->conn = NULL;
}

static int connect_to(struct virt_session *s)
{
	unsigned long version = 0;
	const char *type;

	s->conn = virConnectOpen(s->uri);
	if (!s->conn) {
		note_error(s, "cannot connect to libvirt");
		return VIRT_E_LOST;
	}
	set_lost(s, false);
	type = virConnectGetType(s->conn);
	s->pin_flags = type && strcmp(type, "Test") == 0 ? VIR_DOMAIN_AFFECT_CURRENT
							 : VIR_DOMAIN_AFFECT_LIVE;
	virConnectRegisterCloseCallback(s->conn, on_close, s, NULL);
	virConnectSetKeepAlive(s->conn, 5, 3);
	want_event(s, VIR_DOMAIN_EVENT_ID_LIFECYCLE, VIR_DOMAIN_EVENT_CALLBACK(on_lifecycle));
	want_event(s, VIR_DOMAIN_EVENT_ID_TUNABLE, VIR_DOMAIN_EVENT_CALLBACK(on_tunable));
	want_event(s, VIR_DOMAIN_EVENT_ID_DEVICE_ADDED, VIR_DOMAIN_EVENT_CALLBACK(on_device));
	want_event(s, VIR_DOMAIN_EVENT_ID_DEVICE_REMOVED, VIR_DOMAIN_EVENT_CALLBACK(on_device));
	want_event(s, VIR_DOMAIN_EVENT_ID_JOB_COMPLETED, VIR_DOMAIN_EVENT_CALLBACK(on_job));
	if (virConnectGetLibVersion(s->conn, &version) == 0)
		snprintf(s->version, sizeof(s->version), "libvirt %lu.%lu.%lu", version / 1000000,
			version / 1000 % 1000, version % 1000);
	return 0;
}

int virt_session_new(const char *uri, virt_notify notify, void *userdata, struct virt_session **ret)
{
	struct virt_session *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	pthread_mutex_init(&s->lock, NULL);
	s->notify = notify;
	s->userdata = userdata;
	s->uri = uri ? strdup(uri) : NULL;
	if (uri && !s->uri) {
		free(s);
		return -ENOMEM;
	}
	*ret = s;
	return 0;
}

struct virt_session *virt_session_free(struct virt_session *s)
{
	if (!s)
		return NULL;
	disconnect(s);
	pthread_mutex_destroy(&s->lock);
	free(s->uri);
	free(s);
	return NULL;
}

static enum vm_condition read_condition(virDomainPtr dom)
{
	virDomainJobInfo job;
	int state = 0, reason = 0;

	if (virDomainGetState(dom, &state, &reason, 0) == 0 && state != VIR_DOMAIN_RUNNING &&
		state != VIR_DOMAIN_BLOCKED)
		return VM_PAUSED;
	if (virDomainGetJobInfo(dom, &job) == 0 && job.type != VIR_DOMAIN_JOB_NONE &&
		job.type != VIR_DOMAIN_JOB_COMPLETED)
		return VM_BUSY;
	return VM_RUNNING;
}

/* Pins of all vCPUs that the VM could have, so that a hot-plugged one finds its own. */
static int read_pins(virDomainPtr dom, struct virt_vm *vm)
{
	_cleanup_free_ unsigned char *maps = NULL;
	const int maplen = IDSET_MAX / 8;
	int n;

	maps = calloc(vm->max_vcpus, (size_t)maplen);
	vm->pin = calloc(vm->max_vcpus, sizeof(*vm->pin));
	if (!maps || !vm->pin)
		return -ENOMEM;
	n = virDomainGetVcpuPinInfo(
		dom, (int)vm->max_vcpus, maps, maplen, VIR_DOMAIN_AFFECT_CURRENT);
	if (n < 0)
		return condition_of_error();
	for (int i = 0; i < n; i++) {
		for (unsigned cpu = 0; cpu < IDSET_MAX; cpu++)
			if (maps[(size_t)i * (size_t)maplen + cpu / 8] >> (cpu % 8) & 1)
				idset_add(&vm->pin[i], cpu);
	}
	vm->n_pins = (unsigned)n;
	return 0;
}

/* One VM; a condition leaves it out, with the text in @why. */
static int read_vm(virDomainPtr dom, struct virt_vm *ret, char *why)
{
	struct virt_vm vm = {0};
	char *xml;
	int r;

	snprintf(vm.name, sizeof(vm.name), "%s", virDomainGetName(dom));
	if (virDomainGetUUIDString(dom, vm.uuid) < 0)
		vm.uuid[0] = '\0';
	vm.id = (int)virDomainGetID(dom);
	xml = virDomainGetXMLDesc(dom, 0);
	if (!xml) {
		snprintf(why, SNAPSHOT_TEXT_MAX, "VM '%s': %s", vm.name, virGetLastErrorMessage());
		return condition_of_error();
	}
	r = domainxml_parse(xml, strlen(xml), &vm, why);
	free(xml);
	if (r > 0) {
		char text[SNAPSHOT_TEXT_MAX];

		snprintf(text, sizeof(text), "VM '%.60s': %.120s", vm.name, why);
		memcpy(why, text, sizeof(text));
		return VIRT_E_REFUSED;
	}
	vm.condition = read_condition(dom);
	r = read_pins(dom, &vm);
	if (r != 0) {
		virt_vm_clear(&vm);
		snprintf(why, SNAPSHOT_TEXT_MAX, "VM '%.60s': its pins cannot be read: %.90s",
			vm.name, virGetLastErrorMessage());
		return r;
	}
	*ret = vm;
	return 0;
}

static int read_all(struct virt_session *s, virDomainPtr *doms, int n, struct virt_list *ret)
{
	struct virt_list l = {0};
	char why[SNAPSHOT_TEXT_MAX] = "";

	l.vm = calloc(n ? (size_t)n : 1, sizeof(*l.vm));
	if (!l.vm)
		return -ENOMEM;
	for (int i = 0; i < n && l.n_vms < SNAPSHOT_VMS_MAX; i++) {
		int r = read_vm(doms[i], &l.vm[l.n_vms], why);

		if (r < 0 || r == VIRT_E_LOST) {
			note_error(s, "listing VMs");
			virt_list_clear(&l);
			return r;
		}
		if (r == 0) {
			l.n_vms++;
		} else if (r != VIRT_E_GONE) { /* one that has just ended is no news */
			if (!l.n_odd++)
				memcpy(l.odd, why, sizeof(l.odd));
		}
	}
	virt_list_sort(&l);
	virt_list_clear(ret);
	*ret = l;
	return 0;
}

int virt_session_refresh(struct virt_session *s, struct virt_list *ret)
{
	virDomainPtr *doms = NULL;
	int n, r;

	if (s->conn && (is_lost(s) || virConnectIsAlive(s->conn) == 0))
		disconnect(s);
	if (!s->conn) {
		r = connect_to(s);
		if (r != 0)
			return r;
	}
	n = virConnectListAllDomains(s->conn, &doms, VIR_CONNECT_LIST_DOMAINS_ACTIVE);
	if (n < 0) {
		note_error(s, "cannot list the running VMs");
		disconnect(s);
		return VIRT_E_LOST;
	}
	r = read_all(s, doms, n, ret);
	for (int i = 0; i < n; i++)
		virDomainFree(doms[i]);
	free(doms);
	return r;
}

/* The domain, which the caller frees, or NULL with the condition in *ret_condition. */
static virDomainPtr look_up(struct virt_session *s, const char *uuid, int *ret_condition)
{
	virDomainPtr dom;

	if (!s->conn || is_lost(s)) {
		snprintf(s->error, sizeof(s->error), "no connection to libvirt");
		*ret_condition = VIRT_E_LOST;
		return NULL;
	}
	dom = virDomainLookupByUUIDString(s->conn, uuid);
	if (!dom) {
		note_error(s, "looking up the VM");
		*ret_condition = condition_of_error();
	}
	return dom;
}

int virt_session_pin_vcpu(
	struct virt_session *s, const char *uuid, unsigned vcpu, const struct idset *cpus)
{
	unsigned char map[IDSET_MAX / 8] = {0};
	virDomainPtr dom;
	int last = -1, r;

	idset_foreach (cpu, cpus) {
		map[cpu / 8] |= (unsigned char)(1u << (cpu % 8));
		last = cpu;
	}
	dom = look_up(s, uuid, &r);
	if (!dom)
		return r;
	r = virDomainPinVcpuFlags(dom, vcpu, map, last / 8 + 1, s->pin_flags);
	if (r < 0) {
		note_error(s, "pinning a vCPU");
		r = condition_of_error();
	}
	virDomainFree(dom);
	return r;
}

int virt_session_monitor(
	struct virt_session *s, const char *uuid, const char *command, char **ret_reply)
{
	virDomainPtr dom;
	int r;

	dom = look_up(s, uuid, &r);
	if (!dom)
		return r;
	r = virDomainQemuMonitorCommand(dom, command, ret_reply, 0);
	if (r < 0) {
		note_error(s, "asking the monitor");
		r = condition_of_error();
	}
	virDomainFree(dom);
	return r;
}

const char *virt_session_error(const struct virt_session *s)
{
	return s->error[0] ? s->error : "no error";
}

const char *virt_session_version(const struct virt_session *s)
{
	return s->version;
}
