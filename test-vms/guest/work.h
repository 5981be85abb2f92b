/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "guest.h"
#include "vcpu.h"

/* Writes each page of the vCPU's private region and of its slice of the shared one. */
void work_populate(const struct guest *guest, struct vcpu *vcpu);

/* Makes the touches of one burst and counts them. */
void work_burst(const struct guest *guest, struct vcpu *vcpu, const struct vcpu_touch *how);

/* What vCPUs other than 0 do from their start on. */
void work_run(const struct guest *guest, struct vcpu *vcpu) __attribute__((noreturn));
