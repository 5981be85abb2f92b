/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Opening the hosts of tests/hosts: captured ones lie in the source tree, made ones in the build
 * tree (NUMAHERD_HOSTS).
 */
#pragma once

#include "controller/host/root.h"
#include "tests/tap.h"

static inline struct hostfs host_open(const char *dir, const char *below, const char *name)
{
	struct hostfs fs = {.fd = -1};
	const char *top = getenv(dir);
	char path[4096];

	snprintf(path, sizeof(path), "%s%s/%s", top ? top : ".", below, name);
	if (hostfs_open(&fs, path) != 0)
		printf("# cannot open the host %s\n", path);
	return fs;
}

static inline struct hostfs host_captured(const char *name)
{
	return host_open("NUMAHERD_SOURCE_ROOT", "/tests/hosts", name);
}

static inline struct hostfs host_made(const char *name)
{
	return host_open("NUMAHERD_HOSTS", "", name);
}

#define IDS(s, want)                                                      \
	do {                                                              \
		char ids_[1024];                                          \
		CHECK_STR(idset_format((s), ids_, sizeof(ids_)), (want)); \
	} while (0)
