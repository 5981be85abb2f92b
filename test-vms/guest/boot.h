/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Numbers that the assembler and the compiler must agree on. */
#pragma once

/* Each vCPU has one slot, its data below and its stack above; a power of two, see vcpu_self(). */
#define BOOT_SLOT_BYTES 16384

/* Where APs start in real mode: free conventional memory below 1 MiB, a multiple of 4 KiB. */
#define BOOT_TRAMPOLINE 0x8000

#define BOOT_SELECTOR_CODE64 0x08
#define BOOT_SELECTOR_DATA 0x10
#define BOOT_SELECTOR_CODE32 0x18
#define BOOT_GDT_LIMIT (4 * 8 - 1)

/* The distance from one interrupt vector's entry to the next. */
#define BOOT_STUB_BYTES 16

/* An APIC ID that no vCPU of ours has. */
#define BOOT_NO_VCPU 0xff
