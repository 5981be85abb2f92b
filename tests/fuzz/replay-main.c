/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Runs a fuzz target over every file of a directory, one TAP test each, so that what a fuzzer has
 * found once is tried in every build, with any compiler.
 */
#include "tests/fuzz/target.h"

#include "controller/host/root.h"

#define FILE_MAX ((size_t)1 << 20)

static int run(const struct hostfs *dir, const char *name)
{
	_cleanup_free_ char *text = NULL;
	_cleanup_free_ uint8_t *exact = NULL;
	size_t len;
	int r = hostfs_read(dir, FILE_MAX, &text, &len, "%s", name);

	if (r)
		return r;
	/* without the NUL that hostfs_read() adds: a read behind the end is then seen */
	exact = malloc(len ? len : 1);
	if (!exact)
		return -1;
	memcpy(exact, text, len);
	LLVMFuzzerTestOneInput(exact, len);
	/* and half of it, since the kernel's files get cut */
	LLVMFuzzerTestOneInput(exact, len / 2);
	return 0;
}

int main(int argc, char **argv)
{
	_cleanup_host_names_ struct host_names names = {0};
	_cleanup_hostfs_ struct hostfs dir = {.fd = -1};
	int failed = 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc != 2 || hostfs_open(&dir, argv[1]) || hostfs_list(&dir, 100000, &names, ".") ||
		names.n == 0) {
		printf("1..0 # no corpus\n");
		return 1;
	}
	printf("1..%zu\n", names.n);
	for (size_t i = 0; i < names.n; i++) {
		int r = run(&dir, names.name[i]);

		printf("%s %zu - %s\n", r ? "not ok" : "ok", i + 1, names.name[i]);
		failed |= r != 0;
	}
	return failed;
}
