/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "controller/host/guestram.h"
#include "controller/host/memuse.h"

#include "tests/replay/hosts.h"

#define GIB (UINT64_C(1) << 30)
#define MIB (UINT64_C(1) << 20)

static struct ram_backend backend(const char *id, enum ram_backend_type type, uint64_t bytes)
{
	struct ram_backend b = {.type = type, .size_bytes = bytes};

	snprintf(b.id, sizeof(b.id), "%s", id);
	return b;
}

static int find(const char *text, const struct ram_backend *b, size_t n, struct guestram *ret)
{
	_cleanup_map_list_ struct map_list maps = {0};
	_cleanup_ram_backends_ struct ram_backends backends = {0};
	int r = maps_parse(text, strlen(text), &maps);

	for (size_t i = 0; r == 0 && i < n; i++)
		r = ram_backends_add(&backends, &b[i]);
	return r ? r : guestram_find(&maps, &backends, NULL, NULL, ret);
}

static void captured_guests(struct tap *tap_)
{
	static const pid_t pids[] = {594, 616, 638};
	_cleanup_hostfs_ struct hostfs fs = host_captured("debian13-4node");

	for (size_t i = 0; i < ARRAY_LEN(pids); i++) {
		_cleanup_guestram_ struct guestram g = {0};

		REQUIRE(guestram_read(&fs, pids[i], NULL, NULL, &g) == 0);
		REQUIRE(g.n == 1);
		CHECK_INT(g.range[0].end - g.range[0].start, 256 * MIB);
		CHECK_INT(g.range[0].kind, GUESTRAM_ANON);
		CHECK_INT(g.range[0].page_bytes, 4096);
		CHECK_STR(g.range[0].id, "pc.ram");
		CHECK_INT(g.total_bytes, 256 * MIB);
		CHECK_INT(g.backends_missing, 0);
		if (pids[i] == 594)
			CHECK_INT(g.range[0].start, 0x7fdb03e00000);
	}
}

static void captured_guest_split_in_three(struct tap *tap_)
{
	static const char text[] = "7fdb035ff000-7fdb03600000 ---p 00000000 00:00 0 \n"
				   "7fdb03600000-7fdb03e00000 rw-p 00000000 00:00 0 \n" /* stack */
				   "7fdb03e00000-7fdb04000000 rw-p 00000000 00:00 0 \n"
				   "7fdb04000000-7fdb12000000 rw-p 00000000 00:00 0 \n"
				   "7fdb12000000-7fdb13e00000 rw-p 00000000 00:00 0 \n"
				   "7fdb13e00000-7fdb13e01000 ---p 00000000 00:00 0 \n";
	const struct ram_backend b = backend("pc.ram", RAM_BACKEND_RAM, 256 * MIB);
	_cleanup_guestram_ struct guestram g = {0};

	REQUIRE(find(text, &b, 1, &g) == 0);
	REQUIRE(g.n == 1);
	CHECK_INT(g.range[0].start, 0x7fdb03e00000);
	CHECK_INT(g.range[0].end, 0x7fdb13e00000);
	CHECK_STR(g.range[0].id, "pc.ram");
}

