/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "controller/host/parse.h"

#include "tests/tap.h"

static struct text t(const char *s)
{
	return text_of(s, strlen(s));
}

static void lines_and_what_was_cut(struct tap *tap_)
{
	struct text rest = t("one\n\nthree"), line;
	bool ended;

	CHECK(text_line(&rest, &line, &ended) && ended && text_equal(line, "one"));
	CHECK(text_line(&rest, &line, &ended) && ended && text_equal(line, ""));
	CHECK(text_line(&rest, &line, &ended) && !ended && text_equal(line, "three"));
	CHECK(!text_line(&rest, &line, &ended));
}

static void words_and_pieces(struct tap *tap_)
{
	struct text rest = t("  a\t b "), piece, before, behind;

	CHECK(text_word(&rest, &piece) && text_equal(piece, "a"));
	CHECK(text_word(&rest, &piece) && text_equal(piece, "b"));
	CHECK(!text_word(&rest, &piece));
	rest = t("x,,y");
	CHECK(text_split(&rest, ',', &piece) && text_equal(piece, "x"));
	CHECK(text_split(&rest, ',', &piece) && text_equal(piece, ""));
	CHECK(text_split(&rest, ',', &piece) && text_equal(piece, "y"));
	CHECK(!text_split(&rest, ',', &piece));
	CHECK(text_cut(t("k=v=w"), '=', &before, &behind));
	CHECK(text_equal(before, "k") && text_equal(behind, "v=w"));
	CHECK(!text_cut(t("kv"), '=', &before, &behind));
	CHECK(text_equal(text_trim(t(" \t a b\r\n")), "a b"));
	CHECK(text_equal(text_trim(t(" \n")), ""));
}

static void copies_are_cut_and_ended(struct tap *tap_)
{
	char buf[4];

	CHECK_STR(text_copy(t("abcdef"), buf, sizeof(buf)), "abc");
	CHECK_STR(text_copy(text_of("a\0b", 3), buf, sizeof(buf)), "a?b");
	CHECK_STR(text_copy(text_of(NULL, 0), buf, sizeof(buf)), "");
}

static void numbers_are_the_whole_text(struct tap *tap_)
{
	static const char *const bad[] = {"", " 1", "1 ", "+1", "-1", "0x1", "1.0",
		"18446744073709551616", "99999999999999999999"};
	uint64_t v = 7;
	int pid = 0;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		CHECK(!parse_u64(t(bad[i]), UINT64_MAX, &v));
	CHECK_INT(v, 7);
	CHECK(parse_u64(t("18446744073709551615"), UINT64_MAX, &v) && v == UINT64_MAX);
	CHECK(!parse_u64(t("256"), 255, &v));
	CHECK(parse_hex(t("7fFF"), UINT64_MAX, &v) && v == 0x7fff);
	CHECK(!parse_hex(t("g"), UINT64_MAX, &v));
	CHECK(!parse_u64(text_of("1\0", 2), UINT64_MAX, &v));
	CHECK(parse_pid(t("4194304"), &pid) && pid == 4194304);
	CHECK(!parse_pid(t("0"), &pid) && !parse_pid(t("4194305"), &pid));
}

static void signed_numbers_reach_both_ends(struct tap *tap_)
{
	int64_t v;

	CHECK(parse_i64(t("-9223372036854775808"), INT64_MIN, INT64_MAX, &v) && v == INT64_MIN);
	CHECK(parse_i64(t("9223372036854775807"), INT64_MIN, INT64_MAX, &v) && v == INT64_MAX);
	CHECK(!parse_i64(t("9223372036854775808"), INT64_MIN, INT64_MAX, &v));
	CHECK(!parse_i64(t("-9223372036854775809"), INT64_MIN, INT64_MAX, &v));
	CHECK(!parse_i64(t("--1"), INT64_MIN, INT64_MAX, &v) && !parse_i64(t("-"), -1, 1, &v));
	CHECK(parse_i64(t("-1"), -1, 5, &v) && v == -1);
	CHECK(!parse_i64(t("-2"), -1, 5, &v));
}

TAP_MAIN(TEST(lines_and_what_was_cut), TEST(words_and_pieces), TEST(copies_are_cut_and_ended),
	TEST(numbers_are_the_whole_text), TEST(signed_numbers_reach_both_ends))
