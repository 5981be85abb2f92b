/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The guest's pure parts, on the host: command line, phase schedule, choice of pages, layout. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmdline.h"
#include "layout.h"
#include "pattern.h"

static unsigned int checks, failures;

static void check(bool good, const char *name)
{
	checks++;
	if (!good)
		failures++;
	printf("%sok %u - %s\n", good ? "" : "not ", checks, name);
}

struct result {
	int r;
	struct config config;
	char messages[4096];
};

static struct result parse(const char *line, uint32_t vcpus)
{
	struct result result;
	struct text text;

	memset(&result, 0, sizeof(result));
	memset(&result.config, 0x5a, sizeof(result.config));
	text_init(&text, result.messages, sizeof(result.messages));
	result.r = cmdline_parse(line, vcpus, &result.config, &text);
	return result;
}

static bool is_untouched(const struct config *config)
{
	const unsigned char *bytes = (const unsigned char *)config;
	size_t i;

	for (i = 0; i < sizeof(*config); i++) {
		if (bytes[i] != 0x5a)
			return false;
	}
	return true;
}

static void test_defaults(void)
{
	struct result got = parse("", 2);
	struct vcpu_touch touch = pattern_vcpu_touch(&got.config, 0, 1);

	check(got.r == 0 && got.messages[0] == '\0', "an empty command line is fine");
	check(got.config.private_mib == 16 && got.config.shared_mib == 16 &&
			got.config.report_ms == 2000 && got.config.seed == 1 &&
			got.config.stages_n == 1,
		"defaults of the sizes, the report and the seed");
	check(touch.shared_permille == 0 && touch.write_permille == 500 && touch.burst == 512 &&
			touch.pause_us == 16000 && touch.rotate == 0,
		"defaults of the touches");
}

static void test_keys(void)
{
	struct result got = parse("  private_mib=32\tshared_mib=8 shared_permille=100 "
				  "write_permille=1000 burst=64 pause_us=10000 report_ms=500 "
				  "seed=18446744073709551615 rotate=3 \n",
		4);
	struct vcpu_touch touch = pattern_vcpu_touch(&got.config, 0, 0);

	check(got.r == 0 && got.messages[0] == '\0', "all keys are taken");
	check(got.config.private_mib == 32 && got.config.shared_mib == 8 &&
			got.config.report_ms == 500 && got.config.seed == UINT64_MAX,
		"values of the whole guest");
	check(touch.shared_permille == 100 && touch.write_permille == 1000 && touch.burst == 64 &&
			touch.pause_us == 10000 && touch.rotate == 3,
		"values of the touches");
	got = parse("report_ms=0", 1);
	check(got.r == 0 && got.config.report_ms == 0, "report_ms=0 switches reports off");
	got = parse("burst=1 burst=2", 1);
	check(got.r == 0 && got.config.stages[0].params.burst == 2, "the later token holds");
}

