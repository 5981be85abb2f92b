/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "controller/host/schedfile.h"

#include "tests/replay/hosts.h"

#define DASHES "-------------------------------------------------------------------\n"

static struct sched_numa parse(struct tap *tap_, const char *text, const struct idset *online)
{
	struct sched_numa s = {0};

	CHECK_INT(sched_numa_parse(text, strlen(text), online, &s), 0);
	return s;
}

static struct idset ids(const char *list)
{
	struct idset s = {0};

	idset_parse_list(list, strlen(list), &s);
	return s;
}

static void sample_a_of_the_old_format(struct tap *tap_)
{
	struct idset online = ids("0-1");
	_cleanup_sched_numa_ struct sched_numa s = parse(tap_,
		"numa_migrations, 121\n"
		"numa_faults_memory, 0, 0, 0, 1, 4\n"
		"numa_faults_memory, 1, 0, 0, 1, 34\n"
		"numa_faults_memory, 0, 1, 1, 0, 1\n"
		"numa_faults_memory, 1, 1, 0, 0, 113\n",
		&online);

	REQUIRE(s.n_rows == 2);
	CHECK_INT(s.era, SCHED_ERA_3_14);
	CHECK(s.has_stats && !s.incomplete);
	CHECK_INT(s.row[0].task_shared, 4);
	CHECK_INT(s.row[0].task_private, 34);
	CHECK_INT(s.row[1].task_shared, 1);
	CHECK_INT(s.row[1].task_private, 113);
	CHECK_INT(s.preferred, 0);
	CHECK_INT(s.current, 1);
	CHECK_INT(s.pages_migrated, 121);
	CHECK(!s.has_scan_seq && !s.has_total);
}

static void oldest_format_and_other_spellings(struct tap *tap_)
{
	_cleanup_sched_numa_ struct sched_numa s = parse(tap_,
		"qemu (12, #threads: 3)\n" DASHES
		"numa_migrations                              :                    5\n"
		"numa_faults, 0, 8, 1, 0, 7, 99\n" /* one field more than we know */
		"numa_faults, 1, 8, 0, 0, 9\n"
		"numa_faults, 0, 9, 0, 1, 0\n"
		"numa_faults, 1, 9, 1, 1, 0\n",
		NULL);

	REQUIRE(s.n_rows == 2);
	CHECK_INT(s.current, 8); /* for private faults the flag speaks of the memory policy */
	CHECK_INT(s.preferred, 9);
	CHECK_INT(s.era, SCHED_ERA_3_13);
	CHECK_INT(s.row[0].node, 8);
	CHECK_INT(s.row[0].task_shared, 7);
	CHECK_INT(s.row[0].task_private, 9);
	CHECK_INT(s.pages_migrated, 5);
	CHECK_INT(s.tid, 12);
	CHECK(!s.incomplete);
}

/* Sample B is the first row of it. */
static void D44_no_statistics_is_not_zero(struct tap *tap_)
{
	_cleanup_sched_numa_ struct sched_numa s = parse(tap_,
		"numa_migrations, 0\n"
		"numa_faults_memory, 0, 0, 0, 1, -1\n"
		"numa_faults_memory, 1, 0, 0, 1, -1\n"
		"numa_faults_memory, 0, 1, 1, 0, -1\n"
		"numa_faults_memory, 1, 1, 1, 0, -1\n",
		NULL);

	CHECK(!s.has_stats);
	CHECK_INT(s.n_rows, 2);
	CHECK_INT(s.era, SCHED_ERA_3_14);
}

