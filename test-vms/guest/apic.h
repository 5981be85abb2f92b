/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum {
	APIC_VECTOR_TIMER = 0x40,
	APIC_VECTOR_WAKE = 0x41,
	APIC_VECTOR_SPURIOUS = 0xff,
};

/* Chooses x2APIC if the CPU has it; once, on vCPU 0, before apic_enable(). */
void apic_init(void);

/* Switches the calling vCPU's local APIC on, with its timer armed for nothing. */
void apic_enable(void);

uint32_t apic_id(void);
void apic_end_of_interrupt(void);
void apic_send_init(uint32_t to_id);
void apic_send_startup(uint32_t to_id, uint32_t address);
void apic_send_wake(uint32_t to_id);

/* The timer counts down once from `ticks`, then interrupts; 0 stops it. */
void apic_timer_start(uint32_t ticks);

/* A silent timer counts without interrupting at the end. */
void apic_timer_silence(bool silent);
uint32_t apic_timer_left(void);
