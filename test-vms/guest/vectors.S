/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Where the CPU goes on an interrupt: one stub of BOOT_STUB_BYTES per vector, which evens out that
 * only some exceptions push an error code, and then interrupts_handle(vector, rip) in C. The image
 * uses general registers only, so the caller-saved ones are all there is to keep.
 */
#include "boot.h"

/* 8, 10 to 14, 17, 21, 29, 30 */
#define VECTORS_WITH_CODE 0x60227d00

	.text
	.code64
	.balign BOOT_STUB_BYTES
	.globl interrupt_stubs
interrupt_stubs:
	.set vector, 0
	.rept 256
	.balign BOOT_STUB_BYTES
	.if vector > 31
	pushq $0
	.elseif ((VECTORS_WITH_CODE >> vector) & 1) == 0
	pushq $0
	.endif
	pushq $vector
	jmp handle
	.set vector, vector + 1
	.endr

handle:
	pushq %rax
	pushq %rcx
	pushq %rdx
	pushq %rsi
	pushq %rdi
	pushq %r8
	pushq %r9
	pushq %r10
	pushq %r11
	cld
	/* Above the nine registers: the vector, the code, and rip first in the CPU's frame. */
	movq 72(%rsp), %rdi
	movq 88(%rsp), %rsi
	call interrupts_handle
	/*
	 * An interrupt must not come between the sti and the hlt of cpu_wait(), but it does where the
	 * one-instruction shadow of sti gets lost on the way through nested virtualization. The
	 * event has happened then: step over the hlt, or the vCPU would sleep for ever.
	 */
	leaq cpu_wait_hlt(%rip), %rax
	cmpq %rax, 88(%rsp)
	jne 1f
	incq 88(%rsp)
1:
	popq %r11
	popq %r10
	popq %r9
	popq %r8
	popq %rdi
	popq %rsi
	popq %rdx
	popq %rcx
	popq %rax
	addq $16, %rsp
	iretq

/* void cpu_wait(void): see cpu.h */
	.globl cpu_wait
cpu_wait:
	sti
cpu_wait_hlt:
	hlt
	cli
	ret

	.section .note.GNU-stack, "", @progbits