static void test_patterns(void)
{
	struct result got = parse("pattern=shared", 2);

	check(got.r == 0 && pattern_vcpu_touch(&got.config, 0, 0).shared_permille == 1000,
		"pattern=shared");
	got = parse("pattern=mixed", 2);
	check(got.r == 0 && pattern_vcpu_touch(&got.config, 0, 0).shared_permille == 300,
		"pattern=mixed");
	got = parse("pattern=shared shared_permille=900", 2);
	check(got.r == 0 && pattern_vcpu_touch(&got.config, 0, 0).shared_permille == 900,
		"a later token overrides the pattern");
	got = parse("shared_permille=900 burst=7 pattern=private", 2);
	check(got.r == 0 && pattern_vcpu_touch(&got.config, 0, 0).shared_permille == 0 &&
			pattern_vcpu_touch(&got.config, 0, 0).burst == 7,
		"the pattern overrides an earlier token of its own, and no other");
	got = parse("pattern=idle", 2);
	check(got.r == 0 && pattern_vcpu_touch(&got.config, 0, 0).burst == 0 &&
			pattern_vcpu_touch(&got.config, 0, 0).pause_us == 1000000,
		"pattern=idle touches nothing and sleeps long");
	got = parse("pattern=idle burst=5", 2);
	check(got.r == 0 && pattern_vcpu_touch(&got.config, 0, 0).burst == 5 &&
			pattern_vcpu_touch(&got.config, 0, 0).pause_us == 16000,
		"a burst ends idling");
	got = parse("pattern=idle vcpu1.burst=64", 2);
	check(got.r == 0 && pattern_vcpu_touch(&got.config, 0, 0).burst == 0 &&
			pattern_vcpu_touch(&got.config, 0, 1).burst == 64 &&
			pattern_vcpu_touch(&got.config, 0, 1).pause_us == 16000,
		"one vCPU works while the others idle");
	got = parse("pattern=phase", 2);
	check(got.r == 0 && got.config.stages_n == 2 && got.config.stages[1].at_ms == 20000 &&
			got.config.stages[1].params.rotate == 1 &&
			got.config.stages[0].params.rotate == 0,
		"pattern=phase rotates at 20 s");
	got = parse("phase=5:burst=1 pattern=phase", 2);
	check(got.r == 0 && got.config.stages_n == 2 && got.config.stages[1].at_ms == 5000 &&
			got.config.stages[1].params.rotate == 0,
		"pattern=phase with a phase given has that one only");
}

static void test_overrides(void)
{
	struct result got = parse("vcpu1.burst=9 vcpu1.pause_us=70000 vcpu0.shared_permille=250 "
				  "phase=1:burst=3,shared_permille=40",
		2);
	struct vcpu_touch first = pattern_vcpu_touch(&got.config, 0, 0);
	struct vcpu_touch second = pattern_vcpu_touch(&got.config, 1, 1);

	check(got.r == 0 && first.burst == 512 && first.shared_permille == 250,
		"an override holds for its vCPU");
	check(second.burst == 9 && second.pause_us == 70000 && second.shared_permille == 40,
		"an override holds in a phase too");
}

static void test_phases(void)
{
	struct result got = parse("phase=2.5:rotate=1,burst=10 phase=4:pattern=shared "
				  "phase=6:pattern=idle phase=8:pattern=mixed pause_us=9000",
		2);
	struct vcpu_touch touch;

	check(got.r == 0 && got.config.stages_n == 5 && got.config.stages[1].at_ms == 2500 &&
			got.config.stages[4].at_ms == 8000,
		"phases stand in their order");
	touch = pattern_vcpu_touch(&got.config, 1, 0);
	check(touch.rotate == 1 && touch.burst == 10 && touch.pause_us == 9000,
		"a phase starts from the base parameters, wherever those stand");
	touch = pattern_vcpu_touch(&got.config, 2, 0);
	check(touch.rotate == 1 && touch.burst == 10 && touch.shared_permille == 1000,
		"a phase starts from the phase before it");
	touch = pattern_vcpu_touch(&got.config, 4, 0);
	check(touch.burst == 10 && touch.pause_us == 9000 && touch.shared_permille == 300,
		"after idling the old pace comes back");
	check(pattern_stage_at(&got.config, 0) == 0 && pattern_stage_at(&got.config, 2499) == 0 &&
			pattern_stage_at(&got.config, 2500) == 1 &&
			pattern_stage_at(&got.config, 7999) == 3 &&
			pattern_stage_at(&got.config, 8000) == 4 &&
			pattern_stage_at(&got.config, UINT64_MAX) == 4,
		"each moment has its stage");
	got = parse("phase=1:foo=2,burst=3", 2);
	check(got.r == 0 && got.config.stages[1].params.burst == 3 &&
			strcmp(got.messages,
				"numaherd-guest: warning: foo=2 is unknown in a phase, ignored\n") ==
				0,
		"an unknown key in a phase is a warning");
}

