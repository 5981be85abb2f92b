/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Why the table is mended before anything reads it: firmware tables are wrong on real hosts
 * (unreachable entries of 4294967295, zeros, all equal), and every formula behind this one divides
 * by or compares with distances.
 */
#include "policy/topology.h"

#include <string.h>

static bool all_remote_are_local(const struct topology *t)
{
	topology_foreach (i, t) {
		topology_foreach (k, t) {
			if (i != k && t->distance[i][k] != DISTANCE_LOCAL)
				return false;
		}
	}
	return true;
}

static void mend(struct topology *t)
{
	bool flat = all_remote_are_local(t);

	t->mended = 0;
	topology_foreach (i, t) {
		topology_foreach (k, t) {
			uint16_t *d = &t->distance[i][k];
			bool odd = i == k ? *d != DISTANCE_LOCAL
					  : *d > DISTANCE_MAX || (*d <= DISTANCE_LOCAL && !flat);

			if (!odd)
				continue;
			*d = i == k ? DISTANCE_LOCAL : DISTANCE_REMOTE_DEFAULT;
			t->mended++;
		}
	}
}

/* Number of distinct distances between CPU-bearing nodes (counting 10), and the largest. */
static unsigned count_distances(const struct topology *t, unsigned *ret_max)
{
	bool seen[DISTANCE_MAX + 1] = {false};
	unsigned n = 0, max = DISTANCE_LOCAL;

	seen[DISTANCE_LOCAL] = true;
	topology_foreach (i, t) {
		topology_foreach (k, t) {
			if (!t->node[i].has_cpu || !t->node[k].has_cpu)
				continue;
			seen[t->distance[i][k]] = true;
			max = MAX2(max, (unsigned)t->distance[i][k]);
		}
	}
	for (size_t d = 0; d < ARRAY_LEN(seen); d++)
		n += seen[d];
	*ret_max = max;
	return n;
}

/* Is there a CPU node nearer to both ends than they are to each other? */
static bool has_bridge(const struct topology *t, unsigned a, unsigned b, unsigned far)
{
	topology_foreach (c, t) {
		if (t->node[c].has_cpu && t->distance[a][c] < far && t->distance[b][c] < far)
			return true;
	}
	return false;
}

static enum topology_type find_type(const struct topology *t, unsigned far)
{
	topology_foreach (a, t) {
		topology_foreach (b, t) {
			if (!t->node[a].has_cpu || !t->node[b].has_cpu || t->distance[a][b] < far)
				continue;
			return has_bridge(t, a, b, far) ? TOPOLOGY_GLUELESS_MESH
							: TOPOLOGY_BACKPLANE;
		}
	}
	return TOPOLOGY_DIRECT;
}

static void know_node(struct topology *t, unsigned n)
{
	const struct idset *cpus = &t->node[n].cpus;

	t->known[n].n_cpus = idset_count(cpus);
	t->known[n].first_word = t->known[n].end_word = 0;
	for (unsigned w = 0; w < ARRAY_LEN(cpus->word); w++) {
		if (!cpus->word[w])
			continue;
		if (!t->known[n].end_word)
			t->known[n].first_word = w;
		t->known[n].end_word = w + 1;
	}
	t->known[n].nearest_cpu_node = topology_nearest_cpu_node(t, n);
}

void topology_finish(struct topology *t)
{
	mend(t);
	t->type = count_distances(t, &t->max_distance) <= 2 ? TOPOLOGY_DIRECT
							    : find_type(t, t->max_distance);
	topology_foreach (n, t) {
		know_node(t, n);
	}
	t->inverse = t->max_distance > DISTANCE_LOCAL + 1
			     ? UINT64_MAX / (t->max_distance - DISTANCE_LOCAL) + 1
			     : 0;
}

unsigned topology_count_cpus(const struct topology *t, unsigned idx, const struct idset *cpus)
{
	unsigned n = 0;

	for (unsigned w = t->known[idx].first_word; w < t->known[idx].end_word; w++)
		n += (unsigned)__builtin_popcountll(t->node[idx].cpus.word[w] & cpus->word[w]);
	return n;
}

int topology_index(const struct topology *t, unsigned id)
{
	topology_foreach (i, t) {
		if (t->node[i].id == id)
			return (int)i;
	}
	return -1;
}

int topology_nearest_cpu_node(const struct topology *t, unsigned idx)
{
	int best = -1;

	if (t->node[idx].has_cpu)
		return (int)idx;
	topology_foreach (i, t) {
		if (t->node[i].has_cpu &&
			(best < 0 || t->distance[idx][i] < t->distance[idx][best]))
			best = (int)i;
	}
	return best;
}

int topology_nearest_memory_node(const struct topology *t, unsigned idx, const struct idset *among)
{
	int best = -1;

	topology_foreach (i, t) {
		if (!t->node[i].has_memory || (among && !idset_has(among, t->node[i].id)))
			continue;
		if (best < 0 || t->distance[idx][i] < t->distance[idx][best])
			best = (int)i;
	}
	return best;
}

int topology_node_of_cpu(const struct topology *t, unsigned cpu)
{
	topology_foreach (i, t) {
		if (idset_has(&t->node[i].cpus, cpu))
			return (int)i;
	}
	return -1;
}

const char *topology_type_name(enum topology_type type)
{
	static const char *const names[] = {
		[TOPOLOGY_DIRECT] = "direct",
		[TOPOLOGY_GLUELESS_MESH] = "mesh",
		[TOPOLOGY_BACKPLANE] = "backplane",
	};

	return names[type];
}
