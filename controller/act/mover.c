/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Theory of operation: each batch is asked about first (move_pages without nodes moves nothing),
 * and only pages that are somewhere else are sent. Afterwards the same pages are asked about again,
 * and what counts as moved is what *was* elsewhere and now *is* on the target. The status that the
 * move itself returns is not enough: of a transparent huge page the first address moves all 512
 * pages, and the other 511 report "busy".
 *
 * Larger batches cost less, since every call drains the per-CPU page lists of the whole host, but
 * stall the guest's faults for longer; the budget is kept by sleeping between batches.
 */
#include "controller/act/mover.h"

#include <errno.h>
#include <numaif.h>
#include <string.h>
#include <time.h>

#define HUGE_BYTES (UINT64_C(2) << 20)
#define PASSES 2          /* the second one for pages that were busy or came meanwhile */
#define STUCK_PAGES 4096u /* so many tries with hardly a success: they are pinned */
#define STUCK_PERMILLE 20u

struct batch {
	unsigned n;
	void *page[MOVER_BATCH_MAX];
	int status[MOVER_BATCH_MAX];
	int node[MOVER_BATCH_MAX];
	unsigned n_send;
	void *send[MOVER_BATCH_MAX];
};

static const char *const failure_names[MOVE_FAILURES] = {
	[MOVE_BUSY] = "busy",
	[MOVE_NOMEM] = "no-memory",
	[MOVE_DENIED] = "denied",
	[MOVE_OTHER] = "other",
};

const char *move_failure_name(enum move_failure f)
{
	return f < MOVE_FAILURES ? failure_names[f] : "?";
}

static uint64_t real_now(void *userdata)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static void real_sleep(void *userdata, uint64_t ns)
{
	struct timespec ts = {
		.tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000)};

	nanosleep(&ts, NULL);
}

static enum move_failure failure_of(int status)
{
	switch (status) {
	case -EBUSY:
	case -EAGAIN:
		return MOVE_BUSY;
	case -ENOMEM:
		return MOVE_NOMEM;
	case -EACCES:
	case -EPERM:
		return MOVE_DENIED;
	default:
		return MOVE_OTHER;
	}
}

/* What the failure of a whole call means. */
static enum move_end end_of_errno(int err)
{
	switch (err) {
	case ESRCH:
		return MOVE_GONE;
	case EPERM:
	case EACCES:
	case ENODEV:
		return MOVE_FORBIDDEN;
	case ENOMEM:
		return MOVE_NO_ROOM;
	default:
		return MOVE_STUCK;
	}
}

static bool ask(struct mover_job *job, struct batch *b, unsigned n, void **page, int *status)
{
	if (job->ops->move_pages(job->ops->userdata, job->pid, n, page, NULL, status, 0) >= 0)
		return true;
	job->end = end_of_errno(errno);
	return false;
}

/* Moves what of the batch is elsewhere. False: the job has ended, job->end says why. */
static bool move_batch(struct mover_job *job, struct batch *b, uint64_t page_bytes)
{
	uint64_t begin, moved = 0;
	bool ok;

	if (!ask(job, b, b->n, b->page, b->status))
		return false;
	b->n_send = 0;
	for (unsigned i = 0; i < b->n; i++) {
		job->absent_pages += b->status[i] < 0;
		if (b->status[i] < 0 || (unsigned)b->status[i] == job->target)
			continue;
		b->node[b->n_send] = (int)job->target;
		b->send[b->n_send++] = b->page[i];
	}
	if (!b->n_send)
		return true;
	begin = job->now_ns(job->userdata);
	ok = job->ops->move_pages(job->ops->userdata, job->pid, b->n_send, b->send, b->node,
		     b->status, MPOL_MF_MOVE) >= 0;
	job->longest_call_ns = MAX2(job->longest_call_ns, job->now_ns(job->userdata) - begin);
	job->calls++;
	if (!ok) {
		job->end = end_of_errno(errno);
		return false;
	}
	/* reuse node[] for the answer, status[] still holds the reasons */
	if (!ask(job, b, b->n_send, b->send, b->node))
		return false;
	for (unsigned i = 0; i < b->n_send; i++) {
		if (b->node[i] >= 0 && (unsigned)b->node[i] == job->target)
			moved++;
		else if (b->node[i] >= 0)
			job->failed_pages[failure_of(b->status[i])]++;
	}
	job->moved_pages += moved;
	atomic_fetch_add(&job->moved_bytes, moved * page_bytes);
	return true;
}

