/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "platform.h"

enum {
	SMP_E_NOT_STARTED = 1,
};

/*
 * Starts all vCPUs but the calling one and waits for them.
 *
 * Returns 0, or SMP_E_NOT_STARTED with an error line in `messages`.
 */
int smp_start(const struct platform *platform, struct text *messages);

/* Wakes all of them from their sleep. */
void smp_wake(const struct platform *platform);
