/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * qmp-cli: one command from a shell, or the events.
 *
 * Why events that come before the reply are held back: the first line on stdout is the reply, and
 * after an error reply there is nothing on stdout.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "qmp/cli.h"
#include "qmp/sync.h"

#define SECOND_NS UINT64_C(1000000000)
#define FOREVER_NS (100 * CLI_TIMEOUT_MAX * SECOND_NS) /* can be added to a clock */
#define LONGEST_POLL_NS (3600 * SECOND_NS)
#define HELD_BYTES_MAX ((size_t)4 << 20)

struct cli {
	const struct cli_options *o;
	struct qmp *q;
	uint64_t end_ns;
	bool reached, following, held_too_much;
	struct json_object *held; /* lines, as strings */
	size_t held_bytes;
	uint64_t seen; /* events */
	bool done;
	enum cli_exit code;
};

/* The first word counts. */
static void finish(struct cli *c, enum cli_exit code)
{
	if (c->done)
		return;
	c->done = true;
	c->code = code;
}

static void out_of_memory(struct cli *c)
{
	fputs("qmp-cli: out of memory\n", stderr);
	finish(c, CLI_ERROR);
}

/* One line of JSON. What a terminal would obey is escaped; JSON means the same by it. */
static void print_line(struct cli *c, const char *text)
{
	int r = 0;

	for (const char *p = text; *p && r >= 0; p++) {
		unsigned char at = (unsigned char)p[0], next = (unsigned char)p[1];

		if (at == 0x7f)
			r = printf("\\u007f");
		else if (at == 0xc2 && next >= 0x80 && next < 0xa0)
			r = printf("\\u00%02x", *++p & 0xff);
		else
			r = putchar(at);
	}
	if (r >= 0 && putchar('\n') >= 0 && fflush(stdout) == 0)
		return;
	if (errno != EPIPE) {
		fprintf(stderr, "qmp-cli: stdout: %s\n", strerror(errno));
		finish(c, CLI_ERROR);
	}
	finish(c, CLI_OK); /* who read it has enough */
}

static const char *advice(int condition)
{
	switch (condition) {
	case QMP_E_NOT_FOUND:
	case QMP_E_NOT_SOCKET:
		return "; want the PATH of a QEMU's -qmp unix:PATH,server=on,wait=off";
	case QMP_E_PATH_TOO_LONG:
		return "; go to its directory and give its name only";
	case QMP_E_PERM:
		return "; run this as root or as the user of that QEMU";
	case QMP_E_BUSY:
	case QMP_E_NO_GREETING:
		return "; another client, such as libvirt, may hold this monitor: ask through that "
		       "one, or give QEMU a second -qmp socket";
	case QMP_E_SYNTAX:
	case QMP_E_UTF8:
	case QMP_E_PROTOCOL:
		return "; is it a -qmp socket? -monitor and -serial speak otherwise";
	default:
		return "";
	}
}

static enum cli_exit exit_of(const struct cli *c, int condition)
{
	switch (condition) {
	case QMP_E_REMOTE:
		return CLI_ERROR;
	case QMP_E_NO_GREETING:
	case QMP_E_TIMEOUT:
		return CLI_TIMEOUT;
	default:
		return c->reached ? CLI_BROKEN : CLI_UNREACHED;
	}
}

static void fail(struct cli *c, int condition, const char *text)
{
	size_t len = strlen(c->o->path);

	/* where the socket could not be opened the text names it already */
	if (strncmp(text, c->o->path, len < 64 ? len : 64) == 0)
		fprintf(stderr, "qmp-cli: %s%s\n", text, advice(condition));
	else
		fprintf(stderr, "qmp-cli: %s: %s%s\n", c->o->path, text, advice(condition));
	finish(c, exit_of(c, condition));
}

static void follow(struct cli *c)
{
	c->following = true;
	if (!c->o->has_timeout)
		c->end_ns = QMP_NEVER;
	for (size_t i = 0; c->held && !c->done && i < json_object_array_length(c->held); i++)
		print_line(c, json_object_get_string(json_object_array_get_idx(c->held, i)));
	json_object_put(c->held);
	c->held = NULL;
	if (c->o->count && c->seen >= c->o->count)
		finish(c, CLI_OK);
}

