/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Why commands that were given up stay listed: QEMU still owes their replies, and an error that
 * comes without an id belongs to the oldest command that it has not answered.
 */
#include "qmp/pending.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int qmp_pending_init(struct pending *p)
{
	p->n = 0;
	p->call = calloc(QMP_CALLS_MAX, sizeof(*p->call));
	return p->call ? 0 : -ENOMEM;
}

void qmp_pending_deinit(struct pending *p)
{
	free(p->call);
	*p = (struct pending){0};
}

void qmp_pending_remove(struct pending *p, struct pending_call *call)
{
	size_t at = (size_t)(call - p->call);

	p->n--;
	memmove(call, call + 1, (p->n - at) * sizeof(*call));
}

int qmp_pending_add(struct pending *p, const struct pending_call *call)
{
	for (unsigned i = 0; p->n == QMP_CALLS_MAX && i < p->n; i++) {
		if (!p->call[i].fn)
			qmp_pending_remove(p, &p->call[i]);
	}
	if (p->n == QMP_CALLS_MAX)
		return QMP_E_FULL;
	p->call[p->n++] = *call;
	return 0;
}

struct pending_call *qmp_pending_find(struct pending *p, uint64_t id)
{
	for (unsigned i = 0; i < p->n; i++)
		if (p->call[i].id == id)
			return &p->call[i];
	return NULL;
}

struct pending_call *qmp_pending_oldest(struct pending *p)
{
	return p->n ? &p->call[0] : NULL;
}

struct pending_call *qmp_pending_late(struct pending *p, uint64_t now_ns)
{
	for (unsigned i = 0; i < p->n; i++)
		if (p->call[i].fn && p->call[i].deadline_ns <= now_ns)
			return &p->call[i];
	return NULL;
}

uint64_t qmp_pending_deadline_ns(const struct pending *p)
{
	uint64_t first = QMP_NEVER;

	for (unsigned i = 0; i < p->n; i++)
		if (p->call[i].fn && p->call[i].deadline_ns < first)
			first = p->call[i].deadline_ns;
	return first;
}
