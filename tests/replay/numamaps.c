/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "controller/host/numamaps.h"

#include "tests/replay/hosts.h"

#define KIB (UINT64_C(1) << 10)
#define MIB (UINT64_C(1) << 20)

struct seen {
	unsigned n;
	uint64_t pages[8]; /* by node id, those below 8 */
	uint64_t bytes[8];
	struct numa_vma last;
	char path[4096]; /* of the last one */
};

static int see(const struct numa_vma *vma, void *userdata)
{
	struct seen *seen = userdata;

	seen->n++;
	seen->last = *vma;
	snprintf(seen->path, sizeof(seen->path), "%s", vma->path);
	for (unsigned i = 0; i < vma->n_counts; i++) {
		if (vma->count[i].node >= 8)
			continue;
		seen->pages[vma->count[i].node] += vma->count[i].pages;
		seen->bytes[vma->count[i].node] += vma->count[i].bytes;
	}
	return 0;
}

static struct numa_maps_result parse(struct tap *tap_, const char *text, struct seen *seen)
{
	struct numa_maps_result result = {0};

	*seen = (struct seen){0};
	CHECK_INT(numa_maps_parse(text, strlen(text), NULL, see, seen, &result), 0);
	CHECK_INT(result.lines, seen->n);
	return result;
}

static void D08_one_odd_line(struct tap *tap_)
{
	static struct seen seen;
	struct numa_maps_result result;
	char x[2001], text[4096];

	memset(x, 'x', 2000);
	x[2000] = '\0';
	snprintf(text, sizeof(text),
		"7f0000000000 default anon=1000 dirty=1000 N0=600 N1=400 kernelpagesize_kB=4\n"
		"7f1000000000 default file=/srv/%s anon=4 dirty=4 N0=4 kernelpagesize_kB=4\n"
		"7f2000000000 default file=/srv/Nightly mapped=2 N1=2 kernelpagesize_kB=4\n"
		"7f3000000000 default anon=8 dirty=8 Nx=8 kernelpagesize_kB=4\n",
		x);
	result = parse(tap_, text, &seen);
	CHECK_INT(result.lines, 3);
	CHECK_INT(result.anomalies, 1);
	CHECK_INT(seen.pages[0], 604);
	CHECK_INT(seen.pages[1], 402);
	CHECK(!result.incomplete);
}

static void D42_units_of_huge_pages(struct tap *tap_)
{
	static const struct {
		const char *line;
		uint64_t bytes;
		bool huge;
	} lines[] = {
		{"7f0000000000 default file=/dev/hugepages/a huge dirty=10 N0=10 "
		 "kernelpagesize_kB=2048\n",
			20 * MIB, true},
		{"7f0000000000 default file=/dev/hugepages/b huge dirty=10 N0=10 "
		 "kernelpagesize_kB=1048576\n",
			10240 * MIB, true},
		{"7f0000000000 default anon=5120 dirty=5120 N0=5120 kernelpagesize_kB=4\n",
			20 * MIB, false},
		{"7f0000000000 default file=/dev/hugepages/a huge dirty=10 N0=10\n", 20 * MIB,
			true},
	};
	static struct seen seen;

	for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
		parse(tap_, lines[i].line, &seen);
		CHECK_INT(seen.bytes[0], lines[i].bytes);
		CHECK_INT(seen.last.huge, lines[i].huge);
	}
}

static void D42_default_sizes_of_the_host(struct tap *tap_)
{
	static const char text[] = "7f0000000000 default file=/dev/hugepages/a huge N0=10\n"
				   "7f1000000000 default anon=3 N1=3\n";
	const struct numa_maps_units units = {.page_bytes = 64 * KIB, .huge_bytes = 16 * MIB};
	static struct seen seen;

	CHECK_INT(numa_maps_parse(text, strlen(text), &units, see, &seen, NULL), 0);
	CHECK_INT(seen.bytes[0], 160 * MIB);
	CHECK_INT(seen.bytes[1], 192 * KIB);
}

