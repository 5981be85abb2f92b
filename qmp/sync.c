/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The loop of client.h, written down once for programs that have none of their own.
 */
#include "qmp/sync.h"

#include <errno.h>
#include <poll.h>
#include <time.h>

#include "qmp/client-private.h"

#define LONGEST_WAIT_NS (UINT64_C(3600) * 1000000000)

uint64_t qmp_sync_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

/* One turn, waiting until @until_ns at the latest. */
static int turn(struct qmp *q, uint64_t until_ns)
{
	struct pollfd p = {.fd = qmp_fd(q), .events = qmp_wanted(q)};
	uint64_t deadline = qmp_deadline_ns(q), now = qmp_sync_now_ns(), wait;
	struct timespec ts;

	if (until_ns < deadline)
		deadline = until_ns;
	wait = deadline > now ? deadline - now : 0;
	if (wait > LONGEST_WAIT_NS)
		wait = LONGEST_WAIT_NS;
	ts.tv_sec = (time_t)(wait / 1000000000);
	ts.tv_nsec = (long)(wait % 1000000000);
	if (ppoll(&p, 1, &ts, NULL) < 0) {
		if (errno != EINTR)
			return -errno;
		p.revents = 0;
	}
	return qmp_process(q, p.revents, qmp_sync_now_ns());
}

/* What a connection that is not there any more ended with. */
static int how_it_ended(const struct qmp *q, struct qmp_error *err)
{
	if (qmp_state_of(q) != QMP_BROKEN)
		return qmp_error_set(err, QMP_E_CANCELLED, "the connection was ended by its user");
	if (err)
		*err = *qmp_last_error(q);
	return qmp_last_error(q)->code;
}

static bool is_over(const struct qmp *q)
{
	return qmp_state_of(q) == QMP_BROKEN || qmp_state_of(q) == QMP_DISCONNECTED;
}

static int wait_ready(struct qmp *q, struct qmp_error *err)
{
	int r = 0;

	while (r == 0 && qmp_state_of(q) != QMP_READY && !is_over(q))
		r = turn(q, QMP_NEVER);
	if (r < 0 || qmp_state_of(q) == QMP_READY)
		return r;
	return how_it_ended(q, err);
}

/* Waits for a connection that was just begun; a callback may free it meanwhile. */
static int open_held(struct qmp *q, int began, struct qmp **ret, struct qmp_error *err)
{
	bool freed;
	int r = began;

	if (r >= 0)
		r = wait_ready(q, err);
	freed = q->doomed;
	if (freed && r == 0)
		r = qmp_error_set(err, QMP_E_CANCELLED, "the connection was freed by its user");
	if (r != 0 && !freed)
		qmp_free(q);
	qmp_client_release(q);
	if (r == 0)
		*ret = q;
	return r;
}

int qmp_sync_open(
	const char *path, const struct qmp_config *config, struct qmp **ret, struct qmp_error *err)
{
	struct qmp *q;
	int r = qmp_new(config, &q);

	if (r < 0)
		return r;
	qmp_client_hold(q);
	return open_held(q, qmp_connect(q, path, qmp_sync_now_ns()), ret, err);
}

int qmp_sync_open_transport(const struct qmp_transport *transport, const struct qmp_config *config,
	struct qmp **ret, struct qmp_error *err)
{
	struct qmp *q;
	int r = qmp_new(config, &q);

	if (r < 0) {
		transport->close(transport->t);
		return r;
	}
	qmp_client_hold(q);
	return open_held(q, qmp_connect_transport(q, transport, qmp_sync_now_ns()), ret, err);
}

struct answer {
	bool done;
	int result;
	struct json_object *ret;
	struct qmp_error err;
};

static void on_answer(void *userdata, struct qmp *q, int result, struct json_object *ret,
	const struct qmp_error *err)
{
	struct answer *a = userdata;

	a->done = true;
	a->result = result;
	a->ret = json_object_get(ret);
	if (err)
		a->err = *err;
}

int qmp_sync_execute(struct qmp *q, const char *command, struct json_object *arguments,
	uint64_t timeout_ns, struct json_object **ret, struct qmp_error *err)
{
	struct answer a = {0};
	uint64_t id;
	int r;

	if (q->processing)
		return -EDEADLK;
	qmp_client_hold(q);
	r = qmp_execute(
		q, command, arguments, timeout_ns, qmp_sync_now_ns(), 0, on_answer, &a, &id);
	if (r > 0)
		qmp_error_set(err, r, "%s was not sent: %s", command,
			r == QMP_E_STATE ? "the connection is not ready"
					 : "the peer does not take what waits");
	while (r == 0 && !a.done)
		r = turn(q, QMP_NEVER);
	if (r <= 0 && !a.done)
		qmp_cancel(q, id); /* it must not write to this stack frame any more */
	qmp_client_release(q);
	if (r > 0)
		return r;
	if (r < 0) {
		json_object_put(a.ret);
		return r;
	}
	if (a.result != 0) {
		if (err)
			*err = a.err;
		return a.result;
	}
	if (ret)
		*ret = a.ret;
	else
		json_object_put(a.ret);
	return 0;
}

int qmp_sync_wait(struct qmp *q, uint64_t timeout_ns, bool (*enough)(void *userdata),
	void *userdata, struct qmp_error *err)
{
	uint64_t until = qmp_conversation_after(qmp_sync_now_ns(), timeout_ns);
	bool done = false;
	int r = 0;

	if (q->processing)
		return -EDEADLK;
	qmp_client_hold(q);
	while (r == 0 && !done && !is_over(q)) {
		done = (enough && enough(userdata)) || qmp_sync_now_ns() >= until;
		if (!done)
			r = turn(q, until);
	}
	if (r == 0 && !done)
		r = how_it_ended(q, err);
	qmp_client_release(q);
	return r;
}