static void D52_memfd_and_not_the_rest(struct tap *tap_)
{
	static const char text[] = "7f0000000000-7f0040000000 rw-s 00000000 00:01 5   "
				   "/memfd:memory-backend-memfd (deleted)\n"
				   "7f5000000000-7f5000186000 r-xp 00000000 fe:00 9   "
				   "/usr/lib/x86_64-linux-gnu/libc.so.6\n"
				   "7f6000000000-7f6000800000 rw-p 00000000 00:00 0 \n";
	static const char numa_maps[] =
		"7f0000000000 default file=/memfd:memory-backend-memfd\\040(deleted) dirty=262144 "
		"N0=1 N1=262143 kernelpagesize_kB=4\n"
		"7f5000000000 default file=/usr/lib/x86_64-linux-gnu/libc.so.6 mapped=390 "
		"mapmax=40 N0=390 kernelpagesize_kB=4\n"
		"7f6000000000 default anon=2048 dirty=2048 N0=2048 kernelpagesize_kB=4\n";
	static const char cmdline[] =
		"qemu-system-x86_64\0-object\0memory-backend-memfd,id=ram0,size=1G\0"
		"-machine\0q35,memory-backend=ram0";
	_cleanup_ram_backends_ struct ram_backends backends = {0};
	_cleanup_map_list_ struct map_list maps = {0};
	_cleanup_guestram_ struct guestram g = {0};
	struct topology topology = {.n_nodes = 2, .node = {{.id = 0}, {.id = 1}}};
	struct memory_use use = {0};

	REQUIRE(ram_backends_parse_cmdline(cmdline, sizeof(cmdline), &backends) == 0);
	REQUIRE(maps_parse(text, strlen(text), &maps) == 0);
	REQUIRE(guestram_find(&maps, &backends, NULL, NULL, &g) == 0);
	REQUIRE(g.n == 1);
	CHECK_INT(g.range[0].kind, GUESTRAM_MEMFD);
	CHECK_STR(g.range[0].id, "ram0");
	CHECK_INT(g.total_bytes, GIB);
	CHECK_INT(g.backends_missing, 0);
	CHECK(!guestram_at(&g, 0x7f5000000000) && !guestram_at(&g, 0x7f6000000000));
	REQUIRE(memory_use_parse(
			numa_maps, strlen(numa_maps), &topology, NULL, &g, &backends, &use) == 0);
	CHECK_INT(use.bytes[MEMORY_GUEST_RAM][0], 4096);
	CHECK_INT(use.bytes[MEMORY_GUEST_RAM][1], UINT64_C(262143) * 4096);
	CHECK_INT(use.bytes[MEMORY_FILE][0], 390 * 4096);
	CHECK_INT(use.bytes[MEMORY_PRIVATE][0], 2048 * 4096);
	CHECK(!use.hugetlb && !use.bound);
}

static void memfd_that_mbind_split_is_one_range(struct tap *tap_)
{
	static const char text[] =
		"7f0000000000-7f0010000000 rw-s 00000000 00:01 5  /memfd:memory-backend-memfd "
		"(deleted)\n"
		"7f0010000000-7f0040000000 rw-s 10000000 00:01 5  /memfd:memory-backend-memfd "
		"(deleted)\n"
		"7f0040000000-7f0080000000 rw-s 00000000 00:01 6  /memfd:memory-backend-memfd "
		"(deleted)\n";
	const struct ram_backend b[] = {backend("ram-node0", RAM_BACKEND_MEMFD, GIB),
		backend("ram-node1", RAM_BACKEND_MEMFD, GIB)};
	_cleanup_guestram_ struct guestram g = {0};

	REQUIRE(find(text, b, 2, &g) == 0);
	REQUIRE(g.n == 2);
	CHECK_INT(g.range[0].end, 0x7f0040000000);
	CHECK_STR(g.range[0].id, ""); /* either of two */
	CHECK_INT(g.range[1].backend, -1);
	CHECK_INT(g.backends_missing, 0);
}

static void files_in_hugepages_say_their_id(struct tap *tap_)
{
	static const char text[] =
		"7f0000000000-7f0040000000 rw-s 00000000 00:0e 5  "
		"/dev/hugepages/libvirt/qemu/1-a/qemu_back_mem._objects_ram-node1.Xy1Z (deleted)\n"
		"7f1000000000-7f1040000000 rw-s 00000000 00:0e 6  "
		"/dev/hugepages/libvirt/qemu/1-a/qemu_back_mem._objects_ram-node0.Ab2C (deleted)\n";
	struct ram_backend b[] = {backend("ram-node0", RAM_BACKEND_FILE, GIB),
		backend("ram-node1", RAM_BACKEND_FILE, GIB)};
	const struct guestram_units units = {.huge_bytes = 2 * MIB};
	const struct huge_mounts mounts = {.n = 1, .mount = {{"/dev/hugepages", GIB}}};
	_cleanup_ram_backends_ struct ram_backends backends = {0};
	_cleanup_map_list_ struct map_list maps = {0};
	_cleanup_guestram_ struct guestram g = {0}, h = {0};

	for (unsigned i = 0; i < 2; i++) {
		snprintf(b[i].path, sizeof(b[i].path), "/dev/hugepages/libvirt/qemu/1-a");
		REQUIRE(ram_backends_add(&backends, &b[i]) == 0);
	}
	REQUIRE(maps_parse(text, strlen(text), &maps) == 0);
	REQUIRE(guestram_find(&maps, &backends, &mounts, &units, &g) == 0);
	REQUIRE(g.n == 2);
	CHECK_STR(g.range[0].id, "ram-node1");
	CHECK_STR(g.range[1].id, "ram-node0");
	CHECK_INT(g.range[0].kind, GUESTRAM_HUGETLB);
	CHECK_INT(g.range[0].page_bytes, GIB);
	REQUIRE(guestram_find(&maps, &backends, NULL, &units, &h) == 0);
	CHECK_INT(h.range[0].kind, GUESTRAM_HUGETLB);
	CHECK_INT(h.range[0].page_bytes, 2 * MIB);
}