static void on_reply(void *userdata, struct qmp *q, int result, struct json_object *ret,
	const struct qmp_error *err)
{
	const int style = JSON_C_TO_STRING_NOSLASHESCAPE;
	struct cli *c = userdata;
	const char *text;

	if (result == QMP_E_REMOTE) {
		fprintf(stderr, "qmp-cli: %s: %s: %s: %s\n", c->o->path, c->o->command,
			err->class_name, err->text);
		finish(c, CLI_ERROR);
	}
	if (result != 0) /* of what else there is the connection breaks, and on_state says so */
		return;
	text = json_object_to_json_string_ext(ret,
		c->o->pretty ? style | JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED : style);
	if (!text) {
		out_of_memory(c);
		return;
	}
	print_line(c, text);
	if (c->o->events)
		follow(c);
	else
		finish(c, CLI_OK);
}

static void send_command(struct cli *c)
{
	int r;

	if (c->o->oob && !qmp_has_oob(c->q)) {
		fprintf(stderr, "qmp-cli: %s: offers no out-of-band commands; leave out --oob\n",
			c->o->path);
		finish(c, CLI_ERROR);
		return;
	}
	r = qmp_execute(c->q, c->o->command, c->o->arguments, 0, qmp_sync_now_ns(),
		c->o->oob ? QMP_OOB : 0, on_reply, c, NULL);
	if (r == QMP_E_FULL) {
		fprintf(stderr, "qmp-cli: %s: %s: more than %zu bytes of arguments\n", c->o->path,
			c->o->command, QMP_SEND_BYTES_MAX);
		finish(c, CLI_USAGE);
	} else if (r != 0) {
		out_of_memory(c);
	}
}

static void on_state(void *userdata, struct qmp *q, enum qmp_state state)
{
	const struct qmp_error *err = qmp_last_error(q);
	struct cli *c = userdata;

	if (state == QMP_GREETING)
		c->reached = true;
	if (state == QMP_READY) {
		if (c->o->command)
			send_command(c);
		else
			follow(c);
	}
	if (state != QMP_BROKEN || c->done)
		return;
	if (c->following && err->code == QMP_E_CLOSED)
		finish(c, CLI_OK);
	else
		fail(c, err->code, err->text);
}

static bool is_wanted(const char *names, const char *name)
{
	const size_t len = strlen(name);

	if (!names)
		return true;
	for (size_t n; *names; names += n + (names[n] == ',')) {
		n = strcspn(names, ",");
		if (n == len && strncmp(names, name, n) == 0)
			return true;
	}
	return false;
}

/* NULL: out of memory */
static struct json_object *event_object(const struct qmp_event *event)
{
	struct json_object *object = json_object_new_object(), *time = json_object_new_object();
	const int64_t us = event->time_us;

	if (!object || !time) {
		json_object_put(object);
		json_object_put(time);
		return NULL;
	}
	json_object_object_add(object, "event", json_object_new_string(event->name));
	if (event->data)
		json_object_object_add(object, "data", json_object_get(event->data));
	json_object_object_add(time, "seconds", json_object_new_int64(us < 0 ? -1 : us / 1000000));
	json_object_object_add(
		time, "microseconds", json_object_new_int64(us < 0 ? -1 : us % 1000000));
	json_object_object_add(object, "timestamp", time);
	return object;
}

static void hold(struct cli *c, const char *text)
{
	size_t len = strlen(text);
	struct json_object *line;

	if (len > HELD_BYTES_MAX - c->held_bytes) {
		if (!c->held_too_much)
			fprintf(stderr,
				"qmp-cli: %s: too many events before the reply, some are "
				"left out\n",
				c->o->path);
		c->held_too_much = true;
		return;
	}
	if (!c->held)
		c->held = json_object_new_array();
	line = json_object_new_string(text);
	if (!c->held || !line || json_object_array_add(c->held, line) < 0) {
		json_object_put(line);
		out_of_memory(c);
		return;
	}
	c->held_bytes += len;
}

static void on_event(void *userdata, struct qmp *q, const struct qmp_event *event)
{
	struct cli *c = userdata;
	struct json_object *object;
	const char *text = NULL;

	if (c->done || !c->o->events || !is_wanted(c->o->names, event->name))
		return;
	if (c->o->count && c->seen >= c->o->count)
		return;
	object = event_object(event);
	if (object)
		text = json_object_to_json_string_ext(object, JSON_C_TO_STRING_NOSLASHESCAPE);
	c->seen++;
	if (!text)
		out_of_memory(c);
	else if (c->following)
		print_line(c, text);
	else
		hold(c, text);
	json_object_put(object);
	if (c->following && c->o->count && c->seen >= c->o->count)
		finish(c, CLI_OK);
}

