/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "work.h"
#include "cpu.h"
#include "timer.h"

enum {
	WAIT_US = 20000,
};

static void populate(const struct region *region, uint64_t first_page, uint64_t end_page)
{
	uint64_t page;

	for (page = first_page; page < end_page; page++) {
		uint64_t address = region->start + page * PATTERN_PAGE_BYTES;

		*(volatile uint64_t *)(uintptr_t)address = address;
	}
}

void work_populate(const struct guest *guest, struct vcpu *vcpu)
{
	const uint32_t vcpus = guest->layout.vcpus;
	const struct region *mine = &guest->layout.regions[vcpu->index];
	const struct region *shared = &guest->layout.regions[vcpus];
	uint64_t shared_pages = shared->bytes / PATTERN_PAGE_BYTES;

	populate(mine, 0, mine->bytes / PATTERN_PAGE_BYTES);
	populate(shared, shared_pages * vcpu->index / vcpus,
		shared_pages * (vcpu->index + 1) / vcpus);
	__atomic_store_n(&vcpu->populated, true, __ATOMIC_RELEASE);
}

static void count(struct vcpu *vcpu, uint32_t region, uint64_t touches)
{
	/* vCPU 0 reads it at any time: one store, never half of one. */
	__atomic_store_n(&vcpu->counts[region], vcpu->counts[region] + touches, __ATOMIC_RELAXED);
}

void work_burst(const struct guest *guest, struct vcpu *vcpu, const struct vcpu_touch *how)
{
	const uint32_t vcpus = guest->layout.vcpus;
	const uint32_t mine = pattern_private_region(vcpu->index, how->rotate, vcpus);
	const struct region *private_region = &guest->layout.regions[mine];
	const struct region *shared_region = &guest->layout.regions[vcpus];
	const uint64_t private_pages = private_region->bytes / PATTERN_PAGE_BYTES;
	const uint64_t shared_pages = shared_region->bytes / PATTERN_PAGE_BYTES;
	struct pattern_random random = vcpu->random;
	uint32_t i, shared_n = 0;

	for (i = 0; i < how->burst; i++) {
		struct touch touch = pattern_pick(&random, how, private_pages, shared_pages);
		uint64_t address = touch.shared ? shared_region->start : private_region->start;
		volatile uint64_t *word;

		address += touch.page * PATTERN_PAGE_BYTES + touch.word * sizeof(*word);
		word = (volatile uint64_t *)(uintptr_t)address;
		if (touch.write)
			*word = random.state;
		else
			(void)*word;
		shared_n += touch.shared;
	}
	vcpu->random = random;
	count(vcpu, mine, how->burst - shared_n);
	count(vcpu, vcpus, shared_n);
}

void work_run(const struct guest *guest, struct vcpu *vcpu)
{
	uint32_t known = GUEST_STAGE_WAIT;
	struct vcpu_touch how = {0};

	work_populate(guest, vcpu);
	for (;;) {
		uint32_t stage = __atomic_load_n(&guest->stage, __ATOMIC_ACQUIRE);

		if (stage == GUEST_STAGE_STOP)
			cpu_stop();
		if (stage == GUEST_STAGE_WAIT) {
			timer_sleep_us(WAIT_US);
			continue;
		}
		if (stage != known) {
			how = pattern_vcpu_touch(&guest->config, stage, vcpu->index);
			/* vCPUs that start in step would stay so, and queue for the host's CPUs. */
			if (known == GUEST_STAGE_WAIT)
				timer_sleep_us(
					(uint64_t)how.pause_us * vcpu->index / guest->layout.vcpus);
			known = stage;
		}
		work_burst(guest, vcpu, &how);
		timer_sleep_us(how.pause_us);
	}
}
