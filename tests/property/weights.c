/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What holds of sets, topology, faults, weights, load and rules on any host. Each statement is
 * exact: where truncation may show, the bound says by how much.
 */
#include "policy/faults.h"
#include "policy/load.h"
#include "policy/rules.h"
#include "policy/weight.h"
#include "tests/property/gen.h"

#define HOLDS(cond, ...)                                   \
	do {                                               \
		if (!(cond)) {                             \
			snprintf(why, n_why, __VA_ARGS__); \
			return false;                      \
		}                                          \
	} while (0)

/* Up to 4 nodes per size; now and then a host that calls all nodes equally near. */
static void make_host(struct gen *g, unsigned size, struct topology *t)
{
	gen_topology_of(g, 4 * size, t);
	if (!gen_chance(g, 50))
		return;
	topology_foreach (i, t) {
		topology_foreach (k, t) {
			t->distance[i][k] = DISTANCE_LOCAL;
		}
	}
	topology_finish(t);
}

/* From "hardly any" to many; the sum stays below 2^50, so that nothing is scaled down. */
static void make_faults(struct gen *g, const struct topology *t, uint64_t *ret)
{
	static const uint64_t max[] = {1, 10, 1000, UINT64_C(1) << 30, UINT64_C(1) << 40};

	gen_faults(g, t, max[gen_range(g, 0, ARRAY_LEN(max) - 1)], ret);
}

static bool text_of_a_set_is_the_set(uint64_t seed, unsigned size, char *why, size_t n_why)
{
	static char full[6 * IDSET_MAX];
	struct gen g = {seed};
	struct idset s, back;
	char cut[64];
	size_t n = gen_range(&g, 4, sizeof(cut)), len;

	gen_idset(&g, &s);
	idset_format(&s, full, sizeof(full));
	HOLDS(idset_parse_list(full, strlen(full), &back) == 0, "'%.60s' is not parsed", full);
	HOLDS(idset_equal(&s, &back), "'%.60s' is read as another set", full);
	idset_format(&s, cut, n);
	len = strlen(cut);
	HOLDS(len < n, "%zu bytes in a buffer of %zu", len, n);
	if (strcmp(cut, full) == 0)
		return true;
	HOLDS(len >= 3 && strcmp(cut + len - 3, "...") == 0, "'%s' does not say it is cut", cut);
	HOLDS(strncmp(cut, full, len - 3) == 0, "'%s' is no beginning of '%.60s'", cut, full);
	HOLDS(len == 3 || full[len - 3] == ',', "'%s' is cut inside an item", cut);
	return true;
}

/* Lists with a few bytes changed: refused and untouched, or a set that can be written again. */
static bool garbage_is_refused_or_understood(uint64_t seed, unsigned size, char *why, size_t n_why)
{
	static const char bytes[] = "0123456789,,,--- \n\tx";
	struct gen g = {seed};
	struct idset s = {{42}}, back;
	char text[256], again[2048];
	size_t len;
	int r;

	len = gen_range(&g, 0, size * 4);
	for (size_t i = 0; i < len; i++)
		text[i] = bytes[gen_range(&g, 0, sizeof(bytes) - 2)];
	r = idset_parse_list(text, len, &s);
	if (r) {
		HOLDS(r == IDSET_E_SYNTAX || r == IDSET_E_RANGE, "returns %d", r);
		HOLDS(s.word[0] == 42, "'%.*s' is refused but written", (int)len, text);
		return true;
	}
	idset_format(&s, again, sizeof(again));
	HOLDS(idset_parse_list(again, strlen(again), &back) == 0 && idset_equal(&s, &back),
		"'%.*s' became '%s'", (int)len, text, again);
	return true;
}

