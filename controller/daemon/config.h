/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The host configuration, by default /etc/numaherd/numaherd.xml:
 *
 *   <numaherd xmlns="urn:numaherd:host:1">
 *     <libvirt uri="qemu:///system" monitor="never"/>
 *     <qemu socket="/var/run/qemu-server/[0-9]*.qmp" share="yes"/>
 *   </numaherd>
 */
#pragma once

#include "controller/virt/qemu.h"

#define CONFIG_PATH_DEFAULT "/etc/numaherd/numaherd.xml"
#define CONFIG_NAMESPACE "urn:numaherd:host:1"
#define CONFIG_BYTES_MAX ((size_t)1 << 20)
#define CONFIG_WHY_MAX 512

struct config {
	bool no_libvirt;      /* uri="none" */
	char *libvirt_uri;    /* NULL: libvirt's own default; own */
	bool libvirt_monitor; /* monitor="needed": may ask a monitor through libvirt, which taints
			       */
	unsigned n_sources;
	struct qemu_source *source; /* own */
};
void config_clear(struct config *c);

enum {
	CONFIG_E_MISSING = 1, /* no such file */
	CONFIG_E_UNREADABLE,
	CONFIG_E_INVALID,
};
/*
 * Reads a file on top of what *c says already; *c is changed on 0 only.
 * @why: CONFIG_WHY_MAX bytes; on a condition "FILE:LINE: what is wrong and what is expected".
 * Returns 0, a condition, or -ENOMEM.
 */
int config_read(const char *path, struct config *c, char *why);
/* The same from memory; @path is for messages. */
int config_parse(const char *path, const char *xml, size_t len, struct config *c, char *why);
/* NULL, or a sentence: why this cannot be the place of QMP sockets. */
const char *config_pattern_problem(const char *pattern);
/* Adds a source; copies the pattern. -ENOMEM; -ENOSPC: QEMU_SOURCES_MAX are there. */
int config_add_source(struct config *c, const char *pattern, bool share);