static void test_unknown(void)
{
	struct result got = parse("console=ttyS0 quiet burst=4 vcpu1.speed=3", 2);

	check(got.r == 0 && got.config.stages[0].params.burst == 4, "unknown keys are ignored");
	check(strcmp(got.messages,
		      "numaherd-guest: warning: console=ttyS0 is unknown, ignored\n"
		      "numaherd-guest: warning: quiet is no known key=value, ignored\n"
		      "numaherd-guest: warning: vcpu1.speed=3 is unknown, ignored\n") == 0,
		"each has its warning");
	got = parse("a\x01\xff=\x7f", 2);
	check(got.r == 0 && strstr(got.messages, "warning: a?\?=? is unknown") != NULL,
		"what cannot be printed is not printed");
}

static void test_bad(void)
{
	static const struct {
		const char *line;
		const char *says; /* part of the error */
	} bad[] = {
		{"burst=", "burst=: burst is not a whole number, allowed are 0 to 1000000"},
		{"burst", "burst: burst is not a whole number"},
		{"burst=abc", "burst=abc: burst is not a whole number"},
		{"burst=-1", "not a whole number"},
		{"burst=0x10", "not a whole number"},
		{"burst=1.5", "not a whole number"},
		{"burst=1=2", "not a whole number"},
		{"burst=1000001", "burst is out of range, allowed are 0 to 1000000"},
		{"burst=99999999999999999999999", "not a whole number"},
		{"pause_us=49", "pause_us is out of range, allowed are 50 to 10000000"},
		{"pause_us=0", "out of range"},
		{"shared_permille=1001", "allowed are 0 to 1000"},
		{"write_permille=1001", "allowed are 0 to 1000"},
		{"private_mib=3073", "allowed are 0 to 3072"},
		{"shared_mib=4294967296", "allowed are 0 to 3072"},
		{"report_ms=99", "allowed are 100 to 3600000"},
		{"seed=18446744073709551616", "seed is not a whole number"},
		{"rotate=1025", "allowed are 0 to 1024"},
		{"pattern=", "allowed are private, shared, mixed, idle, phase"},
		{"pattern=Private", "no such pattern"},
		{"pattern=sharedx", "no such pattern"},
		{"pattern=share", "no such pattern"},
		{"vcpu2.burst=1", "vcpu2.burst=1: no such vCPU, allowed are vcpu0 to vcpu1"},
		{"vcpu18446744073709551615.burst=1", "no such vCPU"},
		{"vcpu1.burst=x", "vcpu1.burst=x: burst is not a whole number"},
		{"vcpu1.pause_us=1", "pause_us is out of range"},
		{"vcpu1.shared_permille=2000", "out of range"},
		{"phase=", "no such time"},
		{"phase", "no such time"},
		{"phase=20", "changes nothing"},
		{"phase=20:", "changes nothing"},
		{"phase=x:burst=1", "no such time"},
		{"phase=-1:burst=1", "no such time"},
		{"phase=1.:burst=1", "no such time"},
		{"phase=1.2345:burst=1", "no such time"},
		{"phase=1000001:burst=1", "no such time"},
		{"phase=1:burst=y", "phase=1:burst=y: burst is not a whole number"},
		{"phase=1:burst", "not a whole number"},
		{"phase=1:pattern=phase", "allowed are private, shared, mixed, idle"},
		{"phase=2:burst=1 phase=2:burst=2", "ascending order"},
		{"phase=2:burst=1 phase=1:burst=2", "ascending order"},
		{"shared_mib=0 pattern=mixed", "shared_mib=0: there are touches"},
		{"shared_mib=0 phase=1:pattern=shared", "shared_mib=0: there are touches"},
		{"shared_mib=0 vcpu1.shared_permille=1", "shared_mib=0: there are touches"},
		{"private_mib=0", "private_mib=0: there are touches"},
	};
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct result got = parse(bad[i].line, 2);
		const char *line = strstr(got.messages, "numaherd-guest: error: ");
		char name[128];
		bool good;

		good = got.r == CMDLINE_E_BAD && is_untouched(&got.config) && line != NULL &&
		       strstr(line, bad[i].says) != NULL && strchr(line, '\n') != NULL &&
		       strchr(line, '\n')[1] == '\0';
		snprintf(name, sizeof(name), "refused: %s", bad[i].line);
		check(good, name);
		if (!good)
			printf("# %d %s\n", got.r, got.messages);
	}
}

