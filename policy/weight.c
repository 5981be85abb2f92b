/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Why near nodes are scored: on a mesh a node two hops away costs more than one a hop away, and a
 * group that does not fit one node should live on neighbours.
 */
#include "policy/weight.h"

#include <string.h>

uint64_t weight_sum(const struct topology *t, const uint64_t *faults)
{
	uint64_t sum = 0;

	topology_foreach (n, t) {
		if (__builtin_add_overflow(sum, faults[n], &sum))
			return UINT64_MAX;
	}
	return sum;
}

/* A product of two 64-bit numbers. */
__extension__ typedef unsigned __int128 wide;

#define INVERSE_MAX                                                                   \
	(UINT64_C(1) << 56) /* below it x * inverse is exact: distances are below 256 \
			     */

/* faults * (max - d) / (max - 10); a division for each node and vCPU would be most of a tick. */
static uint64_t scale(const struct topology *t, uint64_t faults, unsigned d)
{
	uint64_t x = faults * (t->max_distance - d);

	if (!t->inverse || x >= INVERSE_MAX)
		return x / (t->max_distance - DISTANCE_LOCAL);
	return (uint64_t)((wide)x * t->inverse >> 64);
}

static uint64_t score_nearby(
	const struct topology *t, const uint64_t *faults, unsigned idx, unsigned limit)
{
	uint64_t score = 0;

	if (t->type == TOPOLOGY_DIRECT)
		return 0;
	topology_foreach (n, t) {
		unsigned d = t->distance[idx][n];
		uint64_t f = faults[n];

		if (n == idx || !f || d >= t->max_distance)
			continue;
		if (t->type == TOPOLOGY_BACKPLANE && d >= limit)
			continue;
		if (t->type == TOPOLOGY_GLUELESS_MESH)
			f = scale(t, f, d);
		score += f;
	}
	return score;
}

unsigned weight_of(const struct topology *t, const uint64_t *faults, unsigned idx, unsigned limit)
{
	return weight_within(t, faults, weight_sum(t, faults), idx, limit);
}

unsigned weight_within(const struct topology *t, const uint64_t *faults, uint64_t total,
	unsigned idx, unsigned limit)
{
	uint64_t scaled[TOPOLOGY_NODES_MAX];
	unsigned shift;

	if (!total)
		return 0;
	/* bytes of memory are weighed too: keep 1000 * sum and sum * distance within 64 bits; the
	 * true sum of a saturated one is up to 64 times as large */
	if (total <= UINT64_MAX >> 14)
		return (unsigned)(WEIGHT_MAX * (faults[idx] + score_nearby(t, faults, idx, limit)) /
				  total);
	shift = total == UINT64_MAX ? 20 : 0;
	while (total >> shift > UINT64_MAX >> 14)
		shift++;
	topology_foreach (n, t) {
		scaled[n] = faults[n] >> shift;
	}
	total = weight_sum(t, scaled);
	if (!total)
		return 0;
	return (unsigned)(WEIGHT_MAX * (scaled[idx] + score_nearby(t, scaled, idx, limit)) / total);
}

/* Index of the first largest value, -1 if all are 0. */
static int argmax(const struct topology *t, const uint64_t *faults)
{
	uint64_t max = 0;
	int best = -1;

	topology_foreach (n, t) {
		if (faults[n] > max) {
			max = faults[n];
			best = (int)n;
		}
	}
	return best;
}

int weight_preferred_task(const struct topology *t, const uint64_t *faults)
{
	int best = argmax(t, faults);

	return best < 0 ? -1 : topology_nearest_cpu_node(t, (unsigned)best);
}

static int preferred_mesh(const struct topology *t, const uint64_t *faults)
{
	unsigned max = 0;
	int best = -1;

	topology_foreach (n, t) {
		unsigned w;

		if (!t->node[n].has_cpu)
			continue;
		w = weight_of(t, faults, n, t->max_distance);
		if (w > max) {
			max = w;
			best = (int)n;
		}
	}
	return best;
}

/* The next smaller distance between CPU nodes, or 10. */
static unsigned next_distance(const struct topology *t, unsigned below)
{
	unsigned next = DISTANCE_LOCAL;

	topology_foreach (a, t) {
		topology_foreach (b, t) {
			unsigned d = t->distance[a][b];

			if (t->node[a].has_cpu && t->node[b].has_cpu && d < below)
				next = MAX2(next, d);
		}
	}
	return next;
}

/* Splits @set into circles of nodes nearer than @dist and keeps the one with most faults. */
static bool best_circle(const struct topology *t, const uint64_t *faults, unsigned dist, bool *set)
{
	bool left[TOPOLOGY_NODES_MAX], best[TOPOLOGY_NODES_MAX] = {false};
	uint64_t most = 0;

	memcpy(left, set, sizeof(left));
	topology_foreach (a, t) {
		bool circle[TOPOLOGY_NODES_MAX] = {false};
		uint64_t sum = 0;

		if (!left[a])
			continue;
		topology_foreach (b, t) {
			if (!left[b] || t->distance[a][b] >= dist)
				continue;
			circle[b] = true;
			left[b] = false;
			sum += faults[b];
		}
		if (sum > most) {
			most = sum;
			memcpy(best, circle, sizeof(best));
		}
	}
	if (!most)
		return false;
	memcpy(set, best, sizeof(best));
	return true;
}

static int preferred_backplane(const struct topology *t, const uint64_t *faults)
{
	bool set[TOPOLOGY_NODES_MAX] = {false};

	topology_foreach (n, t) {
		set[n] = t->node[n].has_cpu;
	}
	if (!best_circle(t, faults, t->max_distance, set))
		return -1;
	for (unsigned d = next_distance(t, t->max_distance); d > DISTANCE_LOCAL;
		d = next_distance(t, d))
		if (!best_circle(t, faults, d, set))
			break;
	topology_foreach (n, t) {
		if (set[n])
			return (int)n;
	}
	return -1;
}

int weight_preferred_group(const struct topology *t, const uint64_t *faults)
{
	int best = -1;

	if (t->type == TOPOLOGY_GLUELESS_MESH)
		best = preferred_mesh(t, faults);
	else if (t->type == TOPOLOGY_BACKPLANE)
		best = preferred_backplane(t, faults);
	/* where no node with CPUs scores, as with all faults on far memory, the argmax stands */
	return best >= 0 ? best : weight_preferred_task(t, faults);
}

void weight_active_nodes(const struct topology *t, const uint64_t *cpu_faults, struct idset *ret)
{
	uint64_t max = 0;

	idset_clear(ret);
	topology_foreach (n, t) {
		if (t->node[n].has_cpu)
			max = MAX2(max, cpu_faults[n]);
	}
	topology_foreach (n, t) {
		if (t->node[n].has_cpu && cpu_faults[n] > max / 3) /* f * 3 > max, within 64 bits */
			idset_add(ret, t->node[n].id);
	}
}
