/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <stdbool.h>

#include "text.h"

void serial_init(void);

/* Queues the text for the console; returns false, and queues nothing, if it does not fit. */
bool serial_queue(const struct text *text);

/* Hands the port what its FIFO takes, at most 16 characters. */
void serial_send_some(void);

bool serial_is_pending(void);

/* Sends all that is queued, unless the other side does not take it. */
void serial_flush(void);
