/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What qmp-cli was asked for. Private to it.
 */
#pragma once

#include <json-c/json.h>
#include <stdbool.h>
#include <stdint.h>

enum cli_exit {
	CLI_OK,
	CLI_ERROR,
	CLI_USAGE,
	CLI_UNREACHED,
	CLI_TIMEOUT,
	CLI_BROKEN,
};

#define CLI_TIMEOUT_DEFAULT 10u
#define CLI_TIMEOUT_MAX (UINT64_C(365) * 86400)
#define CLI_JSON_BYTES_MAX ((size_t)1 << 20)

struct cli_options {
	bool pretty, oob, events;
	const char *names;             /* of events, separated by commas; NULL: all */
	uint64_t count;                /* of events; 0: no end */
	uint64_t timeout_s;            /* 0: none */
	bool has_timeout;              /* it was given */
	const char *path;              /* the socket */
	const char *command;           /* NULL: none, events only */
	struct json_object *arguments; /* own; NULL: none */
};

/*
 * Reads stdin where the arguments are "-". Messages are printed.
 * Returns 0, one of these, or -ENOMEM.
 */
enum {
	CLI_OPTIONS_E_EXIT = 1, /* all is done (--help) */
	CLI_OPTIONS_E_USAGE,
};
int cli_options_parse(int argc, char **argv, struct cli_options *ret);