static void sample_c_of_eight_nodes(struct tap *tap_)
{
	struct idset online = ids("0,5");
	_cleanup_sched_numa_ struct sched_numa s = parse(tap_,
		"CPU 0/KVM (11176, #threads: 41)\n" DASHES
		"se.exec_start                                :    123.456\n"
		"mm->numa_scan_seq                            :                   61\n"
		"numa_pages_migrated                          :                  724\n"
		"numa_preferred_nid                           :                    5\n"
		"total_numa_faults                            :                 3440\n"
		"current_node=5, numa_group_id=11176\n"
		"numa_faults node=0 task_private=1 task_shared=0 group_private=1 group_shared=0\n"
		"numa_faults node=5 task_private=3427 task_shared=1 group_private=3427 "
		"group_shared=1\n",
		&online);

	REQUIRE(s.n_rows == 2);
	CHECK_INT(s.era, SCHED_ERA_4_2);
	CHECK(s.has_stats && !s.incomplete && s.has_scan_seq && s.has_total);
	CHECK_STR(s.comm, "CPU 0/KVM");
	CHECK_INT(s.tid, 11176);
	CHECK_INT(s.num_threads, 41);
	CHECK_INT(s.scan_seq, 61);
	CHECK_INT(s.total, 3440);
	CHECK_INT(s.pages_migrated, 724);
	CHECK_INT(s.preferred, 5);
	CHECK_INT(s.current, 5);
	CHECK_INT(s.group_id, 11176);
	REQUIRE(sched_numa_row(&s, 5));
	CHECK_INT(sched_numa_row(&s, 5)->task_private, 3427);
	CHECK(!sched_numa_row(&s, 1));
}

static void D40_header_with_an_odd_name(struct tap *tap_)
{
	static const struct {
		const char *text, *comm;
	} headers[] = {
		{"CPU 0/KVM (5769, #threads: 41)\n" DASHES, "CPU 0/KVM"},
		{"a (1, #threads: (5769, #threads: 41)\n" DASHES, "a (1, #threads:"},
		{"x\ny) (z (5769, #threads: 41)\n" DASHES, "x\ny) (z"},
		{"CPU 0/KVM (5769, #threads: 41)\n", "CPU 0/KVM"},
	};

	for (size_t i = 0; i < ARRAY_LEN(headers); i++) {
		_cleanup_sched_numa_ struct sched_numa s = parse(tap_, headers[i].text, NULL);

		CHECK_STR(s.comm, headers[i].comm);
		CHECK_INT(s.tid, 5769);
		CHECK_INT(s.num_threads, 41);
		CHECK_INT(s.anomalies, 0);
		CHECK_INT(s.era, SCHED_ERA_NONE);
	}
}

static void D45_a_file_cut_in_the_middle(struct tap *tap_)
{
	_cleanup_sched_numa_ struct sched_numa s = parse(tap_,
		"numa_faults node=0 task_private=12 task_shared=3 group_private=12 group_shared=3\n"
		"numa_faults node=1 task_private=400 task_sha",
		NULL);

	REQUIRE(s.n_rows == 1);
	CHECK_INT(s.row[0].task_private, 12);
	CHECK_INT(s.row[0].task_shared, 3);
	CHECK(s.incomplete);
	CHECK_INT(s.anomalies, 1);
}

static void D45_every_prefix(struct tap *tap_)
{
	_cleanup_hostfs_ struct hostfs fs = host_captured("debian13-4node");
	_cleanup_free_ char *text = NULL;
	struct idset online = ids("0-3");
	size_t len;

	REQUIRE(hostfs_read(&fs, HOST_LIMIT_SMALL, &text, &len, "proc/594/task/602/sched") == 0);
	for (size_t n = 0; n <= len; n++) {
		/* a copy of just that length: the sanitizer sees any read behind it */
		_cleanup_free_ char *cut = malloc(n ? n : 1);
		_cleanup_sched_numa_ struct sched_numa s = {0};

		memcpy(cut, text, n);
		CHECK_INT(sched_numa_parse(cut, n, &online, &s), 0);
		for (unsigned i = 0; i < s.n_rows; i++)
			CHECK_INT(s.row[i].task_private, i == 1 ? 5 : i == 3 ? 3561 : 0);
		CHECK(s.n_rows == 4 || s.incomplete || s.era == SCHED_ERA_NONE);
		CHECK_INT(n == len, s.n_rows == 4 && !s.incomplete);
	}
}

