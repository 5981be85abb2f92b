/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Fills the table that all vCPUs share and keeps the PIC silent; once, on vCPU 0. */
void interrupts_init(void);

/* Makes the calling vCPU use the table. */
void interrupts_enable_table(void);
