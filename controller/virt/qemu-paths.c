/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Where QMP sockets are. Why a glob each time: sockets come and go with their QEMUs, and a
 * directory that does not exist yet may exist at the next look.
 */
#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <string.h>

#include "controller/virt/qemu.h"

void qemu_paths_clear(struct qemu_paths *p)
{
	free(p->path);
	memset(p, 0, sizeof(*p));
}

static void note_odd(struct qemu_paths *p, const char *text, const char *path)
{
	if (!p->n_odd++)
		snprintf(p->odd, sizeof(p->odd), "%.100s: %s", path, text);
}

static bool has_path(const struct qemu_paths *p, const char *path)
{
	for (unsigned i = 0; i < p->n; i++)
		if (strcmp(p->path[i].path, path) == 0)
			return true;
	return false;
}

/* Waiting in the backlog of such a one would only be in the way when libvirtd starts again. */
static bool is_libvirts(const char *path)
{
	static const char *const places[] = {
		"/var/lib/libvirt/", "/run/libvirt/", "/var/run/libvirt/"};

	for (size_t i = 0; i < ARRAY_LEN(places); i++)
		if (strncmp(path, places[i], strlen(places[i])) == 0)
			return true;
	return false;
}

/* Tells glob() to stop where what it cannot see may be there all the same. */
static int on_glob_error(const char *path, int error)
{
	return error == EMFILE || error == ENFILE || error == ENOMEM;
}

static int add_path(struct qemu_paths *p, const char *path, bool share)
{
	size_t len = strlen(path);
	struct qemu_path *grown;

	if (len >= VIRT_SOCKET_MAX) {
		note_odd(p, "longer than a socket's path can be (107 bytes)", path);
		return 0;
	}
	if (p->n == QEMU_SOCKETS_MAX) {
		note_odd(p, "more than 4096 sockets, this one is left out", path);
		return 0;
	}
	if (is_libvirts(path)) {
		note_odd(p, "a monitor of libvirt's own, which libvirt holds", path);
		return 0;
	}
	if (has_path(p, path))
		return 0;
	grown = reallocarray(p->path, p->n + 1, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	p->path = grown;
	memcpy(p->path[p->n].path, path, len + 1);
	p->path[p->n++].share = share;
	return 0;
}

int qemu_paths_find(const struct qemu_source *source, unsigned n, struct qemu_paths *ret)
{
	struct qemu_paths p = {0};
	int r = 0;

	for (unsigned i = 0; i < n && r == 0; i++) {
		glob_t found = {0};

		/* directories that are not there or cannot be read match nothing */
		switch (glob(source[i].pattern, 0, on_glob_error, &found)) {
		case GLOB_NOSPACE:
			r = -ENOMEM;
			break;
		case GLOB_ABORTED:
			p.incomplete = true;
			note_odd(&p, "cannot be looked at, out of files or memory",
				source[i].pattern);
			break;
		}
		for (size_t k = 0; k < found.gl_pathc && r == 0; k++)
			r = add_path(&p, found.gl_pathv[k], source[i].share);
		globfree(&found);
	}
	if (r < 0) {
		qemu_paths_clear(&p);
		return r;
	}
	*ret = p;
	return 0;
}
