/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Varlink's framing: JSON objects, each ended by one NUL byte. A buffer with a limit that grows as
 * bytes arrive and hands out whole messages.
 */
#pragma once

#include <json-c/json.h>

#include "policy/base.h"

/* Of a request; replies may be larger, see the reader's limit. */
#define FRAME_BYTES_MAX (1u << 20)
#define FRAME_DEPTH_MAX 32

enum {
	FRAME_E_NONE = 1, /* no whole message yet */
	FRAME_E_TOO_BIG,  /* more than the limit without an end */
	FRAME_E_INVALID,  /* not one JSON object, or nested too deeply */
};

struct frame_reader {
	char *data; /* own */
	size_t used, size, limit;
};

void frame_reader_init(struct frame_reader *r, size_t limit);
void frame_reader_clear(struct frame_reader *r);
/* Appends bytes. FRAME_E_TOO_BIG, -ENOMEM. */
int frame_reader_feed(struct frame_reader *r, const void *data, size_t len);
/* Takes the next message: 0 and *ret (the caller puts it), FRAME_E_NONE, FRAME_E_INVALID (that
 * message is dropped), -ENOMEM. */
int frame_reader_next(struct frame_reader *r, struct json_object **ret);