static void samples_of_the_field(struct tap *tap_)
{
	static const char text[] =
		"55eb1344d000 default file=/usr/local/bin/redis-server mapped=107 N3=107 "
		"kernelpagesize_kB=4\n"
		"00200000 default file=/opt/scylladb/libexec/scylla mapped=1492 active=619 "
		"N0=1492 kernelpagesize_kB=4\n"
		"00df7000 default file=/opt/scylladb/libexec/scylla mapped=8115 mapmax=2 "
		"active=3458 N0=8115 kernelpagesize_kB=4\n"
		"2aaaaac00000 default file=/dev/hugepages/hugepagefile huge dirty=1 N0=1\n"
		"7f7659600000 default file=/anon_hugepage\\040(deleted) anon=50 dirty=50 N0=50\n"
		"7f00c000 default file=/lib/x\n"
		"7f572c000000 default anon=262143 dirty=262143 N2=262113\n";
	static struct seen seen;
	struct numa_maps_result result = parse(tap_, text, &seen);

	CHECK_INT(result.lines, 7);
	CHECK_INT(result.anomalies, 0);
	CHECK_INT(seen.pages[3], 107);
	CHECK_INT(seen.pages[0], 1492 + 8115 + 1 + 50);
	CHECK_INT(seen.bytes[0], (1492 + 8115 + 50) * 4 * KIB + 2 * MIB);
	CHECK_INT(seen.pages[2], 262113);
	CHECK_INT(seen.last.start, 0x7f572c000000);
	CHECK_INT(seen.last.anon_pages, 262143);
}

static void policies_with_and_without_blanks(struct tap *tap_)
{
	static const struct {
		const char *policy;
		const char *nodes;
		enum numa_policy want;
		bool balancing;
	} lines[] = {
		{"default", "", NUMA_POLICY_DEFAULT, false},
		{"local", "", NUMA_POLICY_LOCAL, false},
		{"prefer:1", "1", NUMA_POLICY_PREFER, false},
		{"bind:0-1", "0-1", NUMA_POLICY_BIND, false},
		{"bind=static:0", "0", NUMA_POLICY_BIND, false},
		{"bind=static|balancing:0,2", "0,2", NUMA_POLICY_BIND, true},
		{"bind=balancing:3", "3", NUMA_POLICY_BIND, true},
		{"interleave:0-3", "0-3", NUMA_POLICY_INTERLEAVE, false},
		{"interleave=relative:0-3", "0-3", NUMA_POLICY_INTERLEAVE, false},
		{"prefer (many):0,2", "0,2", NUMA_POLICY_PREFER_MANY, false},
		{"weighted interleave:0-1", "0-1", NUMA_POLICY_WEIGHTED_INTERLEAVE, false},
		{"prefer=1", "1", NUMA_POLICY_PREFER, false},
		{"interleave={0,1}", "0-1", NUMA_POLICY_INTERLEAVE, false},
		{"bind={0/DMA,0/Normal}", "", NUMA_POLICY_BIND, false},
		{"preferential:1", "", NUMA_POLICY_UNKNOWN, false},
		{"from the future:1", "", NUMA_POLICY_UNKNOWN, false},
	};
	static struct seen seen;

	for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
		char text[256];

		snprintf(text, sizeof(text), "7f0000000000 %s anon=7 N0=7 kernelpagesize_kB=4\n",
			lines[i].policy);
		CHECK_INT(parse(tap_, text, &seen).anomalies, 0);
		CHECK_INT(seen.pages[0], 7);
		CHECK_INT(seen.last.policy, lines[i].want);
		CHECK_INT(seen.last.policy_balancing, lines[i].balancing);
		IDS(&seen.last.policy_nodes, lines[i].nodes);
	}
}

