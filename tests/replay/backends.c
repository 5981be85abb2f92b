/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "controller/host/backends.h"
#include "controller/host/hugemounts.h"

#include "tests/replay/hosts.h"

#define GIB (UINT64_C(1) << 30)
#define MIB (UINT64_C(1) << 20)

/* @line: arguments separated by '|', which becomes NUL */
static int parse(const char *line, struct ram_backends *ret)
{
	size_t len = strlen(line) + 1;
	_cleanup_free_ char *text = malloc(len);

	memcpy(text, line, len);
	for (size_t i = 0; i < len; i++)
		if (text[i] == '|')
			text[i] = '\0';
	return ram_backends_parse_cmdline(text, len, ret);
}

static void captured_command_line(struct tap *tap_)
{
	_cleanup_hostfs_ struct hostfs fs = host_captured("debian13-4node");
	_cleanup_ram_backends_ struct ram_backends list = {0};

	REQUIRE(ram_backends_read(&fs, 594, &list) == 0);
	REQUIRE(list.n == 1); /* and not once more for -m */
	CHECK_STR(list.backend[0].id, "pc.ram");
	CHECK_INT(list.backend[0].type, RAM_BACKEND_RAM);
	CHECK_INT(list.backend[0].size_bytes, 256 * MIB);
	CHECK_INT(list.anomalies, 0);
}

static void json_in_any_order(struct tap *tap_)
{
	_cleanup_ram_backends_ struct ram_backends list = {0};

	REQUIRE(parse("qemu|-object|{ \"host-nodes\" : [0, 2], \"size\":2147483648, "
		      "\"x\":{\"a\":[\"}\",{}]}, \"mem-path\":\"/dev/huge\\u0070ages/a\\\"b\", "
		      "\"share\":true, \"policy\":\"bind\", \"id\":\"ram-node0\", "
		      "\"qom-type\":\"memory-backend-file\"}|"
		      "-object|{\"qom-type\":\"memory-backend-memfd\",\"id\":\"m\",\"hugetlb\":true,"
		      "\"hugetlbsize\":1073741824,\"size\":1073741824}|"
		      "-numa|node,memdev=ram-node0",
			&list) == 0);
	REQUIRE(list.n == 2);
	CHECK_STR(list.backend[0].id, "ram-node0");
	CHECK_INT(list.backend[0].type, RAM_BACKEND_FILE);
	CHECK_INT(list.backend[0].size_bytes, 2 * GIB);
	CHECK_STR(list.backend[0].path, "/dev/hugepages/a\"b");
	CHECK(list.backend[0].share);
	IDS(&list.backend[0].host_nodes, "0,2");
	CHECK(list.backend[1].hugetlb);
	CHECK_INT(list.backend[1].huge_bytes, GIB);
}

static void key_and_value(struct tap *tap_)
{
	_cleanup_ram_backends_ struct ram_backends list = {0};

	REQUIRE(parse("qemu|-object|memory-backend-memfd,id=ram0,size=1G|"
		      "--object|qom-type=memory-backend-ram,id=r,size=262144k,host-nodes=0-1,"
		      "host-nodes=3|-object|memory-backend-file,id=f,mem-path=/a,,b/c,"
		      "size=0x40000000,share=on|-object|rng-random,id=rng0|"
		      "-object|memory-backend-ram,id=nosize|-M|q35,memory-backend=ram0",
			&list) == 0);
	REQUIRE(list.n == 3);
	CHECK_INT(list.anomalies, 1);
	CHECK_INT(list.backend[0].type, RAM_BACKEND_MEMFD);
	CHECK_INT(list.backend[0].size_bytes, GIB);
	CHECK_INT(list.backend[1].size_bytes, 256 * MIB);
	IDS(&list.backend[1].host_nodes, "0-1,3");
	CHECK_STR(list.backend[2].path, "/a,b/c");
	CHECK_INT(list.backend[2].size_bytes, GIB);
	CHECK(list.backend[2].share);
}

static void the_machine_s_own_memory(struct tap *tap_)
{
	static const struct {
		const char *line;
		uint64_t bytes;
		enum ram_backend_type type;
	} lines[] = {
		{"qemu|-m|4096", 4 * GIB, RAM_BACKEND_RAM},
		{"qemu|-m|4G", 4 * GIB, RAM_BACKEND_RAM},
		{"qemu|-m|size=262144k,slots=16,maxmem=8G", 256 * MIB, RAM_BACKEND_RAM},
		{"qemu|-m|slots=16,size=2G", 2 * GIB, RAM_BACKEND_RAM},
		{"qemu|-mem-path|/dev/hugepages|-m|1G", GIB, RAM_BACKEND_FILE},
	};

	for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
		_cleanup_ram_backends_ struct ram_backends list = {0};

		REQUIRE(parse(lines[i].line, &list) == 0);
		REQUIRE(list.n == 1);
		CHECK_STR(list.backend[0].id, "");
		CHECK_INT(list.backend[0].size_bytes, lines[i].bytes);
		CHECK_INT(list.backend[0].type, lines[i].type);
	}
}