static bool laws_of_sets(uint64_t seed, unsigned size, char *why, size_t n_why)
{
	struct gen g = {seed};
	struct idset a, b, and, or, diff, x;
	unsigned n = 0;
	int last = -1;

	gen_idset(&g, &a);
	gen_idset(&g, &b);
	and = or = diff = a;
	idset_and(&and, &b);
	idset_or(& or, &b);
	idset_andnot(&diff, &b);
	HOLDS(idset_count(&a) + idset_count(&b) == idset_count(&and) + idset_count(& or),
		"inclusion and exclusion");
	x = b;
	idset_and(&x, &a);
	HOLDS(idset_equal(&x, &and), "'and' depends on the order");
	x = b;
	idset_or(&x, &a);
	HOLDS(idset_equal(&x, & or), "'or' depends on the order");
	x = diff;
	idset_or(&x, &and);
	HOLDS(idset_equal(&x, &a), "a is not (a without b) or (a and b)");
	HOLDS(!idset_intersects(&diff, &b), "a without b meets b");
	HOLDS(idset_intersects(&a, &b) == !idset_empty(&and),
		"intersects is not 'and' is not empty");
	HOLDS(idset_subset(&and, &a) && idset_subset(&a, & or), "subset of 'and', 'or'");
	HOLDS(idset_subset(&a, &b) == idset_equal(&and, &a), "subset is not 'and' changes nothing");
	for (int id = idset_next(&a, 0); id >= 0;
		last = id, id = idset_next(&a, (unsigned)id + 1)) {
		HOLDS(id > last && idset_has(&a, (unsigned)id), "id %d comes after %d", id, last);
		n++;
	}
	HOLDS(n == idset_count(&a), "%u ids are listed, %u counted", n, idset_count(&a));
	return true;
}

static bool a_mended_table_is_sane(uint64_t seed, unsigned size, char *why, size_t n_why)
{
	struct gen g = {seed};
	struct topology t, again;
	bool flat = true;

	make_host(&g, size, &t);
	topology_foreach (i, &t) {
		int cpu = topology_nearest_cpu_node(&t, i);

		HOLDS(t.distance[i][i] == DISTANCE_LOCAL, "diagonal of %u", i);
		HOLDS(topology_index(&t, t.node[i].id) == (int)i, "index of id %u", t.node[i].id);
		HOLDS(cpu >= 0 && t.node[cpu].has_cpu, "no CPU node for %u", i);
		topology_foreach (k, &t) {
			unsigned d = t.distance[i][k];

			HOLDS(d >= DISTANCE_LOCAL && d <= DISTANCE_MAX, "%u to %u is %u", i, k, d);
			flat = flat && d == DISTANCE_LOCAL;
			HOLDS(!t.node[k].has_cpu || t.distance[i][cpu] <= d || cpu == (int)i,
				"CPU node %u is nearer to %u than %d", k, i, cpu);
			if (t.node[i].has_cpu && t.node[k].has_cpu)
				HOLDS(d <= t.max_distance, "%u is above the largest", d);
		}
	}
	topology_foreach (i, &t) {
		topology_foreach (k, &t) {
			HOLDS(flat || i == k || t.distance[i][k] > DISTANCE_LOCAL,
				"%u and %u are one", i, k);
		}
	}
	again = t;
	topology_finish(&again);
	HOLDS(again.mended == 0, "%u entries are mended twice", again.mended);
	HOLDS(again.type == t.type && again.max_distance == t.max_distance, "not stable");
	return true;
}

/* Do all pairs of CPU nodes that are farthest apart tell the same type? Else the first one counts,
 * and the type depends on the order of the ids, as in the kernel. */
static bool farthest_pairs_agree(const struct topology *t)
{
	unsigned bridged = 0, not_bridged = 0;

	topology_foreach (a, t) {
		topology_foreach (b, t) {
			bool bridge = false;

			if (!t->node[a].has_cpu || !t->node[b].has_cpu ||
				t->distance[a][b] < t->max_distance)
				continue;
			topology_foreach (c, t) {
				bridge = bridge || (t->node[c].has_cpu &&
							   t->distance[a][c] < t->max_distance &&
							   t->distance[b][c] < t->max_distance);
			}
			*(bridge ? &bridged : &not_bridged) += 1;
		}
	}
	return !bridged || !not_bridged;
}