static void late(struct cli *c)
{
	char text[192];

	if (c->following) {
		if (c->o->count)
			fprintf(stderr, "qmp-cli: %s: %llu of %llu events in %llu s\n", c->o->path,
				(unsigned long long)c->seen, (unsigned long long)c->o->count,
				(unsigned long long)c->o->timeout_s);
		finish(c, c->o->count ? CLI_TIMEOUT : CLI_OK);
		return;
	}
	if (qmp_state_of(c->q) == QMP_CONNECTING) {
		fail(c, QMP_E_BUSY, "busy, others wait for it already");
	} else if (qmp_state_of(c->q) == QMP_GREETING) {
		snprintf(text, sizeof(text), "no greeting in %llu s",
			(unsigned long long)c->o->timeout_s);
		fail(c, QMP_E_NO_GREETING, text);
	} else {
		snprintf(text, sizeof(text), "%.128s: no reply in %llu s",
			qmp_state_of(c->q) == QMP_READY ? c->o->command : "qmp_capabilities",
			(unsigned long long)c->o->timeout_s);
		fail(c, QMP_E_TIMEOUT, text);
	}
}

static void turn(struct cli *c)
{
	struct pollfd p[] = {
		{.fd = qmp_fd(c->q), .events = qmp_wanted(c->q)},
		{.fd = c->following ? STDOUT_FILENO : -1}, /* only whether its reader has gone */
	};
	uint64_t until = qmp_deadline_ns(c->q), now = qmp_sync_now_ns(), wait;
	int r;

	if (c->end_ns < until)
		until = c->end_ns;
	wait = until > now ? until - now : 0;
	if (wait > LONGEST_POLL_NS)
		wait = LONGEST_POLL_NS;
	r = poll(p, 2, (int)((wait + 999999) / 1000000));
	if (r < 0 && errno != EINTR) {
		fprintf(stderr, "qmp-cli: poll: %s\n", strerror(errno));
		finish(c, CLI_ERROR);
		return;
	}
	if (r < 0)
		p[0].revents = p[1].revents = 0;
	if (p[1].revents & (POLLERR | POLLHUP)) {
		finish(c, CLI_OK);
		return;
	}
	if (qmp_process(c->q, p[0].revents, qmp_sync_now_ns()) < 0)
		out_of_memory(c);
	if (!c->done && qmp_sync_now_ns() >= c->end_ns)
		late(c);
}

/* @ret_code: of the process. */
static int run(const struct cli_options *o, enum cli_exit *ret_code)
{
	struct cli c = {.o = o, .end_ns = QMP_NEVER};
	/* the time is ours to keep: it counts from the start, whatever happens in it */
	const struct qmp_config config = {
		.connect_timeout_ns = FOREVER_NS,
		.greeting_timeout_ns = FOREVER_NS,
		.no_oob = !o->oob,
		.on_event = on_event,
		.on_state = on_state,
		.userdata = &c,
	};
	int r = qmp_new(&config, &c.q);

	if (r < 0)
		return r;
	if (o->timeout_s)
		c.end_ns = qmp_sync_now_ns() + o->timeout_s * SECOND_NS;
	r = qmp_connect(c.q, o->path, qmp_sync_now_ns());
	while (r >= 0 && !c.done)
		turn(&c);
	qmp_free(c.q);
	json_object_put(c.held);
	if (r < 0)
		return r;
	*ret_code = c.code;
	return 0;
}

/* A socket must not become what is written to as stdout. */
static bool fill_standard_fds(void)
{
	for (int fd = 0; fd < 3; fd++)
		if (fcntl(fd, F_GETFD) < 0 &&
			open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) != fd)
			return false;
	return true;
}

int main(int argc, char **argv)
{
	struct cli_options o = {0};
	enum cli_exit code = CLI_ERROR;
	int r;

	if (!fill_standard_fds())
		return CLI_ERROR;
	signal(SIGPIPE, SIG_IGN);
	r = cli_options_parse(argc, argv, &o);
	if (r == 0) {
		r = run(&o, &code);
		json_object_put(o.arguments);
	} else if (r > 0) {
		return r == CLI_OPTIONS_E_EXIT ? CLI_OK : CLI_USAGE;
	}
	if (r < 0)
		fprintf(stderr, "qmp-cli: %s\n", strerror(-r));
	return r < 0 ? CLI_ERROR : code;
}
