/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "controller/act/affinity.h"

#include <errno.h>
#include <sched.h>
#include <unistd.h>

#include "controller/host/threads.h"
#include "tests/replay/hosts.h"

static int refuse(pid_t tid, size_t size, const void *mask)
{
	errno = tid == 603 ? EINVAL : ESRCH;
	return -1;
}

static struct idset seen; /* what set() was given */

static int note(pid_t tid, size_t size, const void *mask)
{
	memcpy(seen.word, mask, MIN2(size, sizeof(seen.word)));
	return 0;
}

static int forbidden(pid_t tid, size_t size, const void *mask)
{
	abort();
}

static void our_own_thread_is_pinned(struct tap *tap_)
{
	_cleanup_hostfs_ struct hostfs fs = {.fd = -1};
	struct affinity_thread me = {.pid = getpid(), .tid = getpid()};
	char why[SNAPSHOT_TEXT_MAX] = "";
	struct thread_stat st;
	struct idset one = {0};
	cpu_set_t before, now;
	unsigned cpu = 0;

	REQUIRE(hostfs_open(&fs, "/") == 0);
	REQUIRE(thread_stat_read(&fs, me.pid, 0, &st) == 0);
	me.start_ticks = st.start_ticks;
	sched_getaffinity(0, sizeof(before), &before);
	while (!CPU_ISSET(cpu, &before))
		cpu++;
	idset_add(&one, cpu);
	CHECK_INT(affinity_set(&fs, affinity_kernel, &me, &one, why), 0);
	sched_getaffinity(0, sizeof(now), &now);
	CHECK_INT(CPU_COUNT(&now), 1);
	CHECK(CPU_ISSET(cpu, &now));
	sched_setaffinity(0, sizeof(before), &before);
}

static void another_process_of_the_same_number_is_left_alone(struct tap *tap_)
{
	_cleanup_hostfs_ struct hostfs fs = host_captured("debian13-4node");
	struct affinity_thread t = {.pid = 594, .tid = 602, .start_ticks = 1};
	struct idset cpus = {0};
	char why[SNAPSHOT_TEXT_MAX] = "";
	struct thread_stat st;

	CHECK_INT(affinity_set(&fs, forbidden, &t, &cpus, why), AFFINITY_E_GONE);
	REQUIRE(thread_stat_read(&fs, 594, 0, &st) == 0);
	t.start_ticks = st.start_ticks;
	t.tid = 624; /* a thread of another VM */
	CHECK_INT(affinity_set(&fs, forbidden, &t, &cpus, why), AFFINITY_E_GONE);
	CHECK_STR(why, "thread 624 has ended");
}

static void what_the_kernel_says_is_passed_on(struct tap *tap_)
{
	_cleanup_hostfs_ struct hostfs fs = host_captured("debian13-4node");
	struct affinity_thread t = {.pid = 594, .tid = 602};
	struct idset cpus = {0};
	char why[SNAPSHOT_TEXT_MAX] = "";
	struct thread_stat st;

	REQUIRE(thread_stat_read(&fs, 594, 0, &st) == 0);
	t.start_ticks = st.start_ticks;
	CHECK_INT(affinity_set(&fs, refuse, &t, &cpus, why), AFFINITY_E_GONE);
	idset_add(&cpus, 3);
	idset_add(&cpus, 70);
	CHECK_INT(affinity_set(&fs, note, &t, &cpus, why), 0);
	CHECK(idset_equal(&seen, &cpus));
	t.tid = 603;
	CHECK_INT(affinity_set(&fs, refuse, &t, &cpus, why), AFFINITY_E_REFUSED);
	CHECK_STR(why, "sched_setaffinity: Invalid argument");
}

TAP_MAIN(TEST(our_own_thread_is_pinned), TEST(another_process_of_the_same_number_is_left_alone),
	TEST(what_the_kernel_says_is_passed_on))
