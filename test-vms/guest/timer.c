/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Sleeping is the local APIC's timer, one shot, and hlt. Every emulated APIC counts nanoseconds
 * before the divider; real ones do not, so it is measured.
 */
#include "timer.h"
#include "apic.h"
#include "clock.h"
#include "cpu.h"
#include "vcpu.h"

enum {
	WINDOW_NS = 4000000,
	SAMPLES = 8,
	NOMINAL_TICKS_PER_MS = 62500, /* 1 GHz, divided by 16 */
};

static uint32_t ticks_per_ms;

struct sample {
	uint64_t ns;
	uint32_t left;
};

/* The shortest way between two reads of the clock counts, as in clock.c. */
static struct sample sample_timer(void)
{
	struct sample best = {0, 0};
	uint64_t best_distance = UINT64_MAX;
	int i;

	for (i = 0; i < SAMPLES; i++) {
		uint64_t before = clock_ns(), after;
		uint32_t left = apic_timer_left();

		after = clock_ns();
		if (after - before < best_distance) {
			best_distance = after - before;
			best.ns = before + best_distance / 2;
			best.left = left;
		}
	}
	return best;
}

void timer_init(void)
{
	struct sample first, last;
	uint64_t ticks;

	apic_timer_silence(true);
	apic_timer_start(UINT32_MAX);
	first = sample_timer();
	while (clock_ns() - first.ns < WINDOW_NS)
		cpu_pause();
	last = sample_timer();
	apic_timer_start(0);
	apic_timer_silence(false);

	ticks = (uint64_t)(first.left - last.left) * 1000000 / (last.ns - first.ns);
	ticks_per_ms = ticks > 0 && ticks <= UINT32_MAX ? (uint32_t)ticks : NOMINAL_TICKS_PER_MS;
}

void timer_sleep_us(uint64_t us)
{
	struct vcpu *self = vcpu_self();
	volatile bool *const fired = &self->timer_fired, *const woken = &self->wake_asked;
	uint64_t ticks;

	if (us > TIMER_SLEEP_US_MAX)
		us = TIMER_SLEEP_US_MAX;
	ticks = us * ticks_per_ms / 1000;
	if (ticks == 0)
		ticks = 1;
	else if (ticks > UINT32_MAX)
		ticks = UINT32_MAX;

	*fired = false;
	if (!*woken) {
		apic_timer_start((uint32_t)ticks);
		while (!*fired && !*woken)
			cpu_wait();
		if (!*fired)
			apic_timer_start(0);
	}
	*woken = false;
}

void timer_wake(uint32_t apic_id)
{
	apic_send_wake(apic_id);
}