static void paths_are_decoded_and_are_no_keys(struct tap *tap_)
{
	static struct seen seen;

	parse(tap_,
		"7f0000000000 default file=/a\\040b\\011c\\012d\\075kernelpagesize_kB\\0758\\1 "
		"mapped=2 N1=2 kernelpagesize_kB=4\n",
		&seen);
	CHECK_STR(seen.path, "/a b\tc\nd=kernelpagesize_kB=8\\1");
	CHECK_INT(seen.last.kind, NUMA_VMA_FILE);
	CHECK_INT(seen.bytes[1], 8 * KIB);
	parse(tap_, "55550000 default heap anon=1 N0=1 kernelpagesize_kB=4\n", &seen);
	CHECK_INT(seen.last.kind, NUMA_VMA_HEAP);
	CHECK_STR(seen.path, "");
	parse(tap_, "7ffd0000 default stack anon=1 N0=1 kernelpagesize_kB=4\n", &seen);
	CHECK_INT(seen.last.kind, NUMA_VMA_STACK);
	parse(tap_, "7f0000000000 default file=/x heap N0=1 kernelpagesize_kB=4\n", &seen);
	CHECK_INT(seen.last.kind, NUMA_VMA_FILE);
	CHECK_STR(seen.path, "/x");
}

static void what_would_spoil_a_sum_is_skipped(struct tap *tap_)
{
	static const char *const lines[] = {
		"xyz default anon=1 N0=1\n",
		"7f0000000000\n",
		"\n",
		"7f0000000000 default N0=1 N1=\n",
		"7f0000000000 default N5000=1\n",
		"7f0000000000 default N0=99999999999999999999\n",
		"7f0000000000 default N0=18446744073709551615 kernelpagesize_kB=4\n",
		"7f0000000000 default N0=1 kernelpagesize_kB=0\n",
	};
	static struct seen seen;

	for (size_t i = 0; i < ARRAY_LEN(lines); i++)
		CHECK_INT(parse(tap_, lines[i], &seen).anomalies, 1);
}

static void a_line_that_was_cut_does_not_count(struct tap *tap_)
{
	static struct seen seen;
	struct numa_maps_result result = parse(tap_,
		"7f0000000000 default anon=5 N0=5 kernelpagesize_kB=4\n"
		"7f1000000000 default anon=900 N0=9",
		&seen);

	CHECK(result.incomplete);
	CHECK_INT(result.anomalies, 1);
	CHECK_INT(seen.pages[0], 5);
}

static int stop(const struct numa_vma *vma, void *userdata)
{
	(void)vma;
	++*(int *)userdata;
	return HOST_E_NOT_FOUND;
}

static void captured_process(struct tap *tap_)
{
	_cleanup_hostfs_ struct hostfs fs = host_captured("debian13-4node");
	struct numa_maps_result result = {0};
	static struct seen seen;
	int calls = 0;

	CHECK_INT(numa_maps_read(&fs, 594, NULL, see, &seen, &result), 0);
	CHECK_INT(result.anomalies, 0);
	CHECK(result.lines > 300);
	CHECK_INT(numa_maps_read(&fs, 594, NULL, stop, &calls, NULL), HOST_E_NOT_FOUND);
	CHECK_INT(calls, 1);
	CHECK_INT(numa_maps_read(&fs, 1, NULL, stop, &calls, NULL), HOST_E_GONE);
	CHECK_INT(numa_maps_parse("", 0, NULL, stop, &calls, NULL), HOST_E_NOT_FOUND);
}

static void D39_counts_are_by_id(struct tap *tap_)
{
	_cleanup_hostfs_ struct hostfs fs = host_made("gap");
	static struct seen seen;

	CHECK_INT(numa_maps_read(&fs, 1000, NULL, see, &seen, NULL), 0);
	CHECK_INT(seen.pages[0], 10);
	CHECK_INT(seen.pages[1], 0);
	CHECK_INT(seen.pages[2], 30);
}

TAP_MAIN(TEST(D08_one_odd_line), TEST(D42_units_of_huge_pages), TEST(D42_default_sizes_of_the_host),
	TEST(samples_of_the_field), TEST(policies_with_and_without_blanks),
	TEST(paths_are_decoded_and_are_no_keys), TEST(what_would_spoil_a_sum_is_skipped),
	TEST(a_line_that_was_cut_does_not_count), TEST(captured_process),
	TEST(D39_counts_are_by_id))