static void a_directory_of_two_says_no_id(struct tap *tap_)
{
	static const char text[] =
		"7f0000000000-7f0040000000 rw-s 00000000 fe:00 5  /var/ram/1-a/x\n";
	struct ram_backend b[] = {backend("ram-node0", RAM_BACKEND_FILE, GIB),
		backend("ram-node1", RAM_BACKEND_FILE, GIB)};
	_cleanup_guestram_ struct guestram g = {0};

	for (unsigned i = 0; i < 2; i++)
		snprintf(b[i].path, sizeof(b[i].path), "/var/ram/1-a");
	REQUIRE(find(text, b, 2, &g) == 0);
	REQUIRE(g.n == 1);
	CHECK_INT(g.range[0].backend, -1);
	CHECK_INT(g.backends_missing, 1);
}

static void a_file_of_its_own_path(struct tap *tap_)
{
	static const char text[] =
		"7f0000000000-7f0040000000 rw-s 00000000 fe:00 5  /var/ram/1-a/ram-node0\n"
		"7f1000000000-7f1040000000 rw-s 00000000 fe:00 6  /var/ram/1-a/ram-node0.bak\n";
	struct ram_backend b = backend("ram-node0", RAM_BACKEND_FILE, GIB);
	_cleanup_guestram_ struct guestram g = {0};

	snprintf(b.path, sizeof(b.path), "/var/ram/1-a/ram-node0");
	REQUIRE(find(text, &b, 1, &g) == 0);
	REQUIRE(g.n == 1);
	CHECK_INT(g.range[0].start, 0x7f0000000000);
	CHECK_STR(g.range[0].id, "ram-node0");
	CHECK_INT(g.range[0].kind, GUESTRAM_FILE);
}

static void hugetlb_memfd_and_numa_maps_that_knows_better(struct tap *tap_)
{
	static const char text[] = "7f0000000000-7f0040000000 rw-s 00000000 00:0e 5  "
				   "/memfd:memory-backend-memfd (deleted)\n";
	static struct numa_vma vma = {.start = 0x7f0000000000, .huge = true, .page_bytes = GIB};
	struct ram_backend b = backend("ram0", RAM_BACKEND_MEMFD, GIB);
	_cleanup_guestram_ struct guestram g = {0};

	b.hugetlb = true;
	b.huge_bytes = 2 * MIB;
	REQUIRE(find(text, &b, 1, &g) == 0);
	CHECK_INT(g.range[0].kind, GUESTRAM_HUGETLB);
	CHECK_INT(g.range[0].page_bytes, 2 * MIB);
	guestram_learn(&g, NULL, &vma);
	CHECK_INT(g.range[0].page_bytes, GIB);
}

static void stacks_arenas_and_code_are_never_taken(struct tap *tap_)
{
	static const char text[] =
		/* a stack of 8 MiB: the guard page is before it */
		"7f0000000000-7f0000001000 ---p 00000000 00:00 0 \n"
		"7f0000001000-7f0000801000 rw-p 00000000 00:00 0 \n"
		/* a malloc arena of which 8 MiB are in use */
		"7f0004000000-7f0004800000 rw-p 00000000 00:00 0 \n"
		"7f0004800000-7f0008000000 ---p 00000000 00:00 0 \n"
		/* TCG's code buffer, the heap, private data of a library */
		"7f1000000000-7f1000800000 rwxp 00000000 00:00 0 \n"
		"7f2000000000-7f2000800000 rw-p 00000000 00:00 0    [heap]\n"
		"7f3000000000-7f3000800000 rw-p 00000000 fe:00 7    /usr/lib/libx.so\n"
		"7f4000000000-7f4000800000 rw-p 00000000 fe:00 7    [odd]/qemu_back_mem.a.b\n";
	const struct ram_backend b = backend("small", RAM_BACKEND_RAM, 8 * MIB);
	_cleanup_guestram_ struct guestram g = {0};

	CHECK_INT(find(text, &b, 1, &g), HOST_E_NOT_FOUND);
}

