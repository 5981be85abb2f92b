/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <stdint.h>

#include "text.h"

/*
 * Finds a clock, which may take some 25 ms of calibration. Adds a warning line to `messages` if
 * there is nothing to calibrate by.
 */
void clock_init(struct text *messages);

/* Returns nanoseconds since some moment before clock_init(); on vCPU 0 only. */
uint64_t clock_ns(void);
