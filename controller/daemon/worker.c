/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Why own threads: libvirt calls are RPCs behind per-VM job locks, numa_maps walks page tables and
 * move_pages copies memory. None of that may run where the watchdog is fed.
 */
#include "controller/daemon/worker.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>

struct job {
	struct job *next;
	worker_fn run, done;
	void *arg;
	struct worker *worker;
};

struct worker {
	struct mainq *mainq;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	struct job *first;
	struct job **last;
	bool stop;
	bool left_behind;
	unsigned pending; /* main loop's thread only */
};

static void finish_job(void *arg)
{
	struct job *j = arg;

	j->worker->pending--;
	if (j->done)
		j->done(j->arg);
	free(j);
}

static struct job *next_job(struct worker *w)
{
	struct job *j = NULL;

	pthread_mutex_lock(&w->lock);
	while (!w->stop && !w->first)
		pthread_cond_wait(&w->wake, &w->lock);
	if (!w->stop) {
		j = w->first;
		w->first = j->next;
		if (!w->first)
			w->last = &w->first;
	}
	pthread_mutex_unlock(&w->lock);
	return j;
}

static bool is_stopped(struct worker *w)
{
	bool stop;

	pthread_mutex_lock(&w->lock);
	stop = w->stop;
	pthread_mutex_unlock(&w->lock);
	return stop;
}

static void *work(void *arg)
{
	struct worker *w = arg;
	struct job *j;

	while ((j = next_job(w))) {
		j->run(j->arg);
		/* after a stop nobody listens any more; the process is about to end */
		if (is_stopped(w) || mainq_post(w->mainq, finish_job, j) < 0)
			free(j);
	}
	return NULL;
}

int worker_new(struct mainq *mainq, const char *name, struct worker **ret)
{
	struct worker *w = calloc(1, sizeof(*w));
	sigset_t all, old;
	int r;

	if (!w)
		return -ENOMEM;
	w->mainq = mainq;
	w->last = &w->first;
	pthread_mutex_init(&w->lock, NULL);
	pthread_cond_init(&w->wake, NULL);
	/* signals belong to the main loop */
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &old);
	r = pthread_create(&w->thread, NULL, work, w);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (r != 0) {
		free(w);
		return -r;
	}
	pthread_setname_np(w->thread, name);
	*ret = w;
	return 0;
}

int worker_submit(struct worker *w, worker_fn run, worker_fn done, void *arg)
{
	struct job *j = malloc(sizeof(*j));

	if (!j)
		return -ENOMEM;
	*j = (struct job){.run = run, .done = done, .arg = arg, .worker = w};
	pthread_mutex_lock(&w->lock);
	if (w->stop) {
		pthread_mutex_unlock(&w->lock);
		free(j);
		return -ESHUTDOWN;
	}
	*w->last = j;
	w->last = &j->next;
	pthread_cond_signal(&w->wake);
	pthread_mutex_unlock(&w->lock);
	w->pending++;
	return 0;
}

unsigned worker_pending(const struct worker *w)
{
	return w->pending;
}

bool worker_stop(struct worker *w, unsigned timeout_ms)
{
	struct timespec until;

	if (!w)
		return true;
	pthread_mutex_lock(&w->lock);
	w->stop = true;
	pthread_cond_signal(&w->wake);
	pthread_mutex_unlock(&w->lock);
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += timeout_ms / 1000;
	until.tv_nsec += (long)(timeout_ms % 1000) * 1000000;
	if (until.tv_nsec >= 1000000000) {
		until.tv_sec++;
		until.tv_nsec -= 1000000000;
	}
	w->left_behind = pthread_timedjoin_np(w->thread, NULL, &until) != 0;
	if (w->left_behind)
		pthread_detach(w->thread);
	return !w->left_behind;
}

struct worker *worker_free(struct worker *w)
{
	if (!w || w->left_behind)
		return NULL;
	while (w->first) {
		struct job *j = w->first;

		w->first = j->next;
		free(j);
	}
	pthread_cond_destroy(&w->wake);
	pthread_mutex_destroy(&w->lock);
	free(w);
	return NULL;
}
