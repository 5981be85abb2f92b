/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "controller/host/maps.h"

#include "tests/replay/hosts.h"

static void captured_process(struct tap *tap_)
{
	_cleanup_hostfs_ struct hostfs fs = host_captured("debian13-4node");
	_cleanup_map_list_ struct map_list list = {0};
	struct map_list none = {0};
	const struct map *m;

	REQUIRE(maps_read(&fs, 594, &list) == 0);
	CHECK_INT(list.anomalies, 0);
	CHECK(list.n > 300);
	CHECK_INT(list.map[0].start, 0x559987b1e000);
	CHECK_INT(list.map[1].offset, 0x49c000);
	CHECK_INT(list.map[0].inode, 1041);
	CHECK_INT(list.map[0].dev_major, 0xfe);
	CHECK_STR(list.map[0].path, "/usr/bin/qemu-system-x86_64");
	CHECK_STR(list.map[0].perms, "r--p");
	m = map_list_find(&list, 0x7fdb03e00000 + 4096);
	REQUIRE(m);
	CHECK_INT(m->end - m->start, 256 << 20);
	CHECK_STR(m->path, "");
	CHECK(!map_list_find(&list, 0x1000));
	CHECK_INT(maps_read(&fs, 1, &none), HOST_E_GONE);
}

static void paths_are_the_rest_of_the_line(struct tap *tap_)
{
	static const char text[] =
		"1000-2000 rw-p 00000000 00:00 0 \n"
		"2000-3000 rw-s 00001000 fe:00 77                 /a b  c\\012d (deleted)\n"
		"3000-4000 rw-p 00000000 00:00 0                          [heap]\n";
	_cleanup_map_list_ struct map_list list = {0};

	REQUIRE(maps_parse(text, strlen(text), &list) == 0);
	REQUIRE(list.n == 3);
	CHECK_STR(list.map[0].path, "");
	CHECK_STR(list.map[1].path, "/a b  c\nd (deleted)");
	CHECK_STR(list.map[1].perms, "rw-s");
	CHECK_STR(list.map[2].path, "[heap]");
}

static void odd_lines_are_skipped(struct tap *tap_)
{
	static const char text[] = "1000-2000 rw-p 00000000 00:00 0\n"
				   "2000 rw-p 00000000 00:00 0\n"
				   "5000-4000 rw-p 00000000 00:00 0\n"
				   "1000-3000 rw-p 00000000 00:00 0\n" /* goes back */
				   "6000-7000 rw- 00000000 00:00 0\n"
				   "7000-8000 rw-p 00000000 0000 0\n"
				   "8000-9000 rw-p 00000000 00:00 0";
	_cleanup_map_list_ struct map_list list = {0};
	struct map_list none = {0};

	REQUIRE(maps_parse(text, strlen(text), &list) == 0);
	CHECK_INT(list.n, 1);
	CHECK_INT(list.anomalies, 6);
	CHECK_INT(maps_parse("", 0, &none), HOST_E_NOT_FOUND);
	CHECK_INT(maps_parse("x\n", 2, &none), HOST_E_NOT_FOUND);
}

TAP_MAIN(TEST(captured_process), TEST(paths_are_the_rest_of_the_line), TEST(odd_lines_are_skipped))
