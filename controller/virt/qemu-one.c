/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Theory of operation: all questions are sent at once; when the last answer is in, they make a VM,
 * and a shared monitor is left again. Nothing waits for anything: a monitor that hangs or is held
 * by somebody else costs its deadline, and its VM lives on by its last answers for a while.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>

#include "controller/virt/qemu-one.h"

#define MESSAGE_BYTES_MAX ((size_t)1 << 20)
#define BACKOFF_NS (UINT64_C(5) * 1000000000) /* doubled with each failure, up to the next */
#define BACKOFF_MAX_NS (UINT64_C(60) * 1000000000)
#define EVENTS_MAX 2000u /* in ten seconds: more is no QEMU that works */
#define EVENTS_NS (UINT64_C(10) * 1000000000)
#define AGAIN_NS UINT64_C(1000000000) /* least time between two looks that an event asks for */

static void changed(struct one_qemu *e)
{
	if (e->host->config.notify)
		e->host->config.notify(e->host->config.userdata);
}

static bool process_lives(const struct one_qemu *e, pid_t pid, uint64_t start_ticks)
{
	uint64_t start;

	return e->host->config.started(e->host->config.userdata, pid, &start) &&
	       start == start_ticks;
}

/*
 * Only the end of its process ends a VM: a monitor that is held by somebody else, or a socket that
 * was removed, says nothing about the guest, and what was done to it must be undone one day.
 */
bool one_qemu_is_gone(struct one_qemu *e)
{
	if (e->known && process_lives(e, e->vm.pid, e->vm.start_ticks))
		return false;
	if (e->known) {
		e->known = false;
		virt_vm_clear(&e->vm);
		changed(e);
	}
	return true;
}

/* Nobody is there any more: with the process gone that is no trouble, just no VM. */
static bool means_gone(int code)
{
	return code == QMP_E_NOT_FOUND || code == QMP_E_REFUSED || code == QMP_E_CLOSED ||
	       code == QMP_E_TRUNCATED;
}

static void note_problem(struct one_qemu *e, const char *text)
{
	uint64_t wait = BACKOFF_NS << MIN2(e->failures, 8u);

	/* each try leaves a dead connection in the backlog that others wait in, too */
	e->not_before_ns = e->host->now_ns + MIN2(wait, BACKOFF_MAX_NS);
	e->failures++;
	/* texts about paths name them already */
	if (strstr(text, e->path))
		snprintf(e->problem, sizeof(e->problem), "%.190s", text);
	else
		snprintf(e->problem, sizeof(e->problem), "%.107s: %.80s", e->path, text);
}

static void note_failure(struct one_qemu *e, const struct qmp_error *err)
{
	e->open = 0;
	e->again_ns = UINT64_MAX;
	if (means_gone(err->code) && one_qemu_is_gone(e))
		e->problem[0] = '\0';
	else
		note_problem(e, err->text);
}

static bool same_threads(const struct virt_vm *a, const struct virt_vm *b)
{
	if (a->n_threads != b->n_threads)
		return false;
	for (unsigned i = 0; i < a->n_threads; i++)
		if (a->thread[i].id != b->thread[i].id || a->thread[i].tid != b->thread[i].tid)
			return false;
	return true;
}

/* Whether the daemon should look at once. */
static bool is_news(const struct virt_vm *a, const struct virt_vm *b)
{
	return strcmp(a->uuid, b->uuid) != 0 || a->pid != b->pid || a->condition != b->condition ||
	       a->ram_bytes != b->ram_bytes || !same_threads(a, b);
}

/*
 * Which identity the VM has: what its QEMU says, unless another VM has that one; and what it was
 * given first it keeps, so that nobody can change it by claiming the same.
 */
static void settle_uuid(const struct one_qemu *e, struct virt_vm *vm)
{
	if (e->known && e->vm.pid == vm->pid && e->vm.start_ticks == vm->start_ticks)
		memcpy(vm->uuid, e->vm.uuid, sizeof(vm->uuid));
	else if (e->host->uuid_taken(e->host, e, vm->uuid))
		qemu_uuid_of_socket(e->path, vm->uuid);
}

/* All answers are in. */
static void finish(struct one_qemu *e)
{
	char why[SNAPSHOT_TEXT_MAX];
	struct virt_vm vm;
	bool news;
	int r;

	if (e->failure.code) {
		note_failure(e, &e->failure);
		return;
	}
	r = qemu_answers_vm(&e->answers, e->path, &vm, why);
	if (r != 0) {
		note_problem(e, r < 0 ? "out of memory" : why);
		return;
	}
	if (!e->host->config.started(e->host->config.userdata, vm.pid, &vm.start_ticks)) {
		virt_vm_clear(&vm); /* it ended while it answered */
		e->problem[0] = '\0';
		one_qemu_is_gone(e);
		return;
	}
	settle_uuid(e, &vm);
	news = !e->known || is_news(&e->vm, &vm);
	virt_vm_clear(&e->vm);
	e->vm = vm;
	e->known = true;
	e->answered_ns = e->host->now_ns;
	e->problem[0] = '\0';
	e->failures = 0;
	e->not_before_ns = 0;
	if (news)
		changed(e);
}

