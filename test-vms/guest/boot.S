/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Entry of the first vCPU by the PVH protocol: 32-bit protected mode, flat segments, no paging,
 * %ebx holds the address of hvm_start_info. Maps the low 4 GiB one to one with 2 MiB pages, goes
 * to 64 bits and calls guest_main(start_info).
 *
 * The other vCPUs come from trampoline.S to ap_entry32 and end up in ap_main(index).
 */
#include "boot.h"

#define NOTE_PHYS32_ENTRY 18

#define PAGE_PRESENT_WRITABLE 0x3
#define PAGE_LARGE 0x80
#define PAGE_UNCACHED 0x18
#define LAPIC_ENTRY 0x7f7 /* 0xfee00000 >> 21 */

#define CR4_PAE 0x20
#define MSR_EFER 0xc0000080
#define EFER_LME_BIT 8
/* PG, WP, NE, ET, MP, PE; CD and NW, which INIT sets, are clear. */
#define CR0_LONG_MODE 0x80010033
#define CPUID_LONG_MODE_BIT 29

	.section .note.pvh, "a", @note
	/* QEMU pads the name to the segment's alignment, so that must be 4, and reads 8 bytes. */
	.balign 4
	.long 4
	.long 8
	.long NOTE_PHYS32_ENTRY
	.asciz "Xen"
	.quad pvh_entry

/* Both kinds of vCPU go to 64 bits from here; %edi and %ebp are kept. */
.macro enter_long_mode target
	movl $CR4_PAE, %eax
	movl %eax, %cr4
	movl $page_map, %eax
	movl %eax, %cr3
	movl $MSR_EFER, %ecx
	rdmsr
	btsl $EFER_LME_BIT, %eax
	wrmsr
	movl $CR0_LONG_MODE, %eax
	movl %eax, %cr0
	ljmpl $BOOT_SELECTOR_CODE64, $\target
.endm

.macro load_data_segments
	movl $BOOT_SELECTOR_DATA, %eax
	movl %eax, %ds
	movl %eax, %es
	movl %eax, %ss
	movl %eax, %fs
	movl %eax, %gs
.endm

	.section .text.boot, "ax", @progbits
	.code32
	.globl pvh_entry
pvh_entry:
	cli
	cld
	movl %ebx, %ebp

	/* A reset leaves memory as it was, and not every loader clears .bss again. */
	movl $image_bss_start, %edi
	movl $image_bss_end, %ecx
	subl %edi, %ecx
	shrl $2, %ecx
	xorl %eax, %eax
	rep stosl

	movl $0x80000001, %eax
	cpuid
	btl $CPUID_LONG_MODE_BIT, %edx
	jnc stop

	movl $(page_directory_pointers + PAGE_PRESENT_WRITABLE), page_map
	movl $(page_directories + PAGE_PRESENT_WRITABLE), %eax
	xorl %ecx, %ecx
1:	movl %eax, page_directory_pointers(, %ecx, 8)
	addl $4096, %eax
	incl %ecx
	cmpl $4, %ecx
	jne 1b

	movl $(PAGE_PRESENT_WRITABLE + PAGE_LARGE), %eax
	xorl %ecx, %ecx
2:	movl %eax, page_directories(, %ecx, 8)
	addl $0x200000, %eax
	incl %ecx
	cmpl $2048, %ecx
	jne 2b
	orl $PAGE_UNCACHED, page_directories + LAPIC_ENTRY * 8

	lgdtl boot_gdt_pointer
	load_data_segments
	enter_long_mode bsp_entry64

stop:
	hlt
	jmp stop

	.globl ap_entry32
ap_entry32:
	load_data_segments
	enter_long_mode ap_entry64

	.code64
bsp_entry64:
	leaq vcpu_slots + BOOT_SLOT_BYTES, %rsp
	movl %ebp, %edi
	xorl %ebp, %ebp
	call guest_main
	jmp stop64

ap_entry64:
	/* All APs come at once and have no stack yet: the APIC ID tells them apart. */
	movl $1, %eax
	cpuid
	shrl $24, %ebx
	movzbl boot_vcpu_of_apic_id(%rbx), %edi
	cmpl $BOOT_NO_VCPU, %edi
	je stop64
	leal 1(%rdi), %eax
	imull $BOOT_SLOT_BYTES, %eax, %eax
	leaq vcpu_slots(%rax), %rsp
	xorl %ebp, %ebp
	call ap_main

stop64:
	cli
	hlt
	jmp stop64

	.section .rodata
	.balign 8
	.globl boot_gdt
boot_gdt:
	.quad 0
	.quad 0x00af9b000000ffff	/* BOOT_SELECTOR_CODE64 */
	.quad 0x00cf93000000ffff	/* BOOT_SELECTOR_DATA */
	.quad 0x00cf9b000000ffff	/* BOOT_SELECTOR_CODE32 */

boot_gdt_pointer:
	.word BOOT_GDT_LIMIT
	.long boot_gdt

	.section .bss.tables, "aw", @nobits
	.balign 4096
page_map:
	.skip 4096
page_directory_pointers:
	.skip 4096
page_directories:
	.skip 4 * 4096

	.section .note.GNU-stack, "", @progbits
