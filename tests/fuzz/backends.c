/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A command line; '\n' stands for the NUL between arguments as well, to keep corpora readable. */
#include "controller/host/backends.h"
#include "controller/host/hugemounts.h"
#include "tests/fuzz/target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_ram_backends_ struct ram_backends list = {0};
	_cleanup_free_ char *text = malloc(size ? size : 1);
	struct huge_mounts mounts;

	if (!text)
		return 0;
	for (size_t i = 0; i < size; i++)
		text[i] = data[i] == '\n' ? '\0' : (char)data[i];
	huge_mounts_parse((const char *)data, size, 2 << 20, &mounts);
	PROMISE(mounts.n <= HUGE_MOUNTS_MAX);
	if (ram_backends_parse_cmdline(text, size, &list))
		return 0;
	PROMISE(list.n > 0 && list.n <= RAM_BACKENDS_MAX);
	for (size_t i = 0; i < list.n; i++) {
		PROMISE(list.backend[i].size_bytes > 0);
		PROMISE(strlen(list.backend[i].id) < RAM_BACKEND_ID_MAX);
		PROMISE(strlen(list.backend[i].path) < RAM_BACKEND_PATH_MAX);
	}
	return 0;
}
