/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Where hugetlbfs is mounted and with which page size.
 */
#pragma once

#include "controller/host/root.h"

#define HUGE_MOUNTS_MAX 16u
struct huge_mount {
	char path[256];
	uint64_t page_bytes;
};
struct huge_mounts {
	unsigned n;
	struct huge_mount mount[HUGE_MOUNTS_MAX];
};
/*
 * From /proc/PID/mounts, since libvirt gives a QEMU a mount namespace of its own.
 * @huge_default_bytes: for mounts that do not say it.
 * Returns 0 (perhaps with none) or what hostfs_read() returns.
 */
int huge_mounts_read(
	const struct hostfs *fs, pid_t pid, uint64_t huge_default_bytes, struct huge_mounts *ret);
void huge_mounts_parse(
	const char *text, size_t len, uint64_t huge_default_bytes, struct huge_mounts *ret);

/* The mount that the path is on, or NULL. */
const struct huge_mount *huge_mounts_find(const struct huge_mounts *mounts, const char *path);