static void a_dimm_does_not_replace_it(struct tap *tap_)
{
	_cleanup_ram_backends_ struct ram_backends list = {0};

	REQUIRE(parse("qemu|-m|1G|-object|memory-backend-ram,id=dimm0,size=512M", &list) == 0);
	REQUIRE(list.n == 2);
	CHECK_INT(list.backend[0].size_bytes, 512 * MIB);
	CHECK_INT(list.backend[1].size_bytes, GIB);
}

static void nothing_to_find(struct tap *tap_)
{
	static const char *const lines[] = {"", "qemu", "qemu|-m", "qemu|-m|lots", "sleep|m|4G",
		"qemu|-object|{", "qemu|-object|{\"qom-type\":\"memory-backend-ram\",\"size\":",
		"qemu|-object|memory-backend-epc,id=e,size=1G",
		"qemu|-object|memory-backend-ram,size=0x0",
		"qemu|-object|memory-backend-ram,size=0",
		"qemu|-object|memory-backend-ram,size=99999999999999999999G"};

	for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
		struct ram_backends list = {0};

		CHECK_INT(parse(lines[i], &list), HOST_E_NOT_FOUND);
	}
}

static void long_values_are_cut_not_overrun(struct tap *tap_)
{
	_cleanup_free_ char *line = malloc(20000);
	_cleanup_ram_backends_ struct ram_backends list = {0};

	memset(line, 'y', 20000);
	memcpy(line, "q|-object|memory-backend-ram,size=1G,id=", 40);
	line[19999] = '\0';
	REQUIRE(parse(line, &list) == 0);
	CHECK_INT(strlen(list.backend[0].id), RAM_BACKEND_ID_MAX - 1);
}

static void mounts_of_hugetlbfs(struct tap *tap_)
{
	static const char text[] =
		"proc /proc proc rw 0 0\n"
		"hugetlbfs /dev/hugepages hugetlbfs rw,relatime,pagesize=2M 0 0\n"
		"hugetlbfs /dev/hugepages/1g hugetlbfs rw,pagesize=1024M 0 0\n"
		"none /mnt/huge hugetlbfs rw 0 0\n"
		"hugetlbfs /cut hugetlbfs rw 0 0";
	struct huge_mounts mounts;

	huge_mounts_parse(text, strlen(text), 16 * MIB, &mounts);
	REQUIRE(mounts.n == 3);
	CHECK_INT(huge_mounts_find(&mounts, "/dev/hugepages/libvirt/x")->page_bytes, 2 * MIB);
	CHECK_INT(huge_mounts_find(&mounts, "/dev/hugepages/1g/x")->page_bytes, GIB);
	CHECK_INT(huge_mounts_find(&mounts, "/mnt/huge/x")->page_bytes, 16 * MIB);
	CHECK(!huge_mounts_find(&mounts, "/mnt/hugely/x"));
}

/* A DIMM of the size that the machine's own memory has: two backends, not one said twice. */
static void what_qemu_says_completes_the_command_line(struct tap *tap_)
{
	_cleanup_ram_backends_ struct ram_backends list = {0};

	REQUIRE(parse("qemu|-m|128M,slots=4,maxmem=1G", &list) == 0 && list.n == 1);
	CHECK_STR(list.backend[0].id, "");
	for (unsigned i = 0; i < 2; i++) { /* saying it again changes nothing */
		CHECK_INT(ram_backends_complete(&list, "m1", 128 * MIB), 0);
		CHECK_INT(ram_backends_complete(&list, "pc.ram", 128 * MIB), 0);
		CHECK_INT(ram_backends_complete(&list, "m2", 64 * MIB), 0);
		REQUIRE(list.n == 3);
	}
	CHECK_STR(list.backend[0].id, "m1");
	CHECK_STR(list.backend[1].id, "pc.ram");
	CHECK_INT(list.backend[1].size_bytes, 128 * MIB);
	CHECK_STR(list.backend[2].id, "m2");
}

TAP_MAIN(TEST(what_qemu_says_completes_the_command_line), TEST(captured_command_line),
	TEST(json_in_any_order), TEST(key_and_value), TEST(the_machine_s_own_memory),
	TEST(a_dimm_does_not_replace_it), TEST(nothing_to_find),
	TEST(long_values_are_cut_not_overrun), TEST(mounts_of_hugetlbfs))
