/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Runs one transcript (README.md) once, against a client and a peer in memory.
 */
#pragma once

#include "tests/qmp/peer.h"

/* How the peer's bytes arrive. */
enum script_how {
	SCRIPT_WHOLE,  /* all that one side says before the other one is heard, in one piece */
	SCRIPT_CUT,    /* ... in two pieces, cut behind byte `at` of all that the peer says */
	SCRIPT_BYTES,  /* byte by byte */
	SCRIPT_HANGUP, /* the peer closes behind byte `at`: no expectations, but no promise broken
			*/
};

struct script_result {
	bool failed; /* and said why on stdout, in a TAP comment */
	size_t peer_bytes;
};

struct script_result script_run(const char *name, const char *text, enum script_how how, size_t at);
