/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The first instructions of an AP, in real mode. smp.c copies them to BOOT_TRAMPOLINE, so they
 * refer to themselves relative to their start; everything else is in the image, where the
 * assembler put it.
 */
#include "boot.h"

#define CR0_PROTECTED 0x11 /* ET, PE */

	.section .rodata
	.code16
	.globl trampoline_start
trampoline_start:
	cli
	cld
	movw %cs, %ax
	movw %ax, %ds
	lgdtl gdt_pointer - trampoline_start
	movl $CR0_PROTECTED, %eax
	movl %eax, %cr0
	ljmpl $BOOT_SELECTOR_CODE32, $ap_entry32

	.balign 4
gdt_pointer:
	/* A copy of its own: that of boot.S lies above 1 MiB, out of reach from here. */
	.word BOOT_GDT_LIMIT
	.long boot_gdt
	.globl trampoline_end
trampoline_end:

	.section .note.GNU-stack, "", @progbits
