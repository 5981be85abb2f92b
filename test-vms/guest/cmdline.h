/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "config.h"
#include "text.h"

enum {
	CMDLINE_E_BAD = 1, /* a token cannot be obeyed; the messages end with the error line */
	CMDLINE_LENGTH_MAX = 4095, /* what QEMU's PVH loader has room for */
};

/*
 * Reads the command line of a guest with `vcpus` vCPUs (1 to GUEST_VCPUS_MAX). Appends whole lines
 * to `messages`: a warning for each unknown key and, on failure, one error.
 *
 * Returns 0, or CMDLINE_E_BAD with *ret_config untouched.
 */
int cmdline_parse(
	const char *line, uint32_t vcpus, struct config *ret_config, struct text *messages);

/* Returns the name that pattern= knows it by. */
const char *cmdline_pattern_name(enum pattern pattern);
