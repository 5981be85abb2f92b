/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The daemon's command line.
 */
#pragma once

#include "controller/daemon/config.h"
#include "policy/settings.h"

#define OPTIONS_SOCKET_DEFAULT "/run/numaherd/control.sock"

struct options {
	bool dry_run;
	bool keep_on_exit; /* leave pins as they are when the daemon stops */
	uint64_t tick_ns;
	uint64_t rate_bytes;
	unsigned batch_pages;
	int log_level;
	struct config config; /* own: the file's words, and the command line's on top of them */
	const char *root;     /* "/"; points into argv */
	const char *socket;
	struct settings settings;
};

enum {
	OPTIONS_E_EXIT = 1, /* --help or --version: said, now exit 0 */
	OPTIONS_E_USAGE,    /* said on stderr: exit 2 */
};
/*
 * Prints to stdout or stderr what there is to say. Returns 0 or one of the above; the caller clears
 * ret->config in any case.
 */
int options_parse(int argc, char **argv, struct options *ret);
