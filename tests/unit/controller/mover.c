/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <numaif.h>

#include "controller/act/mover.h"
#include "tests/tap.h"

#define PAGES 10000u
#define BASE UINT64_C(0x7f0000000000)

/* A kernel that does as it is told: pages of one range, each somewhere, some of them stuck. */
struct fake {
	int node[PAGES]; /* -1: absent */
	bool busy[PAGES];
	unsigned thp;   /* >1: moving one page of a block moves all, the others report busy */
	int call_errno; /* of the moving call */
	int page_error; /* status of every page that should move */
	unsigned moves, longest;
	uint64_t clock, slept;
	unsigned stop_after;
	struct mover_job *job;
};

static long fake_move_pages(void *userdata, pid_t pid, unsigned long count, void **pages,
	const int *nodes, int *status, int flags)
{
	struct fake *f = userdata;

	if (!nodes) {
		for (unsigned long i = 0; i < count; i++) {
			unsigned p = (unsigned)(((uintptr_t)pages[i] - BASE) / 4096);

			status[i] = f->node[p] < 0 ? -ENOENT : f->node[p];
		}
		return 0;
	}
	f->moves++;
	f->longest = MAX2(f->longest, (unsigned)count);
	f->clock += 1000000;
	if (f->call_errno) {
		errno = f->call_errno;
		return -1;
	}
	for (unsigned long i = 0, done = PAGES; i < count; i++) {
		unsigned p = (unsigned)(((uintptr_t)pages[i] - BASE) / 4096);
		unsigned block = f->thp > 1 ? p / f->thp * f->thp : p;

		if (f->page_error) {
			status[i] = f->page_error;
		} else if (f->busy[p] || (f->thp > 1 && block == done)) {
			status[i] = -EBUSY;
		} else {
			for (unsigned k = block; k < block + MAX2(f->thp, 1u) && k < PAGES; k++)
				if (f->node[k] >= 0)
					f->node[k] = nodes[i];
			status[i] = nodes[i];
			done = block;
		}
	}
	return 0;
}

static uint64_t fake_now(void *userdata)
{
	return ((struct fake *)userdata)->clock;
}

static void fake_sleep(void *userdata, uint64_t ns)
{
	struct fake *f = userdata;

	f->clock += ns;
	f->slept += ns;
}

static bool fake_go_on(void *userdata)
{
	struct fake *f = userdata;

	return !f->stop_after || f->moves < f->stop_after;
}

static struct fake *setup(struct mover_job *job, struct guestram_range *range)
{
	struct fake *f = calloc(1, sizeof(*f));
	struct page_ops *ops = calloc(1, sizeof(*ops));

	*range = (struct guestram_range){
		.start = BASE, .end = BASE + PAGES * 4096, .page_bytes = 4096};
	*ops = (struct page_ops){.move_pages = fake_move_pages, .userdata = f};
	memset(job, 0, sizeof(*job));
	job->ops = ops;
	job->pid = 1;
	job->ram = (struct guestram){.n = 1, .range = range};
	job->target = 2;
	job->batch_pages = 1000;
	job->now_ns = fake_now;
	job->sleep_ns = fake_sleep;
	job->may_go_on = fake_go_on;
	job->userdata = f;
	f->job = job;
	return f;
}

static void release(struct mover_job *job, struct fake *f)
{
	free((void *)job->ops);
	free(f);
}

static void moves_what_is_elsewhere_and_nothing_else(struct tap *tap_)
{
	struct guestram_range range;
	struct mover_job job;
	struct fake *f = setup(&job, &range);

	for (unsigned i = 0; i < PAGES; i++)
		f->node[i] = i % 10 == 0 ? -1 : i % 2 ? 2 : 0;
	CHECK_INT(mover_run(&job), 0);
	CHECK_INT(job.end, MOVE_DONE);
	CHECK_INT(job.moved_pages, 4000);
	CHECK_INT(job.absent_pages, 1000);
	CHECK_INT(atomic_load(&job.moved_bytes), 4000 * 4096);
	CHECK(f->longest <= 1000);
	for (unsigned i = 0; i < PAGES; i++)
		CHECK_INT(f->node[i], i % 10 == 0 ? -1 : 2);
	release(&job, f);
}