static void test_limits(void)
{
	static char line[8192];
	struct result got;
	size_t length = 0;
	int i;

	for (i = 1; i <= GUEST_PHASES_MAX; i++)
		length += (size_t)snprintf(
			line + length, sizeof(line) - length, "phase=%d:burst=1 ", i);
	got = parse(line, 2);
	check(got.r == 0 && got.config.stages_n == GUEST_STAGES_MAX, "32 phases");
	snprintf(line + length, sizeof(line) - length, "phase=%d:burst=1", i);
	got = parse(line, 2);
	check(got.r == CMDLINE_E_BAD && strstr(got.messages, "more than 32 phases") != NULL,
		"a 33rd phase is refused");

	memset(line, ' ', sizeof(line));
	line[CMDLINE_LENGTH_MAX] = '\0';
	check(parse(line, 2).r == 0, "a command line of 4095 characters");
	line[CMDLINE_LENGTH_MAX] = ' ';
	line[CMDLINE_LENGTH_MAX + 1] = '\0';
	got = parse(line, 2);
	check(got.r == CMDLINE_E_BAD && strstr(got.messages, "longer than the 4095") != NULL,
		"one of 4096 is refused");

	memset(line, 'x', 1000);
	line[1000] = '\0';
	got = parse(line, 2);
	check(got.r == 0 && strlen(got.messages) < 200, "a long token is cut in the message");

	got = parse("shared_mib=0 vcpu63.burst=1", GUEST_VCPUS_MAX);
	check(got.r == 0 && pattern_vcpu_touch(&got.config, 0, 63).burst == 1, "64 vCPUs");
	got = parse("private_mib=0 shared_mib=0 pattern=idle", 2);
	check(got.r == 0, "who touches nothing needs no regions");
}

/* Whatever comes, it is refused or taken, within the buffers; a sanitizer watches. */
static void test_noise(void)
{
	static const char alphabet[] = "vcpu10.=:,phase burst patern_mixdl\t";
	struct pattern_random random;
	bool good = true;
	int round;

	pattern_random_init(&random, 42, 0);
	for (round = 0; round < 20000 && good; round++) {
		char line[80];
		size_t length = pattern_random_next(&random) % (sizeof(line) - 1), i;
		struct result got;

		for (i = 0; i < length; i++)
			line[i] = alphabet[(pattern_random_next(&random) >> 33) %
					   (sizeof(alphabet) - 1)];
		line[length] = '\0';
		got = parse(line, 2);
		good = got.r == 0 || (got.r == CMDLINE_E_BAD && is_untouched(&got.config));
	}
	check(good, "20000 lines of noise");
}

static bool is_about(uint64_t value, uint64_t expected, uint64_t tolerance)
{
	return value + tolerance >= expected && value <= expected + tolerance;
}

static void test_pick(void)
{
	enum {
		TOUCHES = 100000,
		PRIVATE_PAGES = 100,
		SHARED_PAGES = 37
	};
	struct vcpu_touch how = {.shared_permille = 300, .write_permille = 250};
	static uint64_t pages[PRIVATE_PAGES], words[PATTERN_PAGE_WORDS];
	uint64_t shared = 0, writes = 0, shared_writes = 0;
	struct pattern_random random;
	bool inside = true, even = true;
	int i;

	pattern_random_init(&random, 1, 0);
	for (i = 0; i < TOUCHES; i++) {
		struct touch touch = pattern_pick(&random, &how, PRIVATE_PAGES, SHARED_PAGES);

		if (touch.page >= (touch.shared ? SHARED_PAGES : PRIVATE_PAGES) ||
			touch.word >= PATTERN_PAGE_WORDS) {
			inside = false;
			break;
		}
		shared += touch.shared;
		writes += touch.write;
		shared_writes += touch.shared && touch.write;
		if (!touch.shared)
			pages[touch.page]++;
		words[touch.word]++;
	}
	check(inside, "touches stay in their region");
	check(is_about(shared, 30000, 600), "the share of the shared region is that asked for");
	check(is_about(writes, 25000, 600), "the share of writes is that asked for");
	check(is_about(shared_writes, 7500, 400), "the two do not depend on each other");
	for (i = 0; i < PRIVATE_PAGES; i++)
		even = even && is_about(pages[i], 700, 140);
	for (i = 0; i < PATTERN_PAGE_WORDS; i++)
		even = even && is_about(words[i], TOUCHES / PATTERN_PAGE_WORDS, 80);
	check(even, "all pages and words get their share");

	how.shared_permille = 0;
	for (i = 0, shared = 0; i < TOUCHES; i++)
		shared += pattern_pick(&random, &how, 10, 0).shared;
	check(shared == 0, "shared_permille=0 is never");
	how.shared_permille = 1000;
	for (i = 0, shared = 0; i < TOUCHES; i++)
		shared += pattern_pick(&random, &how, 0, 10).shared;
	check(shared == TOUCHES, "shared_permille=1000 is always");
}

