/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Why a directory fd and not path prefixes: a replay and the live host then run the same code, with
 * no global to set and no way to forget the prefix in one place.
 *
 * Why reading in a loop into a growing buffer: files of /proc have no size, sysfs gives at most a
 * page, and numa_maps comes in pieces as the kernel walks. A file that may not be read can fail at
 * open (ordinary permissions) or only at read (ptrace checks); both must say the same.
 */
#include "controller/host/root.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define READ_FIRST 4096u

const char *host_strerror(int code)
{
	switch (code) {
	case 0:
		return "no error";
	case HOST_E_GONE:
		return "not there (any more)";
	case HOST_E_PERM:
		return "may not be read";
	case HOST_E_TOO_BIG:
		return "longer than the limit";
	case HOST_E_IO:
		return "cannot be read";
	case HOST_E_FORMAT:
		return "in an unknown format";
	case HOST_E_NOT_FOUND:
		return "does not hold what was looked for";
	default:
		break;
	}
	if (code < 0) {
		const char *text = strerrordesc_np(-code);

		if (text)
			return text;
	}
	return "unknown error";
}

/* What an errno of open, read or readdir is to a reader. */
static int condition_of_errno(int err)
{
	switch (err) {
	case ENOENT:
	case ENOTDIR:
	case ESRCH:
	case ENODEV:
	case ENXIO:
		return HOST_E_GONE;
	case EACCES:
	case EPERM:
		return HOST_E_PERM;
	case ENOMEM:
	case EMFILE:
	case ENFILE:
	case EBADF:
	case EFAULT:
		return -err;
	default:
		return HOST_E_IO;
	}
}

int hostfs_open(struct hostfs *ret, const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return condition_of_errno(errno);
	ret->fd = fd;
	return 0;
}

void hostfs_close(struct hostfs *fs)
{
	if (fs->fd >= 0)
		close(fs->fd);
	fs->fd = -1;
}

static void closep(int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

static _printf_(1, 0) char *make_path(const char *fmt, va_list ap)
{
	char *path;
	size_t skip;

	if (vasprintf(&path, fmt, ap) < 0)
		return NULL;
	skip = strspn(path, "/");
	memmove(path, path + skip, strlen(path + skip) + 1);
	if (!path[0]) {
		free(path);
		return strdup(".");
	}
	return path;
}

static int read_all(int fd, size_t limit, char **ret_text, size_t *ret_len)
{
	_cleanup_free_ char *buf = NULL;
	size_t size = 0, len = 0;

	for (;;) {
		ssize_t n;

		if (size - len < READ_FIRST) {
			/* one byte of room for the NUL, and one to see that the limit is passed */
			size_t larger = size ? size * 2 : READ_FIRST * 2;
			char *p;

			larger = MIN2(larger, limit + READ_FIRST * 2);
			p = larger > size ? realloc(buf, larger) : NULL;
			if (!p)
				return -ENOMEM;
			buf = p;
			size = larger;
		}
		n = read(fd, buf + len, size - len - 1);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return condition_of_errno(errno);
		if (n == 0)
			break;
		len += (size_t)n;
		if (len > limit)
			return HOST_E_TOO_BIG;
	}
	buf[len] = '\0';
	*ret_text = TAKE_PTR(buf);
	if (ret_len)
		*ret_len = len;
	return 0;
}

int hostfs_read(const struct hostfs *fs, size_t limit, char **ret_text, size_t *ret_len,
	const char *fmt, ...)
{
	_cleanup_free_ char *path = NULL;
	_cleanup_(closep) int fd = -1;
	va_list ap;

	va_start(ap, fmt);
	path = make_path(fmt, ap);
	va_end(ap);
	if (!path)
		return -ENOMEM;
	/* O_NONBLOCK: a captured tree may hold a FIFO by mistake, and that must not hang us */
	fd = openat(fs->fd, path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0)
		return condition_of_errno(errno);
	return read_all(fd, limit, ret_text, ret_len);
}

bool hostfs_exists(const struct hostfs *fs, const char *fmt, ...)
{
	_cleanup_free_ char *path = NULL;
	va_list ap;

	va_start(ap, fmt);
	path = make_path(fmt, ap);
	va_end(ap);
	return path && faccessat(fs->fd, path, F_OK, AT_EACCESS) == 0;
}

void host_names_clear(struct host_names *names)
{
	for (size_t i = 0; i < names->n; i++)
		free(names->name[i]);
	free(names->name);
	*names = (struct host_names){0};
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void closedirp(DIR **dir)
{
	if (*dir)
		closedir(*dir);
}

static int names_add(struct host_names *names, size_t *size, const char *name)
{
	if (names->n == *size) {
		size_t larger = *size ? *size * 2 : 32;
		char **p = reallocarray(names->name, larger, sizeof(*p));

		if (!p)
			return -ENOMEM;
		names->name = p;
		*size = larger;
	}
	names->name[names->n] = strdup(name);
	if (!names->name[names->n])
		return -ENOMEM;
	names->n++;
	return 0;
}

static int list_all(DIR *dir, size_t limit, struct host_names *names)
{
	size_t size = 0;

	for (;;) {
		const struct dirent *entry;
		int r;

		errno = 0;
		entry = readdir(dir);
		if (!entry && errno)
			return condition_of_errno(errno);
		if (!entry)
			return 0;
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		if (names->n == limit)
			return HOST_E_TOO_BIG;
		r = names_add(names, &size, entry->d_name);
		if (r)
			return r;
	}
}

static int open_dir(const struct hostfs *fs, const char *path, DIR **ret)
{
	int fd = openat(fs->fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r;

	if (fd < 0)
		return condition_of_errno(errno);
	*ret = fdopendir(fd);
	if (*ret)
		return 0;
	r = condition_of_errno(errno);
	close(fd);
	return r;
}

int hostfs_list(const struct hostfs *fs, size_t limit, struct host_names *ret, const char *fmt, ...)
{
	_cleanup_host_names_ struct host_names names = {0};
	_cleanup_free_ char *path = NULL;
	_cleanup_(closedirp) DIR *dir = NULL;
	va_list ap;
	int r;

	va_start(ap, fmt);
	path = make_path(fmt, ap);
	va_end(ap);
	if (!path)
		return -ENOMEM;
	r = open_dir(fs, path, &dir);
	if (r)
		return r;
	r = list_all(dir, limit, &names);
	if (r)
		return r;
	if (names.n)
		qsort(names.name, names.n, sizeof(*names.name), compare_names);
	*ret = names;
	names = (struct host_names){0};
	return 0;
}
