/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "controller/host/threads.h"

#include "tests/replay/hosts.h"

#define REST                                                                                    \
	"1 593 593 0 -1 1384 25 0 91 0 9590 4185 0 0 20 0 6 0 6947 6788 586 999 1 1 0 0 0 0 0 " \
	"4096 16963 0 0 0 -1 6 0 0 0 46 0\n"

static void D40_names_that_break_parsers(struct tap *tap_)
{
	static const struct {
		const char *line, *comm;
	} lines[] = {
		{"5768 (CPU 0/KVM) S " REST, "CPU 0/KVM"},
		{"5769 (a) S 1 () S " REST, "a) S 1 ("},
		{"5770 (((sd-pam))) S " REST, "((sd-pam))"},
	};

	for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
		struct thread_stat s = {0};

		CHECK_INT(thread_stat_parse(lines[i].line, strlen(lines[i].line), &s), 0);
		CHECK_INT(s.id, 5768 + (int)i);
		CHECK_STR(s.comm, lines[i].comm);
		CHECK_INT(s.state, 'S');
		CHECK_INT(s.utime_ticks, 9590);
		CHECK_INT(s.stime_ticks, 4185);
		CHECK_INT(s.num_threads, 6);
		CHECK_INT(s.start_ticks, 6947);
		CHECK_INT(s.last_cpu, 6);
	}
}

static void stat_of_every_prefix(struct tap *tap_)
{
	static const char line[] = "5768 (CPU 0/KVM) S " REST;
	struct thread_stat s = {.id = 77};

	for (size_t n = 0; n < 60; n++)
		CHECK_INT(thread_stat_parse(line, n, &s), HOST_E_FORMAT);
	CHECK_INT(s.id, 77);
	for (size_t n = 60; n < strlen(line); n++)
		thread_stat_parse(line, n, &s);
}

static void captured_thread(struct tap *tap_)
{
	_cleanup_hostfs_ struct hostfs fs = host_captured("debian13-4node");
	struct thread_schedstat sched = {0};
	struct thread_status status = {0};
	struct thread_stat s = {0};
	char comm[16];

	CHECK_INT(thread_stat_read(&fs, 594, 602, &s), 0);
	CHECK_STR(s.comm, "CPU 0/KVM");
	CHECK_INT(s.last_cpu, 6);
	CHECK_INT(s.state, 'R');
	CHECK_INT(thread_stat_read(&fs, 594, 0, &s), 0);
	CHECK_STR(s.comm, "qemu-system-x86");
	CHECK_INT(s.start_ticks, 6852);
	CHECK_INT(thread_schedstat_read(&fs, 594, 602, &sched), 0);
	CHECK_INT(sched.run_ns, 138856943037);
	CHECK_INT(sched.wait_ns, 1603904047);
	CHECK_INT(sched.slices, 2302);
	CHECK_INT(thread_status_read(&fs, 594, 602, &status), 0);
	CHECK(status.has_cpus && status.has_mems);
	IDS(&status.cpus, "0-7");
	IDS(&status.mems, "0-3");
	CHECK_INT(thread_comm_read(&fs, 594, 602, comm, sizeof(comm)), 0);
	CHECK_STR(comm, "CPU 0/KVM");
	CHECK_INT(thread_stat_read(&fs, 594, 99999, &s), HOST_E_GONE);
}

static void threads_of_a_process(struct tap *tap_)
{
	_cleanup_hostfs_ struct hostfs fs = host_captured("debian13-4node");
	_cleanup_thread_ids_ struct thread_ids ids = {0};
	struct thread_ids none = {0};

	REQUIRE(thread_ids_read(&fs, 594, &ids) == 0);
	CHECK_INT(ids.n, 6);
	CHECK_INT(ids.tid[0], 594);
	CHECK_INT(ids.tid[5], 605);
	CHECK(thread_ids_has(&ids, 602) && !thread_ids_has(&ids, 604));
	CHECK_INT(thread_ids_read(&fs, 1, &none), HOST_E_GONE);
	CHECK(!thread_ids_has(&none, 1));
}

static void command_line_has_nuls(struct tap *tap_)
{
	_cleanup_hostfs_ struct hostfs fs = host_captured("debian13-4node");
	_cleanup_free_ char *text = NULL;
	size_t len = 0;

	REQUIRE(thread_cmdline_read(&fs, 594, &text, &len) == 0);
	CHECK_STR(text, "/usr/bin/qemu-system-x86_64");
	CHECK(len > 1000);
}

static void status_keeps_what_it_understands(struct tap *tap_)
{
	static const char odd[] = "Name:\tx\nCpus_allowed_list:\t0-x\nMems_allowed_list:\t1\n";
	static const char cut[] = "Cpus_allowed_list:\t0-1";
	struct thread_status s = {0};

	CHECK_INT(thread_status_parse(odd, strlen(odd), &s), 0);
	CHECK(!s.has_cpus && s.has_mems);
	IDS(&s.mems, "1");
	CHECK_INT(thread_status_parse(cut, strlen(cut), &s), HOST_E_FORMAT);
	CHECK_INT(thread_status_parse("", 0, &s), HOST_E_FORMAT);
}

TAP_MAIN(TEST(D40_names_that_break_parsers), TEST(stat_of_every_prefix), TEST(captured_thread),
	TEST(threads_of_a_process), TEST(command_line_has_nuls),
	TEST(status_keeps_what_it_understands))