static void test_random(void)
{
	struct pattern_random a, b, c;
	uint64_t first;

	pattern_random_init(&a, 7, 0);
	pattern_random_init(&b, 7, 0);
	pattern_random_init(&c, 7, 1);
	first = pattern_random_next(&a);
	check(first == pattern_random_next(&b), "the same seed gives the same run");
	check(first != pattern_random_next(&c), "vCPUs differ");
	pattern_random_init(&c, 8, 0);
	check(first != pattern_random_next(&c), "seeds differ");
	pattern_random_init(&a, (uint64_t)0 - 0x9e3779b97f4a7c15u, 0);
	check(pattern_random_next(&a) != 0, "no seed stops the generator");
	check(pattern_private_region(0, 1, 2) == 1 && pattern_private_region(1, 1, 2) == 0 &&
			pattern_private_region(3, 1024, 5) == 2,
		"rotation goes round");
}

static void test_layout(void)
{
	static const struct ram_range ram[] = {
		{0, 0x9fc00}, {0x100000, (128 * LAYOUT_MIB) - 0x100000}};
	struct result got = parse("private_mib=3 shared_mib=16", 2);
	struct layout layout;
	char chars[512];
	struct text text;

	layout_place(&got.config, 2, &layout);
	check(layout.regions[0].start == 0x1000000 && layout.regions[0].bytes == 3 * LAYOUT_MIB &&
			layout.regions[1].start == 0x1400000 &&
			layout.regions[2].start == 0x1800000 && layout.end == 0x2800000,
		"regions follow each other, at 2 MiB boundaries");
	text_init(&text, chars, sizeof(chars));
	check(layout_check(&layout, ram, 2, &text) == 0 && text.length == 0, "they fit");

	got = parse("private_mib=56 shared_mib=0", 2);
	layout_place(&got.config, 2, &layout);
	check(layout_check(&layout, ram, 2, &text) == 0, "they fit to the last byte");
	got = parse("private_mib=56 shared_mib=1 ", 2);
	layout_place(&got.config, 2, &layout);
	check(layout_check(&layout, ram, 2, &text) == LAYOUT_E_NO_ROOM &&
			strcmp(chars,
				"numaherd-guest: error: private_mib, shared_mib: the regions of 2 "
				"vCPUs end at 0x8100000, allowed is up to 0x8000000 with this much "
				"memory\n") == 0,
		"one more MiB does not");
	text_init(&text, chars, sizeof(chars));
	check(layout_check(&layout, ram, 1, &text) == LAYOUT_E_NO_ROOM, "no memory, no room");

	text_init(&text, chars, 4);
	text_add(&text, "abcdef");
	check(text.cut && strcmp(chars, "abc") == 0, "a text that does not fit is cut");
}

int main(void)
{
	test_defaults();
	test_keys();
	test_patterns();
	test_overrides();
	test_phases();
	test_unknown();
	test_bad();
	test_limits();
	test_noise();
	test_pick();
	test_random();
	test_layout();
	printf("1..%u\n", checks);
	return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
