/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Why this module computes nothing: numbers that are worked out again for the reader are not the
 * numbers that decided.
 */
#include "policy/explain.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *say(char *ret, const char *fmt, ...) _printf_(2, 3);
static const char *say(char *ret, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(ret, REASON_TEXT_MAX, fmt, ap);
	va_end(ap);
	return ret;
}

static int64_t value_of(const struct reason *r, const char *name)
{
	const struct gate *g = reason_find(r, name);

	return g ? g->value : 0;
}

static int64_t threshold_of(const struct reason *r, const char *name)
{
	const struct gate *g = reason_find(r, name);

	return g ? g->threshold : 0;
}

/* "node 2", "nodes 0-1,3", "no home" */
static const char *place(const struct snapshot *s, const struct vm_plan *p, char *buf, size_t size)
{
	struct idset ids = {0};
	char list[64];

	topology_foreach (n, &s->topology) {
		if (p->home & NODE_BIT(n))
			idset_add(&ids, s->topology.node[n].id);
	}
	idset_format(&ids, list, sizeof(list));
	if (idset_empty(&ids))
		snprintf(buf, size, "no home");
	else
		snprintf(buf, size, "node%s %s", idset_count(&ids) > 1 ? "s" : "", list);
	return buf;
}

static const char *wish(const struct snapshot *s, const struct vm_plan *p, char *ret)
{
	const struct reason *r = &p->reason;
	char to[80];

	place(s, p, to, sizeof(to));
	if (p->anchor && r->why != WHY_READY)
		return say(ret,
			"well placed on %s (%d permille), but has wandered off before: to be kept "
			"there",
			to, p->now);
	switch (r->why) {
	case WHY_WATCHING:
		return say(ret, "watching: wants %s (%d -> %d permille), window %lld of %lld", to,
			p->now, p->then, (long long)value_of(r, "persistence"),
			(long long)threshold_of(r, "persistence"));
	case WHY_COOLING:
		return say(ret, "cooling down %llds: then %s to %s (%d -> %d permille)",
			(long long)(threshold_of(r, "cooldown") - value_of(r, "cooldown") + 999) /
				1000,
			plan_kind_name(p->kind), to, p->now, p->then);
	case WHY_IN_FLIGHT:
		return say(ret,
			"waiting for others' memory (%lld of %lld on the way): then %s to %s (%d -> "
			"%d permille)",
			(long long)value_of(r, "moves-in-flight"),
			(long long)threshold_of(r, "moves-in-flight"), plan_kind_name(p->kind), to,
			p->now, p->then);
	case WHY_PARTNER:
		return say(ret, "waiting to swap with VM '%.60s', which is not ready",
			s->vm[p->partner].name);
	default:
		break;
	}
	if (p->anchor)
		return say(ret,
			"keep on %s, where it is well placed (%d permille): it has wandered off "
			"before",
			to, p->now);
	if (p->kind == PLAN_ROLLBACK)
		return say(ret,
			"roll back to %s: the last change made it worse (%lld permille less)", to,
			(long long)value_of(r, "worse"));
	if (p->kind == PLAN_SWAP)
		return say(ret, "swap with VM '%.60s', to %s (%d -> %d permille)",
			s->vm[p->partner].name, to, p->now, p->then);
	return say(ret, "%s%s to %s (%d -> %d permille)", plan_kind_name(p->kind),
		p->split && p->kind != PLAN_SPREAD ? " each vCPU" : "", to, p->now, p->then);
}

static const char *refused(const struct vm_plan *p, char *ret)
{
	const struct reason *r = &p->reason;

	for (unsigned i = 0; i < r->n_gates; i++) {
		const struct gate *g = &r->gate[i];

		if (!g->met && g->node >= 0)
			return say(ret,
				"staying (%d permille): node %d refused by %s, %lld %s against %lld",
				p->now, g->node, g->name, (long long)g->value, g->unit,
				(long long)g->threshold);
	}
	return say(ret, "staying (%d permille)", p->now);
}

const char *explain_text(const struct snapshot *s, const struct plan *plan, unsigned vm, char *ret)
{
	const struct vm_plan *p = &plan->vm[vm];
	const struct reason *r = &p->reason;

	switch (r->why) {
	case WHY_UNREADABLE:
	case WHY_OPERATOR_PIN:
	case WHY_LEFT_ALONE:
		return say(ret, "left alone: %.200s", r->detail);
	case WHY_PAUSED:
		return say(ret, "waiting: the VM is paused");
	case WHY_BUSY:
		return say(ret, "waiting: it is migrating or being saved");
	case WHY_MOVING:
		return say(ret, "memory is being moved to node %lld",
			(long long)value_of(r, "in-flight"));
	case WHY_IDLE:
		return say(ret, "idle: no vCPU ran in the last window");
	case WHY_UNKNOWN:
		return say(ret, "left alone: neither faults nor the place of its pages are known");
	case WHY_NO_CPU:
		return say(ret, "left alone: no node has a CPU it may use");
	case WHY_TOO_WIDE:
		return say(ret, "left alone: its %lld vCPUs are more than the %lld CPUs it may use",
			(long long)value_of(r, "cpus"), (long long)threshold_of(r, "cpus"));
	case WHY_REFUSED:
		return refused(p, ret);
	case WHY_SETTLED:
		return say(ret, "settled, well placed (%d permille)", p->now);
	case WHY_WELL_PLACED:
		return say(ret, "well placed (%d permille)", p->now);
	case WHY_NO_BETTER:
		return say(ret, "staying (%d permille): no node would be better by %lld", p->now,
			(long long)threshold_of(r, "improvement"));
	default:
		return wish(s, p, ret);
	}
}
