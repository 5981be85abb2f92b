/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <stdint.h>

/* Measures the local APIC's timer against the clock, 4 ms; once, on vCPU 0. */
void timer_init(void);

/*
 * Halts the calling vCPU for `us` microseconds (at most TIMER_SLEEP_US_MAX), or until it is woken.
 * Interrupts must be off, and are off again after.
 */
void timer_sleep_us(uint64_t us);

/* Makes a vCPU return from its sleep, or from its next one. */
void timer_wake(uint32_t apic_id);

#define TIMER_SLEEP_US_MAX 20000000u
