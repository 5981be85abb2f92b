/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "controller/control/frame.h"
#include "tests/tap.h"

static const char two[] = "{\"method\":\"a\"}\0{\"method\":\"b\",\"parameters\":{\"x\":[1]}}";

static void messages_split_at_every_byte(struct tap *tap_)
{
	for (size_t cut = 0; cut <= sizeof(two); cut++) {
		struct json_object *o[3] = {NULL};
		struct frame_reader r;
		unsigned n = 0;

		frame_reader_init(&r, FRAME_BYTES_MAX);
		CHECK_INT(frame_reader_feed(&r, two, cut), 0);
		while (n < 3 && frame_reader_next(&r, &o[n]) == 0)
			n++;
		CHECK_INT(frame_reader_feed(&r, two + cut, sizeof(two) - cut), 0);
		while (n < 3 && frame_reader_next(&r, &o[n]) == 0)
			n++;
		CHECK_INT(n, 2);
		for (unsigned i = 0; i < n; i++)
			json_object_put(o[i]);
		frame_reader_clear(&r);
	}
}

static void what_is_no_object_is_refused(struct tap *tap_)
{
	static const char *const odd[] = {
		"[1]", "1", "null", "", "{", "{}x", "\xff\xfe", "{\"a\":}"};

	for (size_t i = 0; i < ARRAY_LEN(odd); i++) {
		struct json_object *o = NULL;
		struct frame_reader r;

		frame_reader_init(&r, FRAME_BYTES_MAX);
		CHECK_INT(frame_reader_feed(&r, odd[i], strlen(odd[i]) + 1), 0);
		if (frame_reader_next(&r, &o) != FRAME_E_INVALID) {
			printf("# accepted: %s\n", odd[i]);
			CHECK(false);
		}
		frame_reader_clear(&r);
	}
}

static void limits_on_bytes_and_depth(struct tap *tap_)
{
	char deep[2 * FRAME_DEPTH_MAX * 6 + 8] = "", big[101];
	struct json_object *o = NULL;
	struct frame_reader r;

	frame_reader_init(&r, 100);
	memset(big, ' ', sizeof(big));
	CHECK_INT(frame_reader_feed(&r, big, 101), FRAME_E_TOO_BIG);
	CHECK_INT(frame_reader_feed(&r, big, 100), 0);
	CHECK_INT(frame_reader_next(&r, &o), FRAME_E_TOO_BIG);
	frame_reader_clear(&r);
	for (unsigned i = 0; i < FRAME_DEPTH_MAX + 5; i++)
		strcat(deep, "{\"a\":");
	strcat(deep, "1");
	for (unsigned i = 0; i < FRAME_DEPTH_MAX + 5; i++)
		strcat(deep, "}");
	frame_reader_init(&r, FRAME_BYTES_MAX);
	CHECK_INT(frame_reader_feed(&r, deep, strlen(deep) + 1), 0);
	CHECK_INT(frame_reader_next(&r, &o), FRAME_E_INVALID);
	frame_reader_clear(&r);
}

TAP_MAIN(TEST(messages_split_at_every_byte), TEST(what_is_no_object_is_refused),
	TEST(limits_on_bytes_and_depth))
