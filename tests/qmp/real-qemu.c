/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Why QEMU is tied to this process by the kernel: whatever ends the test, a crash included, ends it
 * too.
 */
#include "tests/qmp/real-qemu.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define STEP_NS 20000000L
#define ARGS_MAX 48

bool real_is_kvm(const struct real *r)
{
	return strcmp(r->accel, "kvm") == 0;
}

static void pause_a_little(void)
{
	nanosleep(&(struct timespec){.tv_nsec = STEP_NS}, NULL);
}

static void in_child(const struct real *r, char *const *args, pid_t parent)
{
	char log[128];
	int fd;

	snprintf(log, sizeof(log), "%s/log", r->dir);
	fd = open(log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	if (fd < 0 || dup2(fd, 1) < 0 || dup2(fd, 2) < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 ||
		getppid() != parent)
		_exit(126);
	execvp(args[0], args);
	dprintf(2, "%s: %s\n", args[0], strerror(errno));
	_exit(127);
}

bool real_start(struct real *r, const char *const *extra)
{
	char machine[64], monitor[160];
	const char *args[ARGS_MAX] = {r->qemu, "-machine", machine, "-cpu",
		real_is_kvm(r) ? "host" : "qemu64", "-smp", "2,maxcpus=4", "-m",
		"128M,slots=4,maxmem=1G", "-object", "iothread,id=io0", "-display", "none",
		"-nodefaults", "-no-user-config", "-name", "numaherd-test,debug-threads=on",
		"-uuid", "12345678-9abc-def0-1234-56789abcdef0", "-S", "-qmp", monitor};
	pid_t parent = getpid();
	size_t n = 22;

	snprintf(r->dir, sizeof(r->dir), "/tmp/numaherd-qmp-XXXXXX");
	if (!mkdtemp(r->dir))
		return false;
	snprintf(r->path, sizeof(r->path), "%s/qmp.sock", r->dir);
	snprintf(machine, sizeof(machine), "q35,accel=%s", r->accel);
	snprintf(monitor, sizeof(monitor), "unix:%s,server=on,wait=off", r->path);
	while (extra && *extra && n + 1 < ARGS_MAX)
		args[n++] = *extra++;
	fflush(NULL);
	r->pid = fork();
	if (r->pid == 0)
		in_child(r, (char *const *)args, parent);
	return r->pid > 0;
}

static void show_log(const struct real *r)
{
	char path[128], line[512];
	FILE *log;

	snprintf(path, sizeof(path), "%s/log", r->dir);
	log = fopen(path, "re");
	while (log && fgets(line, sizeof(line), log))
		printf("# QEMU: %s", line);
	if (log)
		fclose(log);
}

static bool has_ended(struct real *r)
{
	int status;

	if (r->pid > 0 && waitpid(r->pid, &status, WNOHANG) == r->pid) {
		printf("# QEMU ended with status 0x%x\n", (unsigned)status);
		show_log(r);
		r->pid = 0;
	}
	return r->pid <= 0;
}

void real_stop(struct real *r)
{
	char path[128];

	real_disconnect(r);
	if (r->pid > 0) {
		kill(r->pid, SIGKILL);
		waitpid(r->pid, NULL, 0);
	}
	r->pid = 0;
	if (!r->dir[0])
		return;
	snprintf(path, sizeof(path), "%s/log", r->dir);
	unlink(path);
	unlink(r->path);
	rmdir(r->dir);
	r->dir[0] = '\0';
}

int real_wait(struct real *r)
{
	uint64_t end = qmp_sync_now_ns() + r->patience_ns;
	int status;

	while (qmp_sync_now_ns() < end) {
		if (waitpid(r->pid, &status, WNOHANG) == r->pid) {
			r->pid = 0;
			return status;
		}
		pause_a_little();
	}
	return -1;
}

static void on_event(void *userdata, struct qmp *q, const struct qmp_event *event)
{
	struct real *r = userdata;
	struct real_event *e = &r->event[r->n_events];

	if (r->n_events == REAL_EVENTS)
		return;
	snprintf(e->name, sizeof(e->name), "%s", event->name);
	snprintf(e->data, sizeof(e->data), "%s",
		event->data ? json_object_to_json_string_ext(event->data, 0) : "");
	e->time_us = event->time_us;
	r->n_events++;
}

bool real_connect(struct real *r)
{
	struct qmp_config config = {
		.greeting_timeout_ns = r->patience_ns, .on_event = on_event, .userdata = r};
	uint64_t end = qmp_sync_now_ns() + r->patience_ns;
	struct qmp_error err = {0};
	int result;

	r->n_events = 0;
	do {
		result = qmp_sync_open(r->path, &config, &r->q, &err);
		if (result == 0)
			return true;
		if (has_ended(r))
			return false;
		pause_a_little();
	} while ((result == QMP_E_NOT_FOUND || result == QMP_E_REFUSED) && qmp_sync_now_ns() < end);
	printf("# connecting: %s: %s\n", qmp_result_name(result), err.text);
	return false;
}

void real_disconnect(struct real *r)
{
	r->q = qmp_free(r->q);
}

int real_ask(struct real *r, const char *command, const char *arguments, struct json_object **ret,
	struct qmp_error *err)
{
	struct json_object *object = arguments[0] ? json_tokener_parse(arguments) : NULL;
	struct qmp_error ignored;
	int result;

	err = err ? err : &ignored;
	result = qmp_sync_execute(r->q, command, object, r->patience_ns, ret, err);
	if (result != 0)
		printf("# %s %s: %s: %s\n", command, arguments, qmp_result_name(result), err->text);
	json_object_put(object);
	return result;
}

bool real_out(struct real *r, char size, unsigned port, unsigned value)
{
	char arguments[96];
	struct json_object *ret = NULL;
	bool ok;

	snprintf(arguments, sizeof(arguments), "{\"command-line\": \"o/%c 0x%x 0x%x\"}", size, port,
		value);
	ok = real_ask(r, "human-monitor-command", arguments, &ret, NULL) == 0 &&
	     strcmp(json_object_get_string(ret), "") == 0;
	json_object_put(ret);
	return ok;
}

struct wanted {
	struct real *r;
	const char *name, *part;
	const struct real_event *found;
};

static bool has_come(void *userdata)
{
	struct wanted *w = userdata;

	for (unsigned i = 0; !w->found && i < w->r->n_events; i++)
		if (strcmp(w->r->event[i].name, w->name) == 0 &&
			strstr(w->r->event[i].data, w->part))
			w->found = &w->r->event[i];
	return w->found != NULL;
}

const struct real_event *real_event(struct real *r, const char *name, const char *part)
{
	struct wanted w = {.r = r, .name = name, .part = part};
	struct qmp_error err = {0};

	if (!has_come(&w))
		qmp_sync_wait(r->q, r->patience_ns, has_come, &w, &err);
	if (!w.found)
		printf("# no event %s with '%s' %s\n", name, part, err.text);
	return w.found;
}

bool real_is_thread(const struct real *r, pid_t tid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task/%d", (int)r->pid, (int)tid);
	return tid > 0 && access(path, F_OK) == 0;
}

bool real_program_version(const struct real *r, unsigned ret[3])
{
	char line[256] = "";
	int out[2];
	pid_t pid;
	ssize_t n;

	if (pipe2(out, O_CLOEXEC) < 0)
		return false;
	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		dup2(out[1], 1);
		execlp(r->qemu, r->qemu, "--version", (char *)NULL);
		_exit(127);
	}
	close(out[1]);
	n = read(out[0], line, sizeof(line) - 1);
	close(out[0]);
	waitpid(pid, NULL, 0);
	return n > 0 &&
	       sscanf(line, "QEMU emulator version %u.%u.%u", &ret[0], &ret[1], &ret[2]) == 3;
}
