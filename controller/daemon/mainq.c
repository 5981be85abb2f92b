/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Why a queue and an eventfd: sd-event is not thread-safe, so no other thread may touch the loop
 * except by making a file descriptor readable.
 */
#include "controller/daemon/mainq.h"

#include <errno.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct message {
	struct message *next;
	mainq_fn fn;
	void *arg;
};

struct mainq {
	pthread_mutex_t lock;
	struct message *first;
	struct message **last;
	int fd;
	sd_event_source *source;
};

static int run_messages(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	struct mainq *q = userdata;
	struct message *m;
	uint64_t count;

	if (read(fd, &count, sizeof(count)) < 0 && errno != EAGAIN)
		return -errno;
	pthread_mutex_lock(&q->lock);
	m = q->first;
	q->first = NULL;
	q->last = &q->first;
	pthread_mutex_unlock(&q->lock);
	while (m) {
		struct message *next = m->next;

		m->fn(m->arg);
		free(m);
		m = next;
	}
	return 0;
}

int mainq_new(sd_event *event, struct mainq **ret)
{
	struct mainq *q = calloc(1, sizeof(*q));
	int r;

	if (!q)
		return -ENOMEM;
	pthread_mutex_init(&q->lock, NULL);
	q->last = &q->first;
	q->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	r = q->fd < 0 ? -errno
		      : sd_event_add_io(event, &q->source, q->fd, EPOLLIN, run_messages, q);
	if (r < 0) {
		mainq_free(q);
		return r;
	}
	*ret = q;
	return 0;
}

struct mainq *mainq_free(struct mainq *q)
{
	if (!q)
		return NULL;
	sd_event_source_disable_unref(q->source);
	if (q->fd >= 0)
		close(q->fd);
	while (q->first) {
		struct message *m = q->first;

		q->first = m->next;
		free(m);
	}
	pthread_mutex_destroy(&q->lock);
	free(q);
	return NULL;
}

int mainq_post(struct mainq *q, mainq_fn fn, void *arg)
{
	struct message *m = malloc(sizeof(*m));
	const uint64_t one = 1;

	if (!m)
		return -ENOMEM;
	*m = (struct message){.fn = fn, .arg = arg};
	pthread_mutex_lock(&q->lock);
	*q->last = m;
	q->last = &m->next;
	pthread_mutex_unlock(&q->lock);
	/* a full counter (EAGAIN) means that the loop has been woken already */
	if (write(q->fd, &one, sizeof(one)) < 0 && errno != EAGAIN)
		return -errno;
	return 0;
}
