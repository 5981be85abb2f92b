/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The few instructions that C has no words for. */
#pragma once

#include <stdint.h>

struct cpuid {
	uint32_t eax, ebx, ecx, edx;
};

static inline struct cpuid cpu_id(uint32_t leaf)
{
	struct cpuid id;

	__asm__ volatile("cpuid"
			 : "=a"(id.eax), "=b"(id.ebx), "=c"(id.ecx), "=d"(id.edx)
			 : "a"(leaf), "c"(0));
	return id;
}

static inline uint64_t cpu_rdmsr(uint32_t msr)
{
	uint32_t low, high;

	__asm__ volatile("rdmsr" : "=a"(low), "=d"(high) : "c"(msr));
	return (uint64_t)high << 32 | low;
}

static inline void cpu_wrmsr(uint32_t msr, uint64_t value)
{
	__asm__ volatile("wrmsr"
			 :
			 : "c"(msr), "a"((uint32_t)value), "d"((uint32_t)(value >> 32))
			 : "memory");
}

/* Ordered against what stands before it, so that two of them bracket what lies between. */
static inline uint64_t cpu_rdtsc(void)
{
	uint32_t low, high;

	__asm__ volatile("lfence; rdtsc" : "=a"(low), "=d"(high) : : "memory");
	return (uint64_t)high << 32 | low;
}

static inline uint8_t cpu_in8(uint16_t port)
{
	uint8_t value;

	__asm__ volatile("inb %1, %0" : "=a"(value) : "Nd"(port) : "memory");
	return value;
}

static inline void cpu_out8(uint16_t port, uint8_t value)
{
	__asm__ volatile("outb %0, %1" : : "a"(value), "Nd"(port) : "memory");
}

static inline void cpu_out16(uint16_t port, uint16_t value)
{
	__asm__ volatile("outw %0, %1" : : "a"(value), "Nd"(port) : "memory");
}

static inline void cpu_pause(void)
{
	__asm__ volatile("pause" : : : "memory");
}

static inline void cpu_interrupts_off(void)
{
	__asm__ volatile("cli" : : : "memory");
}

/*
 * Waits for one interrupt and takes it. Interrupts must be off before and are off again after: sti
 * takes effect one instruction late, so none can slip in before the hlt (and where one does all the
 * same, the interrupt's stub steps over the hlt). In vectors.S.
 */
void cpu_wait(void);

static inline void cpu_stop(void) __attribute__((noreturn));
static inline void cpu_stop(void)
{
	for (;;)
		__asm__ volatile("cli; hlt" : : : "memory");
}
