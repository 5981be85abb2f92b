/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Every file of the host is read below one directory: "/" on a live host, a captured tree in a
 * replay. Paths are relative to it; slashes at their beginning are skipped, so "/proc/stat" and
 * "proc/stat" are the same file. Files are only ever opened for reading.
 */
#pragma once

#include <sys/types.h>

#include "policy/base.h"

/*
 * The conditions of all readers in controller/host/. Every one of them is normal life: a thread
 * ended, a kernel was built without an option, a file is in a format from the future.
 */
enum {
	HOST_E_GONE = 1,  /* no such file, process or thread (ENOENT, ENOTDIR, ESRCH, ENODEV) */
	HOST_E_PERM,      /* may not be read (EACCES, EPERM), at open or at read */
	HOST_E_TOO_BIG,   /* longer than the limit */
	HOST_E_IO,        /* another error while reading */
	HOST_E_FORMAT,    /* read, but not in a format this reader knows */
	HOST_E_NOT_FOUND, /* read, but what was looked for is not in it */
};

/* A few words for people, never NULL; also for negative errno values and 0. */
const char *host_strerror(int code);

struct hostfs {
	int fd; /* of the directory; own; -1 when closed */
};

/*
 * @path: "/" or the top of a captured tree.
 * Returns 0, HOST_E_GONE, HOST_E_PERM, HOST_E_IO or a negative errno.
 */
int hostfs_open(struct hostfs *ret, const char *path);
/* Safe on a closed one; leaves fd at -1. */
void hostfs_close(struct hostfs *fs);
#define _cleanup_hostfs_ _cleanup_(hostfs_close)

/* Limits that fit the usual kinds of files. */
#define HOST_LIMIT_SMALL ((size_t)64 << 10) /* one value, one line, status files */
#define HOST_LIMIT_MEDIUM ((size_t)4 << 20) /* sched, cmdline, task lists */
#define HOST_LIMIT_MAPS ((size_t)128 << 20) /* maps, numa_maps: 65530 lines of 2 KB */

/*
 * Reads a whole file.
 * @limit: greatest number of bytes that are accepted; one more is HOST_E_TOO_BIG.
 * @ret_text: the bytes and one NUL behind them (not counted; the text may hold NULs of its own);
 *            the caller frees it.
 * @ret_len: may be NULL.
 * Returns 0, HOST_E_GONE, HOST_E_PERM, HOST_E_TOO_BIG, HOST_E_IO or a negative errno.
 */
int hostfs_read(const struct hostfs *fs, size_t limit, char **ret_text, size_t *ret_len,
	const char *fmt, ...) _printf_(5, 6);

/* Whether the path exists (file or directory). */
bool hostfs_exists(const struct hostfs *fs, const char *fmt, ...) _printf_(2, 3);

struct host_names {
	size_t n;
	char **name; /* sorted by strcmp; own */
};
void host_names_clear(struct host_names *names);
#define _cleanup_host_names_ _cleanup_(host_names_clear)

/*
 * The names in a directory without "." and "..".
 * @limit: greatest number of names; one more is HOST_E_TOO_BIG.
 * Returns 0, HOST_E_GONE, HOST_E_PERM, HOST_E_TOO_BIG, HOST_E_IO or a negative errno.
 */
int hostfs_list(const struct hostfs *fs, size_t limit, struct host_names *ret, const char *fmt, ...)
	_printf_(4, 5);