static bool ids_are_only_labels(uint64_t seed, unsigned size, char *why, size_t n_why)
{
	struct gen g = {seed};
	struct topology t, p;
	unsigned to[TOPOLOGY_NODES_MAX], limit;
	uint64_t f[TOPOLOGY_NODES_MAX], pf[TOPOLOGY_NODES_MAX];
	struct idset active, p_active;

	make_host(&g, size, &t);
	make_faults(&g, &t, f);
	gen_permute(&g, &t, &p, to);
	HOLDS(p.max_distance == t.max_distance, "largest distance");
	HOLDS(p.type == t.type || !farthest_pairs_agree(&t), "type %s became %s",
		topology_type_name(t.type), topology_type_name(p.type));
	p.type = t.type; /* where the pairs disagree: the same scores for the same type */
	topology_foreach (n, &t) {
		pf[to[n]] = f[n];
	}
	limit = (unsigned)gen_range(&g, DISTANCE_LOCAL, t.max_distance);
	weight_active_nodes(&t, f, &active);
	weight_active_nodes(&p, pf, &p_active);
	HOLDS(idset_count(&active) == idset_count(&p_active), "number of active nodes");
	topology_foreach (n, &t) {
		unsigned w = weight_of(&t, f, n, limit), pw = weight_of(&p, pf, to[n], limit);

		HOLDS(w == pw, "weight %u of node %u became %u", w, n, pw);
		HOLDS(idset_has(&active, t.node[n].id) == idset_has(&p_active, p.node[to[n]].id),
			"node %u is active once only", n);
	}
	return true;
}

static bool weights_have_bounds(uint64_t seed, unsigned size, char *why, size_t n_why)
{
	struct gen g = {seed};
	struct topology t;
	uint64_t f[TOPOLOGY_NODES_MAX], more[TOPOLOGY_NODES_MAX], total;
	unsigned near, far, sum = 0, extra;

	make_host(&g, size, &t);
	make_faults(&g, &t, f);
	total = weight_sum(&t, f);
	near = (unsigned)gen_range(&g, DISTANCE_LOCAL, t.max_distance);
	far = (unsigned)gen_range(&g, near, t.max_distance);
	extra = (unsigned)gen_range(&g, 0, t.n_nodes - 1);
	memcpy(more, f, sizeof(more));
	more[extra] += gen_range(&g, 0, UINT64_C(1) << 40);
	topology_foreach (n, &t) {
		unsigned own = total ? (unsigned)(WEIGHT_MAX * f[n] / total) : 0;
		unsigned w = weight_of(&t, f, n, far), v = weight_of(&t, f, n, near);

		sum += own;
		HOLDS(w <= WEIGHT_MAX, "node %u weighs %u", n, w);
		HOLDS(w >= own, "node %u weighs %u, less than its own %u", n, w, own);
		HOLDS(w >= v, "a wider limit makes node %u lighter: %u, %u", n, v, w);
		if (t.type != TOPOLOGY_BACKPLANE)
			HOLDS(w == v, "the limit counts on %s", topology_type_name(t.type));
		if (t.type == TOPOLOGY_DIRECT)
			HOLDS(w == own, "neighbours count on direct: %u, %u", w, own);
	}
	HOLDS(!total || (sum <= WEIGHT_MAX && sum + t.n_nodes > WEIGHT_MAX), "shares add up to %u",
		sum);
	HOLDS(weight_of(&t, more, extra, far) >= weight_of(&t, f, extra, far),
		"more faults make node %u lighter", extra);
	return true;
}

/*
 * c times the faults: truncation only ever takes away, on the mesh less than one fault for each
 * neighbour. So w(f) <= w(c f) <= w(f) + 1000 (n - 1) / total + 1, and without truncation equal.
 */
static bool weights_are_shares(uint64_t seed, unsigned size, char *why, size_t n_why)
{
	struct gen g = {seed};
	struct topology t;
	uint64_t f[TOPOLOGY_NODES_MAX], cf[TOPOLOGY_NODES_MAX], total, c = gen_range(&g, 1, 15);
	unsigned limit, slack = 0;

	make_host(&g, size, &t);
	make_faults(&g, &t, f);
	if (gen_chance(&g, 500) && t.max_distance > DISTANCE_LOCAL) {
		topology_foreach (n, &t) {
			f[n] = f[n] % 100000 * (t.max_distance - DISTANCE_LOCAL);
		}
	} else if (t.type == TOPOLOGY_GLUELESS_MESH) {
		total = weight_sum(&t, f);
		slack = total ? (unsigned)(WEIGHT_MAX * (t.n_nodes - 1) / total) + 1 : 0;
	}
	topology_foreach (n, &t) {
		cf[n] = c * f[n];
	}
	limit = (unsigned)gen_range(&g, DISTANCE_LOCAL, t.max_distance);
	topology_foreach (n, &t) {
		unsigned w = weight_of(&t, f, n, limit), cw = weight_of(&t, cf, n, limit);

		HOLDS(cw >= w && cw <= w + slack, "%" PRIu64 " times: weight %u became %u", c, w,
			cw);
	}
	return true;
}