static void huge_pages_move_by_one_address(struct tap *tap_)
{
	struct guestram_range range;
	struct mover_job job;
	struct fake *f = setup(&job, &range);

	f->thp = 512;
	CHECK_INT(mover_run(&job), 0);
	CHECK_INT(job.end, MOVE_DONE);
	CHECK_INT(job.moved_pages, PAGES);
	CHECK_INT(job.failed_pages[MOVE_BUSY], 0);
	release(&job, f);
}

static void busy_pages_are_counted_not_retried_hot(struct tap *tap_)
{
	struct guestram_range range;
	struct mover_job job;
	struct fake *f = setup(&job, &range);

	for (unsigned i = 0; i < 88; i++)
		f->busy[i * 100] = true;
	CHECK_INT(mover_run(&job), 0);
	CHECK_INT(job.end, MOVE_DONE);
	CHECK_INT(job.moved_pages, PAGES - 88);
	CHECK_INT(job.failed_pages[MOVE_BUSY], 88);
	CHECK(f->moves <= 40); /* two passes */
	release(&job, f);
}

static void pinned_memory_ends_the_attempt_D04(struct tap *tap_)
{
	struct guestram_range range;
	struct mover_job job;
	struct fake *f = setup(&job, &range);

	f->page_error = -EBUSY;
	CHECK_INT(mover_run(&job), 0);
	CHECK_INT(job.end, MOVE_STUCK);
	CHECK_INT(job.moved_pages, 0);
	CHECK(f->moves < PAGES / 512);
	release(&job, f);
}

static void no_permission_D21(struct tap *tap_)
{
	struct guestram_range range;
	struct mover_job job;
	struct fake *f = setup(&job, &range);

	f->call_errno = EPERM;
	CHECK_INT(mover_run(&job), 0);
	CHECK_INT(job.end, MOVE_FORBIDDEN);
	CHECK_INT(f->moves, 1);
	release(&job, f);
}

static void a_vanished_process_ends_it(struct tap *tap_)
{
	struct guestram_range range;
	struct mover_job job;
	struct fake *f = setup(&job, &range);

	f->call_errno = ESRCH;
	CHECK_INT(mover_run(&job), 0);
	CHECK_INT(job.end, MOVE_GONE);
	release(&job, f);
}

static void a_full_node_ends_it(struct tap *tap_)
{
	struct guestram_range range;
	struct mover_job job;
	struct fake *f = setup(&job, &range);

	f->page_error = -ENOMEM;
	CHECK_INT(mover_run(&job), 0);
	CHECK_INT(job.end, MOVE_NO_ROOM);
	release(&job, f);
}

static void stops_when_told(struct tap *tap_)
{
	struct guestram_range range;
	struct mover_job job;
	struct fake *f = setup(&job, &range);

	f->stop_after = 3;
	CHECK_INT(mover_run(&job), 0);
	CHECK_INT(job.end, MOVE_STOPPED);
	CHECK_INT(job.moved_pages, 3 * 512);
	release(&job, f);
	f = setup(&job, &range);
	atomic_store(&job.cancel, true);
	CHECK_INT(mover_run(&job), 0);
	CHECK_INT(job.end, MOVE_STOPPED);
	CHECK_INT(job.moved_pages, 0);
	release(&job, f);
}

static void keeps_its_budget(struct tap *tap_)
{
	struct guestram_range range;
	struct mover_job job;
	struct fake *f = setup(&job, &range);

	job.rate_bytes = 10 << 20; /* 10 MiB a second for 39 MiB */
	CHECK_INT(mover_run(&job), 0);
	CHECK_INT(job.moved_pages, PAGES);
	CHECK(f->slept > UINT64_C(3400000000) && f->slept < UINT64_C(4000000000));
	release(&job, f);
}

TAP_MAIN(TEST(moves_what_is_elsewhere_and_nothing_else), TEST(huge_pages_move_by_one_address),
	TEST(busy_pages_are_counted_not_retried_hot), TEST(pinned_memory_ends_the_attempt_D04),
	TEST(no_permission_D21), TEST(a_vanished_process_ends_it), TEST(a_full_node_ends_it),
	TEST(stops_when_told), TEST(keeps_its_budget))
