/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Which page is touched next. The generator is xorshift64* (Marsaglia, Vigna): three shifts and a
 * multiplication per number, no state but 64 bits, so that eight vCPUs can each afford their own,
 * and a run can be repeated from the seed.
 */
#include "pattern.h"

struct vcpu_touch pattern_vcpu_touch(const struct config *config, uint32_t stage, uint32_t vcpu)
{
	const struct touch_params *params = &config->stages[stage].params;
	const struct vcpu_override *override = &config->overrides[vcpu];
	struct vcpu_touch touch = {
		.shared_permille = params->shared_permille,
		.write_permille = params->write_permille,
		.burst = params->idle ? 0 : params->burst,
		.pause_us = params->idle ? params->idle_pause_us : params->pause_us,
		.rotate = params->rotate,
	};

	if (override->has_burst) {
		touch.burst = override->burst;
		/* A vCPU that works while the others idle keeps the pace of work. */
		if (override->burst > 0)
			touch.pause_us = params->pause_us;
	}
	if (override->has_pause_us)
		touch.pause_us = override->pause_us;
	if (override->has_shared_permille)
		touch.shared_permille = override->shared_permille;
	return touch;
}

uint32_t pattern_private_region(uint32_t vcpu, uint32_t rotate, uint32_t vcpus)
{
	return (vcpu + rotate) % vcpus;
}

uint32_t pattern_stage_at(const struct config *config, uint64_t ms)
{
	uint32_t stage = 0;

	while (stage + 1 < config->stages_n && config->stages[stage + 1].at_ms <= ms)
		stage++;
	return stage;
}

void pattern_random_init(struct pattern_random *random, uint64_t seed, uint32_t vcpu)
{
	uint64_t z = seed + (vcpu + 1) * 0x9e3779b97f4a7c15u;

	/* splitmix64: neighbouring seeds and vCPUs must not start with similar numbers. */
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	z ^= z >> 31;
	random->state = z != 0 ? z : 1;
}

uint64_t pattern_random_next(struct pattern_random *random)
{
	uint64_t x = random->state;

	x ^= x >> 12;
	x ^= x << 25;
	x ^= x >> 27;
	random->state = x;
	return x * 0x2545f4914f6cdd1du;
}

/* Maps 20 random bits to below `limit` without a division. */
static uint32_t scale20(uint64_t bits, uint32_t limit)
{
	return (uint32_t)(((bits & 0xfffff) * limit) >> 20);
}

struct touch pattern_pick(struct pattern_random *random, const struct vcpu_touch *how,
	uint64_t private_pages, uint64_t shared_pages)
{
	uint64_t kind = pattern_random_next(random), place = pattern_random_next(random);
	struct touch touch;
	uint64_t pages;

	/* The low bits of the generator are its weakest: the decisions take higher ones. */
	touch.shared = scale20(kind >> 44, 1000) < how->shared_permille;
	touch.write = scale20(kind >> 20, 1000) < how->write_permille;
	pages = touch.shared ? shared_pages : private_pages;
	touch.page = ((place >> 32) * pages) >> 32;
	touch.word = (uint32_t)(place >> 16) % PATTERN_PAGE_WORDS;
	return touch;
}