static bool preferred_nodes_have_cpus(uint64_t seed, unsigned size, char *why, size_t n_why)
{
	struct gen g = {seed};
	struct topology t;
	uint64_t f[TOPOLOGY_NODES_MAX], most = 0;
	struct idset active;
	int task, group;

	make_host(&g, size, &t);
	make_faults(&g, &t, f);
	task = weight_preferred_task(&t, f);
	group = weight_preferred_group(&t, f);
	if (!weight_sum(&t, f)) {
		HOLDS(task < 0 && group < 0, "a preferred node without faults");
		return true;
	}
	HOLDS(task >= 0 && t.node[task].has_cpu, "task prefers %d", task);
	HOLDS(group >= 0 && t.node[group].has_cpu, "group prefers %d", group);
	HOLDS(t.type != TOPOLOGY_DIRECT || task == group, "direct: %d, %d", task, group);
	topology_foreach (n, &t) {
		if (!t.node[n].has_cpu)
			continue;
		most = MAX2(most, f[n]);
		if (t.type == TOPOLOGY_GLUELESS_MESH)
			HOLDS(weight_of(&t, f, n, t.max_distance) <=
					weight_of(&t, f, (unsigned)group, t.max_distance),
				"node %u weighs more than the preferred %d", n, group);
	}
	weight_active_nodes(&t, f, &active);
	topology_foreach (n, &t) {
		HOLDS(idset_has(&active, t.node[n].id) == (t.node[n].has_cpu && f[n] * 3 > most),
			"node %u", n);
	}
	return true;
}

static bool folding_has_bounds(uint64_t seed, unsigned size, char *why, size_t n_why)
{
	struct gen g = {seed};
	uint64_t max = gen_range(&g, 0, UINT64_C(1) << gen_range(&g, 0, 62));
	uint64_t from_zero = 0, v = gen_range(&g, 0, 2 * max + 1);

	for (unsigned i = 0; i < 100; i++) {
		uint64_t w = gen_chance(&g, 300) ? max : gen_range(&g, 0, max);
		uint64_t old = gen_range(&g, 0, v), less = gen_range(&g, 0, w);

		HOLDS(faults_fold(old, less) <= faults_fold(v, w), "not monotone");
		from_zero = faults_fold(from_zero, w);
		v = faults_fold(v, w);
		HOLDS(v >= w, "the window is lost");
		HOLDS(from_zero <= 2 * max, "%" PRIu64 " is above 2 * %" PRIu64, from_zero, max);
		HOLDS(v <= 2 * max + 1, "%" PRIu64 " is above 2 * %" PRIu64 " + 1", v, max);
	}
	HOLDS(faults_fold(gen_next(&g), UINT64_MAX) == UINT64_MAX, "does not saturate");
	return true;
}

/* One pass: the window exactly. More: at least the last window, at most what these windows alone
 * would have left (a sum keeps no more than its parts do). */
static bool undoing_the_decay_gives_the_window(
	uint64_t seed, unsigned size, char *why, size_t n_why)
{
	struct gen g = {seed};
	uint64_t previous = gen_range(&g, 0, UINT64_C(1) << gen_range(&g, 0, 60));
	uint64_t max = UINT64_C(1) << gen_range(&g, 0, 60), alone = 0, value = previous, w = 0, got;
	uint64_t passes = gen_range(&g, 2, 80);
	bool inexact = false;

	w = gen_range(&g, 0, max);
	got = faults_undo_decay(previous, faults_fold(previous, w), 1, &inexact);
	HOLDS(got == w, "window %" PRIu64 " after %" PRIu64 " is read as %" PRIu64, w, previous,
		got);
	HOLDS(!inexact, "one pass is exact");
	HOLDS(faults_undo_decay(previous, gen_next(&g), 0, &inexact) == 0, "no pass, no window");
	HOLDS(!inexact, "no pass is exact");
	for (uint64_t i = 0; i < passes; i++) {
		w = gen_range(&g, 0, max);
		value = faults_fold(value, w);
		alone = faults_fold(alone, w);
	}
	got = faults_undo_decay(previous, value, passes, &inexact);
	HOLDS(inexact, "several passes are not exact");
	HOLDS(got >= w && got <= alone, "%" PRIu64 " is not within %" PRIu64 "..%" PRIu64, got, w,
		alone);
	return true;
}

