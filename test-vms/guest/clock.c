/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Time of day. Under KVM it is kvmclock: the host tells in a page of ours how to make nanoseconds
 * of the TSC, so nothing needs to be measured, and the time that the machine is paused is left
 * out. Elsewhere (TCG) the TSC is measured once against channel 2 of the PIT.
 *
 * Measuring on a crowded host: the vCPU may be put aside for milliseconds between reading one
 * clock and reading the other. So each sample is taken between two reads of the TSC, several times,
 * and the one with the shortest distance counts.
 */
#include "clock.h"
#include "cpu.h"

enum {
	CPUID_HYPERVISOR_BIT = 31,
	KVM_FEATURE_CLOCKSOURCE2_BIT = 3,

	PIT_CHANNEL_2 = 0x42,
	PIT_COMMAND = 0x43,
	PIT_GATE = 0x61,
	PIT_GATE_ON = 0x01,
	PIT_SPEAKER_ON = 0x02,
	PIT_OUT_HIGH = 0x20,
	PIT_HZ = 1193182,
	PIT_START = 0xffff, /* 55 ms */
	PIT_WINDOW = 24000, /* 20 ms */

	SAMPLES = 8,
	CALIBRATION_TRIES = 5,
	FALLBACK_MHZ = 1000,
};

#define MSR_KVM_SYSTEM_TIME 0x4b564d01u

/* The layout is the hypervisor's: struct pvclock_vcpu_time_info. */
struct pvclock {
	uint32_t version;
	uint32_t pad0;
	uint64_t tsc_timestamp;
	uint64_t system_time;
	uint32_t tsc_to_system_mul;
	int8_t tsc_shift;
	uint8_t flags;
	uint8_t pad1[2];
};

static volatile struct pvclock pvclock __attribute__((aligned(64)));
static bool use_kvmclock;
static uint64_t tsc_start;
static uint64_t ns_per_tick_32; /* nanoseconds per TSC tick, times 2^32 */

static uint64_t multiply_shift_32(uint64_t ticks, uint64_t factor)
{
	return (uint64_t)((unsigned __int128)ticks * factor >> 32);
}

static bool kvmclock_init(void)
{
	uint32_t leaf;

	if ((cpu_id(1).ecx >> CPUID_HYPERVISOR_BIT & 1) == 0)
		return false;
	/* KVM's leaves come behind Hyper-V's, if it offers those too. */
	for (leaf = 0x40000000; leaf < 0x40010000; leaf += 0x100) {
		struct cpuid id = cpu_id(leaf);

		if (id.ebx != 0x4b4d564b || id.ecx != 0x564b4d56 || id.edx != 0x4d)
			continue;
		if ((cpu_id(leaf + 1).eax >> KVM_FEATURE_CLOCKSOURCE2_BIT & 1) == 0)
			return false;
		cpu_wrmsr(MSR_KVM_SYSTEM_TIME, (uintptr_t)&pvclock | 1);
		return pvclock.tsc_to_system_mul != 0;
	}
	return false;
}

static uint64_t kvmclock_ns(void)
{
	uint32_t version;
	uint64_t ns;

	/* An odd or changed version: the host was writing. It writes only while we do not run. */
	do {
		uint64_t ticks;
		int8_t shift;

		version = pvclock.version;
		ticks = cpu_rdtsc() - pvclock.tsc_timestamp;
		shift = pvclock.tsc_shift;
		ticks = shift >= 0 ? ticks << shift : ticks >> -shift;
		ns = pvclock.system_time + multiply_shift_32(ticks, pvclock.tsc_to_system_mul);
		__asm__ volatile("lfence" : : : "memory");
	} while ((version & 1) != 0 || version != pvclock.version);
	return ns;
}

struct sample {
	uint64_t tsc;
	uint32_t pit;
};

static struct sample sample_pit(void)
{
	struct sample best = {0, 0};
	uint64_t best_distance = UINT64_MAX;
	int i;

	for (i = 0; i < SAMPLES; i++) {
		uint64_t before, after;
		uint32_t pit;

		/* Latching takes the count; reading it out may be as slow as it likes. */
		before = cpu_rdtsc();
		cpu_out8(PIT_COMMAND, 0x80);
		after = cpu_rdtsc();
		pit = cpu_in8(PIT_CHANNEL_2);
		pit |= (uint32_t)cpu_in8(PIT_CHANNEL_2) << 8;
		if (after - before < best_distance) {
			best_distance = after - before;
			best.tsc = before + best_distance / 2;
			best.pit = pit;
		}
	}
	return best;
}

/* Returns the TSC's ticks per second, or 0 if the PIT gave no usable answer. */
static uint64_t measure_tsc_once(void)
{
	uint8_t gate = cpu_in8(PIT_GATE) & (uint8_t)~PIT_SPEAKER_ON;
	struct sample first, last;
	uint64_t ticks, deadline_polls;

	/* Mode 0: the output rises when the count has run out, which tells that it has. */
	cpu_out8(PIT_GATE, gate & (uint8_t)~PIT_GATE_ON);
	cpu_out8(PIT_COMMAND, 0xb0);
	cpu_out8(PIT_CHANNEL_2, PIT_START & 0xff);
	cpu_out8(PIT_CHANNEL_2, PIT_START >> 8);
	cpu_out8(PIT_GATE, gate | PIT_GATE_ON);

	first = sample_pit();
	for (deadline_polls = 100000; deadline_polls > 0; deadline_polls--) {
		uint64_t until = cpu_rdtsc() + 200000;

		last = sample_pit();
		if (last.pit > first.pit || first.pit - last.pit >= PIT_WINDOW)
			break;
		while (cpu_rdtsc() < until)
			cpu_pause();
	}
	if (deadline_polls == 0 || last.pit >= first.pit)
		return 0;
	if ((cpu_in8(PIT_GATE) & PIT_OUT_HIGH) != 0)
		return 0;
	ticks = last.tsc - first.tsc;
	return ticks * PIT_HZ / (first.pit - last.pit);
}

void clock_init(struct text *messages)
{
	uint64_t hz = 0;
	int i;

	tsc_start = cpu_rdtsc();
	use_kvmclock = kvmclock_init();
	if (use_kvmclock)
		return;
	for (i = 0; i < CALIBRATION_TRIES && hz == 0; i++)
		hz = measure_tsc_once();
	if (hz == 0) {
		text_add(messages, GUEST_PREFIX "warning: no kvmclock and no PIT, taking the TSC "
						"for one of 1 GHz\n");
		hz = FALLBACK_MHZ * 1000000ull;
	}
	ns_per_tick_32 = (1000000000ull << 32) / hz;
}

uint64_t clock_ns(void)
{
	if (use_kvmclock)
		return kvmclock_ns();
	return multiply_shift_32(cpu_rdtsc() - tsc_start, ns_per_tick_32);
}
