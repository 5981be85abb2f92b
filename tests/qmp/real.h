/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The tests of real-plug.c, in the order in which real.c runs them. */
#pragma once

#include "tests/qmp/real-qemu.h"
#include "tests/tap.h"

/* Each vCPU: its index, a living thread of QEMU, and that thread's name. */
void real_check_cpus(struct tap *tap_, const struct real *r, const struct qmp_cpus *cpus);

void real_its_memory_is_what_it_was_given(struct tap *tap_, struct real *r);
void real_a_dimm_is_added(struct tap *tap_, struct real *r);
void real_a_dimm_goes_when_the_guest_ejects_it(struct tap *tap_, struct real *r);
void real_a_vcpu_is_added_to_a_slot_that_is_free(struct tap *tap_, struct real *r);
void real_a_vcpu_stays_when_no_guest_lets_it_go(struct tap *tap_, struct real *r);
void real_a_vcpu_goes_when_the_guest_ejects_it(struct tap *tap_, struct real *r);