static void on_reply(void *userdata, struct qmp *q, int result, struct json_object *ret,
	const struct qmp_error *err)
{
	struct question_ref *ref = userdata;
	struct one_qemu *e = ref->qemu;
	const struct qemu_question *question = &qemu_questions[ref->index];
	struct qmp_error shape;

	if (e->ending || !e->open) /* the connection broke, which is noted already */
		return;
	if (result == 0) {
		result = question->take(ret, &e->answers, &shape);
		if (result < 0)
			qmp_error_set(&shape, QMP_E_SHAPE, "out of memory");
		err = &shape;
	} else if (result == QMP_E_REMOTE && !question->needed) {
		result = 0;
	}
	/* that it is gone explains all other failures */
	if (result != 0 &&
		(!e->failure.code || (means_gone(result) && !means_gone(e->failure.code)))) {
		e->failure = *err;
		snprintf(e->failure.text, sizeof(e->failure.text), "%s: %.200s", question->command,
			err->text);
	}
	if (--e->open)
		return;
	finish(e);
	if (e->share)
		qmp_disconnect(q);
}

static void send_questions(struct one_qemu *e)
{
	qemu_answers_clear(&e->answers);
	e->answers.pid = qmp_peer_pid(e->q);
	e->failure = (struct qmp_error){0};
	e->again_ns = UINT64_MAX;
	e->asked_ns = e->host->now_ns;
	for (e->open = 0; e->open < QEMU_QUESTIONS; e->open++) {
		e->ref[e->open] = (struct question_ref){.qemu = e, .index = e->open};
		if (qmp_execute(e->q, qemu_questions[e->open].command, NULL, QEMU_ANSWER_NS,
			    e->host->now_ns, 0, on_reply, &e->ref[e->open], NULL) != 0) {
			/* those that were sent will still be answered */
			qmp_error_set(&e->failure, QMP_E_FULL, "it takes no more questions");
			break;
		}
	}
	if (!e->open)
		note_failure(e, &e->failure);
}

static void on_state(void *userdata, struct qmp *q, enum qmp_state state)
{
	struct one_qemu *e = userdata;

	if (state == QMP_BROKEN || state == QMP_DISCONNECTED)
		e->watched_fd = -1; /* closing took it out of the set */
	if (e->ending)
		return;
	if (state == QMP_BROKEN)
		note_failure(e, qmp_last_error(q));
	else if (state == QMP_READY)
		send_questions(e);
}

/* Whether an event may have changed what was answered. */
static bool is_of_interest(const char *name)
{
	static const char *const names[] = {"STOP", "RESUME", "SHUTDOWN", "RESET", "SUSPEND",
		"SUSPEND_DISK", "WAKEUP", "GUEST_PANICKED", "MIGRATION", "DEVICE_DELETED",
		"ACPI_DEVICE_OST", "DEVICE_UNPLUG_GUEST_ERROR", "MEMORY_DEVICE_SIZE_CHANGE",
		"MEM_UNPLUG_ERROR", "DUMP_COMPLETED"};

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	return false;
}

/* Counts an event; true: there are so many that the connection was given up. */
static bool is_flood(struct one_qemu *e)
{
	if (e->host->now_ns - e->events_ns >= EVENTS_NS) {
		e->events_ns = e->host->now_ns;
		e->events = 0;
	}
	if (++e->events <= EVENTS_MAX)
		return false;
	e->open = 0;
	note_problem(e, "it sends too many events");
	qmp_disconnect(e->q);
	return true;
}

static void on_event(void *userdata, struct qmp *q, const struct qmp_event *event)
{
	struct one_qemu *e = userdata;

	if (e->ending || is_flood(e) || !is_of_interest(event->name))
		return;
	/* a QEMU that floods its events is asked no more often than others */
	if (e->again_ns == UINT64_MAX)
		e->again_ns = MAX2(e->host->now_ns, e->asked_ns + AGAIN_NS);
}

struct one_qemu *one_qemu_free(struct one_qemu *e)
{
	if (!e)
		return NULL;
	e->ending = true;
	qmp_free(e->q);
	qemu_answers_clear(&e->answers);
	virt_vm_clear(&e->vm);
	free(e);
	return NULL;
}

struct one_qemu *one_qemu_new(const struct qemu_host *host, const struct qemu_path *path)
{
	struct one_qemu *e = calloc(1, sizeof(*e));
	struct qmp_config config = {
		.message_bytes_max = MESSAGE_BYTES_MAX,
		.greeting_timeout_ns = QEMU_ANSWER_NS,
		.connect_timeout_ns = QEMU_ANSWER_NS,
		.no_oob = true, /* nothing here is urgent, and without it QEMU answers in order */
		.on_event = on_event,
		.on_state = on_state,
		.userdata = e,
	};

	if (!e)
		return NULL;
	e->host = host;
	e->watched_fd = -1;
	e->again_ns = UINT64_MAX;
	e->share = path->share;
	memcpy(e->path, path->path, sizeof(e->path));
	if (qmp_new(&config, &e->q) < 0)
		return one_qemu_free(e);
	return e;
}

void one_qemu_watch(struct one_qemu *e)
{
	int fd = qmp_fd(e->q);
	short wanted = qmp_wanted(e->q);
	struct epoll_event ev = {.events = (uint32_t)wanted, .data.u64 = e->id};

	if (fd < 0 || (fd == e->watched_fd && wanted == e->watched))
		return;
	if (epoll_ctl(e->host->epoll, fd == e->watched_fd ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, fd,
		    &ev) < 0)
		return; /* out of memory or of watches: its deadline will end it */
	e->watched_fd = fd;
	e->watched = wanted;
}

bool one_qemu_is_active(const struct one_qemu *e)
{
	enum qmp_state state = qmp_state_of(e->q);

	if (state == QMP_READY)
		return e->share || e->open;
	return state != QMP_DISCONNECTED && state != QMP_BROKEN;
}

void one_qemu_ask(struct one_qemu *e)
{
	e->wanted = false;
	if (qmp_state_of(e->q) == QMP_READY)
		send_questions(e);
	else if (qmp_connect(e->q, e->path, e->host->now_ns) < 0)
		note_problem(e, "out of memory");
}
