/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "controller/host/root.h"

#include <errno.h>
#include <unistd.h>

#include "tests/replay/hosts.h"

static void reads_below_the_root(struct tap *tap_)
{
	_cleanup_hostfs_ struct hostfs fs = host_made("gap");
	_cleanup_free_ char *a = NULL, *b = NULL;
	size_t len;

	REQUIRE(hostfs_read(&fs, 100, &a, &len, "/sys/devices/system/node/%s", "online") == 0);
	CHECK_STR(a, "0,2\n");
	CHECK_INT(len, 4);
	REQUIRE(hostfs_read(&fs, 4, &b, NULL, "sys/devices/system/node/online") == 0);
	CHECK_STR(b, "0,2\n");
	CHECK(hostfs_exists(&fs, "///sys/devices"));
	CHECK(!hostfs_exists(&fs, "sys/devices/system/node/node1"));
}

static void conditions_of_reading(struct tap *tap_)
{
	_cleanup_hostfs_ struct hostfs fs = host_made("gap");
	struct hostfs none = {.fd = -1};
	char *text = NULL;

	CHECK_INT(
		hostfs_read(&fs, 3, &text, NULL, "sys/devices/system/node/online"), HOST_E_TOO_BIG);
	CHECK_INT(hostfs_read(&fs, 100, &text, NULL, "no/such/file"), HOST_E_GONE);
	CHECK_INT(hostfs_read(&fs, 100, &text, NULL, "sys"), HOST_E_IO); /* EISDIR, at read */
	CHECK_INT(hostfs_read(&none, 100, &text, NULL, "sys"), -EBADF);
	CHECK_INT(hostfs_open(&none, "/no/such/host"), HOST_E_GONE);
	CHECK_INT(none.fd, -1);
	CHECK(!text);
	hostfs_close(&none);
}

static void reads_what_grows_over_the_first_buffer(struct tap *tap_)
{
	_cleanup_hostfs_ struct hostfs fs = host_captured("debian13-4node");
	_cleanup_free_ char *text = NULL;
	size_t len;

	REQUIRE(hostfs_read(&fs, HOST_LIMIT_MAPS, &text, &len, "proc/594/numa_maps") == 0);
	CHECK_INT(len, 33067);
	CHECK_INT(text[len], 0);
}

static void lists_in_order(struct tap *tap_)
{
	_cleanup_hostfs_ struct hostfs fs = host_made("gap");
	_cleanup_host_names_ struct host_names names = {0};
	struct host_names none = {0};

	REQUIRE(hostfs_list(&fs, 100, &names, "sys/devices/system/node") == 0);
	REQUIRE(names.n == 5);
	CHECK_STR(names.name[0], "has_cpu");
	CHECK_STR(names.name[2], "node0");
	CHECK_STR(names.name[4], "online");
	CHECK_INT(hostfs_list(&fs, 4, &none, "sys/devices/system/node"), HOST_E_TOO_BIG);
	CHECK_INT(hostfs_list(&fs, 4, &none, "sys/devices/system/node/online"), HOST_E_GONE);
	CHECK_INT(hostfs_list(&fs, 4, &none, "sys/nowhere"), HOST_E_GONE);
	CHECK_INT(none.n, 0);
}

static void every_condition_has_words(struct tap *tap_)
{
	for (int code = 0; code <= HOST_E_NOT_FOUND; code++)
		CHECK(strcmp(host_strerror(code), "unknown error") != 0);
	CHECK_STR(host_strerror(-ENOMEM), "Cannot allocate memory");
	CHECK_STR(host_strerror(12345), "unknown error");
}

TAP_MAIN(TEST(reads_below_the_root), TEST(conditions_of_reading),
	TEST(reads_what_grows_over_the_first_buffer), TEST(lists_in_order),
	TEST(every_condition_has_words))