static uint64_t all_failures(const struct mover_job *job)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < MOVE_FAILURES; i++)
		sum += job->failed_pages[i];
	return sum;
}

/* Between batches: may it go on, and how long must it wait for its budget? */
static bool go_on(struct mover_job *job, uint64_t begin)
{
	uint64_t tried = job->moved_pages + all_failures(job), elapsed, due;

	if (atomic_load(&job->cancel) || (job->may_go_on && !job->may_go_on(job->userdata))) {
		job->end = MOVE_STOPPED;
		return false;
	}
	if (tried >= STUCK_PAGES && job->moved_pages < tried / 1000 * STUCK_PERMILLE) {
		job->end = job->failed_pages[MOVE_NOMEM] > tried / 2 ? MOVE_NO_ROOM : MOVE_STUCK;
		return false;
	}
	if (!job->rate_bytes)
		return true;
	elapsed = job->now_ns(job->userdata) - begin;
	due = (uint64_t)((__extension__(unsigned __int128) atomic_load(&job->moved_bytes)) *
			 1000000000 / job->rate_bytes);
	if (due > elapsed)
		job->sleep_ns(job->userdata, due - elapsed);
	return true;
}

/*
 * Fills the next batch. It ends at a 2 MiB boundary where it can, since a transparent huge page
 * moves as a whole: a batch that ends within one would move pages that it does not count.
 */
static uint64_t fill_batch(const struct mover_job *job, struct batch *b,
	const struct guestram_range *range, uint64_t at, uint64_t page)
{
	for (b->n = 0; b->n < job->batch_pages && at < range->end; at += page) {
		if (b->n && at % HUGE_BYTES == 0 && (job->batch_pages - b->n) * page < HUGE_BYTES)
			break;
		b->page[b->n++] = (void *)(uintptr_t)at;
	}
	return at;
}

static bool move_range(
	struct mover_job *job, struct batch *b, const struct guestram_range *range, uint64_t begin)
{
	uint64_t page = range->page_bytes ? range->page_bytes : 4096;

	for (uint64_t at = range->start; at < range->end;) {
		if (!go_on(job, begin))
			return false;
		at = fill_batch(job, b, range, at, page);
		if (!move_batch(job, b, page))
			return false;
	}
	return true;
}

int mover_run(struct mover_job *job)
{
	_cleanup_free_ struct batch *b = calloc(1, sizeof(*b));
	uint64_t begin;

	if (!b)
		return -ENOMEM;
	if (!job->now_ns)
		job->now_ns = real_now;
	if (!job->sleep_ns)
		job->sleep_ns = real_sleep;
	if (!job->batch_pages || job->batch_pages > MOVER_BATCH_MAX)
		job->batch_pages = MOVER_BATCH_DEFAULT;
	begin = job->now_ns(job->userdata);
	job->end = MOVE_DONE;
	for (unsigned pass = 0; pass < PASSES; pass++) {
		uint64_t failed_before = all_failures(job), moved_before = job->moved_pages;

		job->absent_pages = 0;
		for (size_t i = 0; i < job->ram.n; i++)
			if (!move_range(job, b, &job->ram.range[i], begin))
				return 0;
		if (all_failures(job) == failed_before &&
			(pass || job->moved_pages == moved_before))
			break;
		if (pass + 1 < PASSES) /* only what is still elsewhere at the end has failed */
			memset(job->failed_pages, 0, sizeof(job->failed_pages));
	}
	return 0;
}

int mover_take_ranges(struct mover_job *job, const struct guestram *from)
{
	size_t n = from->n ? from->n : 1;

	job->ram = *from;
	job->ram.range = calloc(n, sizeof(*job->ram.range));
	if (!job->ram.range) {
		job->ram.n = 0;
		return -ENOMEM;
	}
	if (from->n)
		memcpy(job->ram.range, from->range, from->n * sizeof(*from->range));
	return 0;
}