static void the_guard_page_decides(struct tap *tap_)
{
	static const char text[] = "7f0000000000-7f0004000000 rw-p 00000000 00:00 0 \n"
				   "7f1000000000-7f1004000000 rw-p 00000000 00:00 0 \n"
				   "7f1004000000-7f1004001000 ---p 00000000 00:00 0 \n"
				   "7f2000000000-7f2004000000 rw-p 00000000 00:00 0 \n";
	const struct ram_backend b = backend("ram", RAM_BACKEND_RAM, 64 * MIB);
	_cleanup_guestram_ struct guestram g = {0};

	REQUIRE(find(text, &b, 1, &g) == 0);
	REQUIRE(g.n == 1);
	CHECK_INT(g.range[0].start, 0x7f1000000000);
}

static void what_cannot_be_told_apart_is_missing(struct tap *tap_)
{
	static const char text[] = "7f0000000000-7f0004000000 rw-p 00000000 00:00 0 \n"
				   "7f1000000000-7f1004000000 rw-p 00000000 00:00 0 \n"
				   "7f2000000000-7f2040000000 rw-p 00000000 00:00 0 \n";
	const struct ram_backend b[] = {
		backend("a", RAM_BACKEND_RAM, 64 * MIB), backend("b", RAM_BACKEND_RAM, GIB)};
	_cleanup_guestram_ struct guestram g = {0};

	REQUIRE(find(text, b, 2, &g) == 0);
	REQUIRE(g.n == 1);
	CHECK_STR(g.range[0].id, "b");
	CHECK_INT(g.backends_missing, 1);
	CHECK_INT(g.missing_bytes, 64 * MIB);
}

static void nothing_found_is_a_condition(struct tap *tap_)
{
	static const char text[] = "7f0000000000-7f0004000000 rw-p 00000000 00:00 0 \n";
	const struct ram_backend b = backend("a", RAM_BACKEND_RAM, 4 * GIB);
	_cleanup_guestram_ struct guestram g = {0};

	CHECK_INT(find(text, &b, 1, &g), HOST_E_NOT_FOUND);
	CHECK_INT(find(text, NULL, 0, &g), HOST_E_NOT_FOUND);
	CHECK_INT(g.n, 0);
}

/* D16: both backends look alike until numa_maps shows where each is bound to. */
static void D16_policy_nodes_tell_backends_apart(struct tap *tap_)
{
	static const char text[] = "7f0000000000-7f0080000000 rw-p 00000000 00:00 0 \n"
				   "7f0080000000-7f0100000000 rw-p 00000000 00:00 0 \n";
	static const char numa_maps[] =
		"7f0000000000 bind:0 anon=524288 dirty=524288 N1=524288 kernelpagesize_kB=4\n"
		"7f0080000000 bind:1 anon=524288 dirty=524288 N1=524288 kernelpagesize_kB=4\n";
	struct ram_backend b[] = {backend("ram-node0", RAM_BACKEND_RAM, 2 * GIB),
		backend("ram-node1", RAM_BACKEND_RAM, 2 * GIB)};
	_cleanup_ram_backends_ struct ram_backends backends = {0};
	_cleanup_map_list_ struct map_list maps = {0};
	_cleanup_guestram_ struct guestram g = {0};
	struct topology topology = {.n_nodes = 2, .node = {{.id = 0}, {.id = 1}}};
	struct memory_use use = {0};

	for (unsigned i = 0; i < 2; i++) {
		idset_add(&b[i].host_nodes, i);
		REQUIRE(ram_backends_add(&backends, &b[i]) == 0);
	}
	REQUIRE(maps_parse(text, strlen(text), &maps) == 0);
	REQUIRE(guestram_find(&maps, &backends, NULL, NULL, &g) == 0);
	REQUIRE(g.n == 2);
	CHECK_INT(g.range[0].backend, -1);
	REQUIRE(memory_use_parse(
			numa_maps, strlen(numa_maps), &topology, NULL, &g, &backends, &use) == 0);
	CHECK_STR(g.range[0].id, "ram-node0");
	CHECK_STR(g.range[1].id, "ram-node1");
	CHECK(use.bound);
	CHECK_INT(use.bytes[MEMORY_GUEST_RAM][1], 4 * GIB);
}