static void captured_thread(struct tap *tap_)
{
	_cleanup_hostfs_ struct hostfs fs = host_captured("debian13-4node");
	_cleanup_sched_numa_ struct sched_numa s = {0};
	struct idset online = ids("0-3");
	struct sched_numa none = {0};

	REQUIRE(sched_numa_read(&fs, 594, 602, &online, &s) == 0);
	CHECK_STR(s.comm, "CPU 0/KVM");
	CHECK_INT(s.scan_seq, 3);
	CHECK_INT(s.total, 3566);
	CHECK_INT(s.preferred, 3);
	CHECK_INT(s.group_id, 602);
	CHECK_INT(s.anomalies, 0);
	CHECK_INT(sched_numa_read(&fs, 594, 1, &online, &none), HOST_E_GONE);
}

static void D39_rows_by_id(struct tap *tap_)
{
	_cleanup_hostfs_ struct hostfs fs = host_made("gap");
	_cleanup_sched_numa_ struct sched_numa s = {0};
	struct idset online = ids("0,2"), wider = ids("0-2");
	_cleanup_sched_numa_ struct sched_numa w = {0};

	REQUIRE(sched_numa_read(&fs, 1000, 1001, &online, &s) == 0);
	CHECK_INT(s.n_rows, 2);
	CHECK(!s.incomplete);
	REQUIRE(sched_numa_row(&s, 2));
	CHECK_INT(sched_numa_row(&s, 2)->task_private, 30);
	CHECK(!sched_numa_row(&s, 1));
	REQUIRE(sched_numa_read(&fs, 1000, 1001, &wider, &w) == 0);
	CHECK(w.incomplete); /* node 1 should have a row */
}

static void odd_rows_are_skipped_and_counted(struct tap *tap_)
{
	_cleanup_sched_numa_ struct sched_numa s = parse(tap_,
		"numa_preferred_nid : -1\n"
		"current_node=1, numa_group_id=0\n"
		"numa_faults group_shared=4 group_private=3 future=1 task_shared=2 "
		"task_private=1 node=1\n"
		"numa_faults node=0 task_private=1 task_shared=1\n"
		"numa_faults node=x task_private=1 task_shared=1 group_private=1 group_shared=1\n"
		"numa_faults node=2 task_private=1 task_shared=99999999999999999999 "
		"group_private=1 group_shared=1\n"
		"numa_faults node=1 task_private=7 task_shared=2 group_private=3 group_shared=4\n"
		"numa_task_migrated : 7\n",
		NULL);

	REQUIRE(s.n_rows == 1);
	CHECK_INT(s.row[0].task_private, 7); /* the last one of two wins */
	CHECK_INT(s.anomalies, 4);
	CHECK(s.incomplete);
	CHECK_INT(s.preferred, -1);
	CHECK_INT(s.group_id, 0);
}

static void D45_cut_before_the_rows(struct tap *tap_)
{
	_cleanup_sched_numa_ struct sched_numa s =
		parse(tap_, "mm->numa_scan_seq : 61\ntotal_numa_faults : 3440\n", NULL);

	CHECK(s.incomplete && !s.has_stats);
	CHECK_INT(s.total, 3440);
}

static void no_numa_part_is_no_error(struct tap *tap_)
{
	_cleanup_sched_numa_ struct sched_numa s =
		parse(tap_, "x (1, #threads: 1)\n" DASHES "nr_switches : 3\n", NULL);

	CHECK_INT(s.era, SCHED_ERA_NONE);
	CHECK(!s.has_stats && !s.incomplete);
	CHECK_INT(s.preferred, -1);
	CHECK_INT(s.current, -1);
}

TAP_MAIN(TEST(sample_a_of_the_old_format), TEST(oldest_format_and_other_spellings),
	TEST(D44_no_statistics_is_not_zero), TEST(sample_c_of_eight_nodes),
	TEST(D40_header_with_an_odd_name), TEST(D45_a_file_cut_in_the_middle),
	TEST(D45_every_prefix), TEST(D45_cut_before_the_rows), TEST(captured_thread),
	TEST(D39_rows_by_id), TEST(odd_rows_are_skipped_and_counted),
	TEST(no_numa_part_is_no_error))
