/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Run under the thread sanitizer too. */
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "controller/daemon/worker.h"
#include "tests/tap.h"

struct state {
	sd_event *event;
	struct mainq *q;
	struct worker *w;
	unsigned done, wanted;
	unsigned order[64];
	pthread_t main_thread;
	bool wrong_thread;
};

struct job {
	struct state *s;
	unsigned id;
	unsigned result; /* written on the worker, read on the main loop */
};

static void run(void *arg)
{
	struct job *j = arg;

	j->result = j->id * 2;
	j->s->wrong_thread |= pthread_equal(pthread_self(), j->s->main_thread) != 0;
}

static void done(void *arg)
{
	struct job *j = arg;
	struct state *s = j->s;

	s->order[s->done++] = j->result;
	if (s->done == s->wanted)
		sd_event_exit(s->event, 0);
	free(j);
}

static void setup(struct state *s)
{
	memset(s, 0, sizeof(*s));
	s->main_thread = pthread_self();
	if (sd_event_new(&s->event) < 0 || mainq_new(s->event, &s->q) < 0 ||
		worker_new(s->q, "test", &s->w) < 0)
		abort();
}

static void submit(struct state *s, unsigned id)
{
	struct job *j = calloc(1, sizeof(*j));

	*j = (struct job){.s = s, .id = id};
	if (worker_submit(s->w, run, done, j) < 0)
		abort();
}

static void jobs_run_in_order_and_come_back_to_the_loop(struct tap *tap_)
{
	struct state s;

	setup(&s);
	s.wanted = 50;
	for (unsigned i = 0; i < 50; i++)
		submit(&s, i);
	CHECK_INT(sd_event_loop(s.event), 0);
	CHECK(!s.wrong_thread);
	CHECK_INT(worker_pending(s.w), 0);
	for (unsigned i = 0; i < 50; i++)
		CHECK_INT(s.order[i], i * 2);
	CHECK(worker_stop(s.w, 1000));
	worker_free(s.w);
	mainq_free(s.q);
	sd_event_unref(s.event);
}

struct hanging {
	atomic_bool running, release;
};

static void hang(void *arg)
{
	struct hanging *h = arg;

	atomic_store(&h->running, true);
	while (!atomic_load(&h->release))
		usleep(1000);
}

static void a_hanging_job_does_not_hang_the_stop(struct tap *tap_)
{
	static struct hanging h;
	static struct state s; /* what is left behind stays reachable */

	setup(&s);
	CHECK_INT(worker_submit(s.w, hang, NULL, &h), 0);
	while (!atomic_load(&h.running))
		usleep(1000);
	CHECK(!worker_stop(s.w, 50));
	CHECK(worker_submit(s.w, hang, NULL, &h) < 0);
	CHECK(worker_free(s.w) == NULL);
	atomic_store(&h.release, true);
	usleep(50000);
}

static void *post_many(void *arg)
{
	struct state *s = arg;

	for (unsigned i = 0; i < 10; i++) {
		struct job *j = calloc(1, sizeof(*j));

		*j = (struct job){.s = s, .result = 1};
		mainq_post(s->q, done, j);
	}
	return NULL;
}

static void messages_from_many_threads(struct tap *tap_)
{
	pthread_t t[4];
	struct state s;

	setup(&s);
	s.wanted = 40;
	for (unsigned i = 0; i < 4; i++)
		pthread_create(&t[i], NULL, post_many, &s);
	CHECK_INT(sd_event_loop(s.event), 0);
	CHECK_INT(s.done, 40);
	for (unsigned i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	CHECK(worker_stop(s.w, 1000));
	worker_free(s.w);
	mainq_free(s.q);
	sd_event_unref(s.event);
}

TAP_MAIN(TEST(jobs_run_in_order_and_come_back_to_the_loop),
	TEST(a_hanging_job_does_not_hang_the_stop), TEST(messages_from_many_threads))