static void D54_memory_by_kind_and_node(struct tap *tap_)
{
	static const char maps_text[] = "7f0000000000-7f0100000000 rw-p 00000000 00:00 0 \n";
	static const char numa_maps[] =
		"55550000 default heap anon=2560 N0=2560 kernelpagesize_kB=4\n"
		"7f0000000000 default anon=1048576 N0=262144 N1=786432 kernelpagesize_kB=4\n"
		"7f6000000000 default anon=512 N1=512 kernelpagesize_kB=4\n"
		"7f7000000000 default file=/x mapped=3 N5=3 kernelpagesize_kB=4\n"
		"7ffd0000 default stack anon=16 N0=16 kernelpagesize_kB=4\n";
	const struct ram_backend b = backend("pc.ram", RAM_BACKEND_RAM, 4 * GIB);
	struct topology topology = {.n_nodes = 2, .node = {{.id = 0}, {.id = 1}}};
	_cleanup_guestram_ struct guestram g = {0};
	struct memory_use use = {0};
	uint64_t sum = 0;

	REQUIRE(find(maps_text, &b, 1, &g) == 0);
	REQUIRE(memory_use_parse(numa_maps, strlen(numa_maps), &topology, NULL, &g, NULL, &use) ==
		0);
	CHECK_INT(use.bytes[MEMORY_GUEST_RAM][0], 1073741824);
	CHECK_INT(use.bytes[MEMORY_GUEST_RAM][1], 3221225472);
	CHECK_INT(use.bytes[MEMORY_HEAP][0], 2560 * 4096);
	CHECK_INT(use.bytes[MEMORY_STACK][0], 16 * 4096);
	CHECK_INT(use.bytes[MEMORY_PRIVATE][1], 512 * 4096);
	CHECK_INT(use.elsewhere_bytes, 3 * 4096); /* node 5 is not in the topology */
	CHECK_INT(use.read.lines, 5);
	for (unsigned kind = 0; kind < MEMORY_KINDS; kind++)
		for (unsigned node = 0; node < 2; node++)
			sum += use.bytes[kind][node];
	CHECK_INT(sum, (UINT64_C(1048576) + 2560 + 512 + 16) * 4096);
}

static void captured_guest_by_node(struct tap *tap_)
{
	_cleanup_hostfs_ struct hostfs fs = host_captured("debian13-4node");
	struct topology topology = {
		.n_nodes = 4, .node = {{.id = 0}, {.id = 1}, {.id = 2}, {.id = 3}}};
	_cleanup_guestram_ struct guestram g = {0};
	struct memory_use use = {0};

	REQUIRE(guestram_read(&fs, 594, NULL, NULL, &g) == 0);
	REQUIRE(memory_use_read(&fs, 594, &topology, NULL, &g, NULL, &use) == 0);
	CHECK_INT(use.bytes[MEMORY_GUEST_RAM][0], 512 * 4096);
	CHECK_INT(use.bytes[MEMORY_GUEST_RAM][3], 29184 * 4096);
	CHECK_INT(use.bytes[MEMORY_HEAP][2], 2565 * 4096);
	CHECK(!use.hugetlb && !use.bound);
}

TAP_MAIN(TEST(captured_guests), TEST(captured_guest_split_in_three),
	TEST(D52_memfd_and_not_the_rest), TEST(memfd_that_mbind_split_is_one_range),
	TEST(files_in_hugepages_say_their_id), TEST(a_directory_of_two_says_no_id),
	TEST(a_file_of_its_own_path), TEST(hugetlb_memfd_and_numa_maps_that_knows_better),
	TEST(stacks_arenas_and_code_are_never_taken), TEST(the_guard_page_decides),
	TEST(what_cannot_be_told_apart_is_missing), TEST(nothing_found_is_a_condition),
	TEST(D16_policy_nodes_tell_backends_apart), TEST(D54_memory_by_kind_and_node),
	TEST(captured_guest_by_node))
