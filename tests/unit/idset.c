/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "policy/idset.h"
#include "tests/tap.h"

static void lists_of_the_kernel(struct tap *tap_)
{
	static const struct {
		const char *in, *out;
	} v[] = {{"0-3", "0-3"}, {"0", "0"}, {"", ""}, {"\n", ""},
		{"0-1,3-9,11-17,19-25,27-33\n", "0-1,3-9,11-17,19-25,27-33"}, {" 4-7 ", "4-7"},
		{"3,1,2", "1-3"}, {"0,8,252-255", "0,8,252-255"}, {"4095", "4095"}, {"5-5", "5"},
		{" \t\r\n", ""}, {"\t0-1\r\n", "0-1"}, {"0-3,2-5", "0-5"}, {"7,7", "7"},
		{"007", "7"}, {"0-4095", "0-4095"}, {"4094-4095", "4094-4095"}, {"63-64", "63-64"}};

	for (size_t i = 0; i < ARRAY_LEN(v); i++) {
		struct idset s;
		char buf[128];

		CHECK_INT(idset_parse_list(v[i].in, strlen(v[i].in), &s), 0);
		CHECK_STR(idset_format(&s, buf, sizeof(buf)), v[i].out);
	}
}

static void odd_lists(struct tap *tap_)
{
	static const struct {
		const char *in;
		int want;
	} v[] = {{"1--3", IDSET_E_SYNTAX}, {"10-6", IDSET_E_SYNTAX}, {"1,,2", IDSET_E_SYNTAX},
		{"a-3", IDSET_E_SYNTAX}, {"1;2", IDSET_E_SYNTAX}, {"1,", IDSET_E_SYNTAX},
		{"-1", IDSET_E_SYNTAX}, {"1 2", IDSET_E_SYNTAX}, {"-", IDSET_E_SYNTAX},
		{",", IDSET_E_SYNTAX}, {",1", IDSET_E_SYNTAX}, {"1-", IDSET_E_SYNTAX},
		{"1-2-3", IDSET_E_SYNTAX}, {"1, 2", IDSET_E_SYNTAX}, {"1 ,2", IDSET_E_SYNTAX},
		{"+1", IDSET_E_SYNTAX}, {"0x1", IDSET_E_SYNTAX}, {"\v1", IDSET_E_SYNTAX},
		{"\xff", IDSET_E_SYNTAX}, {"4095-0", IDSET_E_SYNTAX}, {"all", IDSET_E_SYNTAX},
		{"4096", IDSET_E_RANGE}, {"4095-4096", IDSET_E_RANGE}, {"0,4096", IDSET_E_RANGE},
		{"4294967296", IDSET_E_RANGE}, {"4294967295", IDSET_E_RANGE},
		{"18446744073709551616", IDSET_E_RANGE}, {"0-99999999999999999999", IDSET_E_RANGE}};

	for (size_t i = 0; i < ARRAY_LEN(v); i++) {
		struct idset s = {{42}};

		CHECK_INT(idset_parse_list(v[i].in, strlen(v[i].in), &s), v[i].want);
		CHECK_INT(s.word[0], 42); /* untouched */
	}
}

static void text_without_an_end(struct tap *tap_)
{
	struct idset s;

	/* only the first three bytes belong to the text */
	CHECK_INT(idset_parse_list("0-39", 3, &s), 0);
	CHECK_INT(idset_count(&s), 4);
	CHECK_INT(idset_parse_list("", 0, &s), 0);
	CHECK(idset_empty(&s));
	CHECK_INT(idset_parse_list("1\0,2", 4, &s), IDSET_E_SYNTAX);
}

/* On the heap and exactly as long as it is, so that the sanitizer sees a byte read behind it. */
static void no_byte_behind_the_text_is_read(struct tap *tap_)
{
	static const char *const v[] = {"1", "12", "0-", "0-3", "0-3,", "1,2", "1 ", " ", "a"};

	for (size_t i = 0; i < ARRAY_LEN(v); i++) {
		size_t len = strlen(v[i]);
		_cleanup_free_ char *text = malloc(len);
		struct idset s;
		int r;

		REQUIRE(text);
		memcpy(text, v[i], len);
		r = idset_parse_list(text, len, &s);
		CHECK_INT(r, strchr("-,a", v[i][len - 1]) ? IDSET_E_SYNTAX : 0);
	}
}

static void a_small_buffer_is_cut_at_an_item(struct tap *tap_)
{
	struct idset s = {0};
	char buf[12];

	for (unsigned i = 0; i < 40; i += 2)
		idset_add(&s, i);
	CHECK_STR(idset_format(&s, buf, sizeof(buf)), "0,2,4,6...");
	CHECK_STR(idset_format(&s, buf, 1), "");
	/* an exact fit is not cut */
	idset_clear(&s);
	for (unsigned i = 0; i < 4; i++)
		idset_add(&s, i);
	CHECK_STR(idset_format(&s, buf, 4), "0-3");
	CHECK_INT(idset_parse_list("9000-41000", 10, &s), IDSET_E_RANGE);
	/* nothing behind @size is written, whatever the size */
	for (size_t size = 0; size < sizeof(buf); size++) {
		memset(buf, '#', sizeof(buf));
		CHECK(idset_format(&s, buf, size) == buf);
		for (size_t i = size; i < sizeof(buf); i++)
			CHECK_INT(buf[i], '#');
		CHECK(size == 0 || memchr(buf, 0, size));
	}
}

static void laws_of_sets(struct tap *tap_)
{
	struct idset a = {0}, b = {0}, c;

	for (unsigned i = 0; i < IDSET_MAX; i += 3)
		idset_add(&a, i);
	for (unsigned i = 0; i < IDSET_MAX; i += 5)
		idset_add(&b, i);
	c = a;
	idset_and(&c, &b);
	CHECK_INT(idset_count(&c), (IDSET_MAX + 14) / 15);
	CHECK(idset_subset(&c, &a) && idset_subset(&c, &b) && idset_intersects(&a, &b));
	c = a;
	idset_andnot(&c, &b);
	CHECK(!idset_intersects(&c, &b));
	idset_or(&c, &b);
	CHECK(idset_subset(&a, &c) && idset_subset(&b, &c));
	idset_clear(&c);
	CHECK(idset_empty(&c) && idset_subset(&c, &a));
	idset_add(&c, IDSET_MAX);
	CHECK(idset_empty(&c) && !idset_has(&c, IDSET_MAX));
	idset_add(&c, IDSET_MAX - 1);
	CHECK_INT(idset_next(&c, 0), IDSET_MAX - 1);
	CHECK_INT(idset_next(&c, IDSET_MAX), -1);
	idset_remove(&c, IDSET_MAX - 1);
	CHECK(idset_empty(&c));
}

TAP_MAIN(TEST(lists_of_the_kernel), TEST(odd_lists), TEST(text_without_an_end),
	TEST(no_byte_behind_the_text_is_read), TEST(a_small_buffer_is_cut_at_an_item),
	TEST(laws_of_sets))
