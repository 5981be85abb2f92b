/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "controller/host/guestram.h"
#include "tests/fuzz/target.h"

/* Backends of the sizes of some mappings, alone or joined, so that there is something to find. */
static void guess_backends(const struct map_list *maps, struct ram_backends *ret)
{
	for (size_t i = 0; i < maps->n && i < 6; i++) {
		struct ram_backend b = {.type = (enum ram_backend_type)(i % 3)};
		size_t last = MIN2(i + i % 3, maps->n - 1);

		b.size_bytes = maps->map[last].end - maps->map[i].start;
		snprintf(b.id, sizeof(b.id), "ram%zu", i);
		if (ram_backends_add(ret, &b))
			return;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct huge_mounts mounts = {.n = 1, .mount = {{"/dev/hugepages", 2 << 20}}};
	_cleanup_ram_backends_ struct ram_backends backends = {0};
	_cleanup_map_list_ struct map_list maps = {0};
	_cleanup_guestram_ struct guestram g = {0};
	uint64_t total = 0;

	if (maps_parse((const char *)data, size, &maps))
		return 0;
	for (size_t i = 0; i < maps.n; i++) {
		PROMISE(maps.map[i].start < maps.map[i].end);
		PROMISE(i == 0 || maps.map[i - 1].end <= maps.map[i].start);
		PROMISE(strlen(maps.map[i].path) <= size && strlen(maps.map[i].perms) == 4);
		PROMISE(map_list_find(&maps, maps.map[i].start) == &maps.map[i]);
	}
	guess_backends(&maps, &backends);
	if (guestram_find(&maps, &backends, size % 2 ? &mounts : NULL, NULL, &g))
		return 0;
	PROMISE(g.n > 0);
	for (size_t i = 0; i < g.n; i++) {
		const struct map *m = map_list_find(&maps, g.range[i].start);

		PROMISE(g.range[i].start < g.range[i].end);
		PROMISE(i == 0 || g.range[i - 1].end <= g.range[i].start);
		PROMISE(m && m->start == g.range[i].start && strncmp(m->perms, "rw-", 3) == 0);
		PROMISE(m->path[0] != '[');
		total += g.range[i].end - g.range[i].start;
	}
	PROMISE(total == g.total_bytes);
	PROMISE(g.backends_missing <= backends.n);
	return 0;
}
