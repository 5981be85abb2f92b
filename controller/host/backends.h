/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Which memory a QEMU was told to give its guest: its memory backends, from its command line. The
 * same list can be filled from domain XML by whoever has it.
 *
 * Nodes are host node ids.
 */
#pragma once

#include "controller/host/root.h"
#include "policy/idset.h"

#define RAM_BACKENDS_MAX 1024u
#define RAM_BACKEND_ID_MAX 64
#define RAM_BACKEND_PATH_MAX 512

enum ram_backend_type {
	RAM_BACKEND_ANY, /* not known */
	RAM_BACKEND_RAM,
	RAM_BACKEND_MEMFD,
	RAM_BACKEND_FILE,
	RAM_BACKEND_SHM,
};

struct ram_backend {
	char id[RAM_BACKEND_ID_MAX]; /* "ram-node0", "pc.ram"; "" if it has none */
	enum ram_backend_type type;
	uint64_t size_bytes;
	bool share;
	bool hugetlb;                    /* memfd of huge pages */
	uint64_t huge_bytes;             /* their size; 0: the host's default */
	char path[RAM_BACKEND_PATH_MAX]; /* mem-path: a file or a directory; "" if there is none */
	struct idset host_nodes;         /* host-nodes, whatever its policy; empty if it has none */
};

struct ram_backends {
	size_t n;
	struct ram_backend *backend; /* own */
	unsigned anomalies;          /* memory backends without a size that can be read */
};
void ram_backends_clear(struct ram_backends *list);
#define _cleanup_ram_backends_ _cleanup_(ram_backends_clear)

/* Appends a copy. Returns 0, HOST_E_TOO_BIG or -ENOMEM. */
int ram_backends_add(struct ram_backends *list, const struct ram_backend *backend);

/*
 * Adds what QEMU itself says it has, unless it is there: by its id, or as one without id of the
 * same size, which then gets the id (so that it stands for one backend only). Returns 0,
 * HOST_E_TOO_BIG or -ENOMEM.
 */
int ram_backends_complete(struct ram_backends *list, const char *id, uint64_t size_bytes);

/*
 * Reads `-object` (JSON or key=value), `-m`, `-mem-path`. If neither the machine nor its -numa
 * nodes name a backend, the size of -m is one backend without id.
 * @text, @len: as thread_cmdline_read() gives them.
 * Returns 0, HOST_E_NOT_FOUND (no memory size in it) or -ENOMEM.
 */
int ram_backends_parse_cmdline(const char *text, size_t len, struct ram_backends *ret);
/* The same for a running process; also what thread_cmdline_read() returns. */
int ram_backends_read(const struct hostfs *fs, pid_t pid, struct ram_backends *ret);
