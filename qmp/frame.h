/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The receive buffer: bytes go in as they come, whole JSON objects come out. Private to libqmp.
 *
 * Where a message ends is found by counting brackets outside strings, not by line ends, since a
 * reply may be pretty-printed over many lines. Each byte is looked at once, however the stream was
 * cut, and json-c sees whole messages only.
 */
#pragma once

#include <json-c/json.h>

#include "qmp/error.h"

/* Each value costs json-c up to some hundred bytes, whatever its text costs. */
#define FRAME_VALUES_MAX (512u << 10)
#define FRAME_CONTAINERS_MAX (64u << 10)
#define FRAME_DEPTH_MAX 1024u

struct frame {
	char *buf; /* own */
	size_t size, start, scanned, end;
	size_t stop; /* scanning goes up to here */
	size_t bytes_max;
	unsigned depth_max;
	struct json_tokener *tokener; /* own */
	/* of the message at `start` */
	unsigned depth, values, containers;
	bool in_string, escaped;
	unsigned char utf8_more, utf8_low, utf8_high; /* what the next byte of a character may be */
	unsigned char lists[FRAME_DEPTH_MAX / 8];     /* bit by level: a list, not an object */
};

/* @depth_max: 1 to FRAME_DEPTH_MAX. -ENOMEM */
int qmp_frame_init(struct frame *f, size_t bytes_max, unsigned depth_max);
void qmp_frame_deinit(struct frame *f);
/* Forgets what is in it. */
void qmp_frame_reset(struct frame *f);

/* Room for at least one byte behind what is there: *ret_room bytes at *ret_at. Returns 0, -ENOMEM.
 */
int qmp_frame_room(struct frame *f, char **ret_at, size_t *ret_room);
/* @len of them have been filled. */
void qmp_frame_filled(struct frame *f, size_t len);

/*
 * The next whole message, or *ret = NULL if there is none yet. Owned by the caller.
 * Returns 0, QMP_E_SYNTAX, _UTF8, _TOO_DEEP, _TOO_BIG, _TOO_MANY (*err is set; the frame is of no
 * use any more until it is reset), or -ENOMEM.
 */
int qmp_frame_next(struct frame *f, struct json_object **ret, struct qmp_error *err);

/* A message has begun and not ended. */
bool qmp_frame_partial(const struct frame *f);