static bool load_test_has_no_direction(uint64_t seed, unsigned size, char *why, size_t n_why)
{
	struct gen g = {seed};
	unsigned bits = (unsigned)gen_range(&g, 1, 40);
	uint64_t top = UINT64_C(1) << bits;
	uint64_t src = gen_range(&g, 0, top), dst = gen_range(&g, 0, top);
	uint64_t src_cap = gen_range(&g, 1, top), dst_cap = gen_range(&g, 1, top);
	int64_t m = (int64_t)gen_range(&g, 0, src + dst) - (int64_t)dst; /* no side below 0 */
	bool refused = load_too_imbalanced(src, dst, m, src_cap, dst_cap);
	bool back = load_too_imbalanced(src - (uint64_t)m, dst + (uint64_t)m, -m, src_cap, dst_cap);

	snprintf(why, n_why,
		"src %" PRIu64 " of %" PRIu64 ", dst %" PRIu64 " of %" PRIu64 ", moved %" PRId64,
		src, src_cap, dst, dst_cap, m);
	if (load_too_imbalanced(dst, src, -m, dst_cap, src_cap) != refused)
		return false; /* seen from the other side it is the same */
	if (refused && back)
		return false; /* there and back cannot both make it worse */
	if (load_too_imbalanced(src, dst, 0, src_cap, dst_cap))
		return false; /* nothing moves */
	/* equal capacities: changing places is the mirror image */
	return !load_too_imbalanced(src, dst, (int64_t)src - (int64_t)dst, top, top);
}

static bool numaherd_is_never_laxer(uint64_t seed, unsigned size, char *why, size_t n_why)
{
	struct gen g = {seed};
	bool may = gen_chance(&g, 700);
	long imp = (long)gen_range(&g, 0, 4496) - 2248, move = (long)gen_range(&g, 0, 1998) - 999;
	long best = gen_chance(&g, 400) ? 0 : (long)gen_range(&g, 0, 1998), ki = -1, ni = -1;
	enum rules_verdict k, n;

	if (gen_chance(&g, 500)) { /* near the thresholds */
		imp = best + (long)gen_range(&g, 0, 40);
		move = best + (long)gen_range(&g, 0, 40);
	}
	snprintf(why, n_why, "may %d, imp %ld, move %ld, best %ld", may, imp, move, best);
	k = rules_idle_destination(RULES_KERNEL, may, move, best);
	n = rules_idle_destination(RULES_NUMAHERD, may, move, best);
	if (n != RULES_REJECT && (n != k || move < RULES_SMALLIMP || move <= best + RULES_MARGIN))
		return false;
	k = rules_running_destination(RULES_KERNEL, may, move, imp, best, &ki);
	n = rules_running_destination(RULES_NUMAHERD, may, move, imp, best, &ni);
	if (n == RULES_REJECT)
		return ni == -1;
	return n == k && ni == ki && ni >= RULES_SMALLIMP && ni > best + RULES_MARGIN;
}

PROPERTY(text_of_a_set_is_the_set)
PROPERTY(garbage_is_refused_or_understood)
PROPERTY(laws_of_sets)
PROPERTY(a_mended_table_is_sane)
PROPERTY(ids_are_only_labels)
PROPERTY(weights_have_bounds)
PROPERTY(weights_are_shares)
PROPERTY(preferred_nodes_have_cpus)
PROPERTY(folding_has_bounds)
PROPERTY(undoing_the_decay_gives_the_window)
PROPERTY(load_test_has_no_direction)
PROPERTY(numaherd_is_never_laxer)

PROPERTY_MAIN({"the text of a set is the set", test_text_of_a_set_is_the_set},
	{"garbage is refused or understood", test_garbage_is_refused_or_understood},
	{"laws of sets", test_laws_of_sets},
	{"a mended table is sane", test_a_mended_table_is_sane},
	{"ids are only labels: type, weights, active nodes", test_ids_are_only_labels},
	{"weights have bounds", test_weights_have_bounds},
	{"scaling all faults changes weights by truncation only", test_weights_are_shares},
	{"preferred nodes have CPUs", test_preferred_nodes_have_cpus},
	{"folding is monotone and never above 2 * window + 1", test_folding_has_bounds},
	{"undoing the decay gives the window", test_undoing_the_decay_gives_the_window},
	{"the load test has no direction", test_load_test_has_no_direction},
	{"numaherd's rules are never laxer than the kernel's", test_numaherd_is_never_laxer})
