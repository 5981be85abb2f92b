/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "guest.h"
#include "vcpu.h"

/* The lines on the console; on vCPU 0 only. They are queued, the caller sends them (serial.h). */
void report_version(void);
void report_messages(struct text *messages);
void report_machine(const struct guest *guest);
void report_ready(uint64_t ms);
void report_counts(const struct guest *guest, uint64_t ms);
void report_phase(const struct guest *guest, uint64_t ms);

/* Print the reason of the end, and end. */
void report_fault(const struct vcpu *vcpu) __attribute__((noreturn));
void report_stop(void) __attribute__((noreturn));
