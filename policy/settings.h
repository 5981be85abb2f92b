/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The thresholds of the decision, all in one place, with their sources.
 */
#pragma once

#include "policy/rules.h"

enum group_mode {
	GROUP_AUTO, /* one numa_group if its vCPUs share faults */
	GROUP_ALWAYS,
	GROUP_NEVER,
};

/* Those whose place of origin is told beside a gate. */
enum setting {
	SETTING_IMPROVEMENT,
	SETTING_PERSISTENCE,
	SETTING_COOLDOWN,
	SETTING_CPU_PCT,
	SETTING_RESERVE,
	SETTING_MOVES_MAX,
	SETTING_N,
};

struct settings {
	unsigned improvement; /* least gain in permille weight; kernel SMALLIMP */
	unsigned margin;      /* a later candidate beats the best so far by more than this */
	/* Without fault data the gain is a guess from where pages lie: ask for this many times more
	 */
	unsigned blind_factor;
	unsigned persistence_windows; /* a wish must hold for so many windows in a row */
	uint64_t cooldown_ns;         /* between two changes of one VM's home */
	/* A change is judged when so much time and so many windows with faults have gone by */
	uint64_t settle_ns;
	unsigned settle_windows;
	unsigned home_bonus;      /* a VM that has a home leaves it only for so much more */
	unsigned copy_cost;       /* permille charged for copying *all* of a VM's memory */
	unsigned ungroup_windows; /* a VM is one group until so many windows say otherwise */
	unsigned group_shared;    /* permille of shared faults from which on a VM is one group */
	unsigned cpu_pct;         /* kernel numa_classify(): 112, room is capacity*100 > load*112 */
	uint64_t reserve_bytes;   /* memory that stays free on every node, at least this ... */
	unsigned reserve_permille; /* ... and at least this share of the node */
	/* Counters that stood still for so long are stale; the scanner's own period goes up to 60 s
	 */
	uint64_t stale_ns;
	uint64_t silent_ns;      /* never any faults for so long: the scanner does not come */
	unsigned warmup_windows; /* windows with faults before they count */
	enum rules_variant rules;
	enum group_mode group;
	unsigned moves_max;    /* VMs whose memory is on the way at the same time */
	bool rollback;         /* a change that made it worse is undone */
	unsigned device_bonus; /* permille for the node of a passed-through device */
	unsigned near_bonus;   /* permille for cells of one VM that are on one node; less with
				  distance */
	/* where a value was set, such as a file and line; NULL: built in */
	const char *source[SETTING_N];
};

static inline const char *settings_source(const struct settings *set, enum setting which)
{
	return set->source[which] ? set->source[which] : "built-in";
}

#define SETTINGS_DEFAULT                                                                           \
	{                                                                                          \
		.improvement = 30, .margin = 15, .blind_factor = 4, .persistence_windows = 3,      \
		.cooldown_ns = UINT64_C(60000000000), .home_bonus = 60,                            \
		.settle_ns = UINT64_C(60000000000), .settle_windows = 4, .copy_cost = 200,         \
		.ungroup_windows = 8, .group_shared = 10, .cpu_pct = 112,                          \
		.reserve_bytes = UINT64_C(64) << 20, .reserve_permille = 30,                       \
		.stale_ns = UINT64_C(180000000000), .silent_ns = UINT64_C(60000000000),            \
		.warmup_windows = 2, .rules = RULES_NUMAHERD, .group = GROUP_AUTO, .moves_max = 2, \
		.rollback = true, .device_bonus = 60, .near_bonus = 20,                            \
	}
