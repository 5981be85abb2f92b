/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Why a row counts only if its line ended with a newline: a number that was cut is a number all the
 * same. And why "incomplete" is kept apart from "zero": taking a node that was cut off for a node
 * without faults would draw the VM away from its memory.
 *
 * Unknown lines (the scheduler's many others) are passed over in silence; only lines that begin
 * like ours and do not go on like ours are anomalies.
 */
#include "controller/host/schedfile.h"

#include <errno.h>

#include "controller/host/parse.h"

/* Where a record of the old formats has what: "name, i, node, cpu_current, home_node, nr" */
#define OLD_FIELDS 5

void sched_numa_clear(struct sched_numa *s)
{
	free(s->row);
	*s = (struct sched_numa){0};
}

const struct sched_row *sched_numa_row(const struct sched_numa *s, unsigned node)
{
	for (unsigned i = 0; i < s->n_rows; i++)
		if (s->row[i].node == node)
			return &s->row[i];
	return NULL;
}

/* The row of the node, a new one (zeroed, in order) if need be; NULL: out of memory or too many. */
static struct sched_row *get_row(struct sched_numa *s, unsigned node, bool *ret_new)
{
	unsigned at = 0;
	struct sched_row *rows;

	while (at < s->n_rows && s->row[at].node < node)
		at++;
	*ret_new = !(at < s->n_rows && s->row[at].node == node);
	if (!*ret_new)
		return &s->row[at];
	rows = reallocarray(s->row, s->n_rows + 1, sizeof(*rows));
	if (!rows)
		return NULL;
	s->row = rows;
	memmove(rows + at + 1, rows + at, (s->n_rows - at) * sizeof(*rows));
	rows[at] = (struct sched_row){.node = node};
	s->n_rows++;
	return &rows[at];
}

static void drop(struct sched_numa *s)
{
	s->anomalies++;
	s->incomplete = true;
}

/* "numa_faults node=5 task_private=3427 task_shared=1 group_private=3427 group_shared=1" */
static int take_row(struct sched_numa *s, struct text rest)
{
	struct sched_row v = {0};
	const struct {
		const char *key;
		uint64_t *value;
	} keys[] = {
		{"task_private", &v.task_private},
		{"task_shared", &v.task_shared},
		{"group_private", &v.group_private},
		{"group_shared", &v.group_shared},
	};
	bool has_node = false, is_new;
	unsigned seen = 0;
	struct sched_row *row;
	struct text word, key, value;

	while (text_word(&rest, &word)) {
		if (!text_cut(word, '=', &key, &value))
			continue;
		if (text_equal(key, "node"))
			has_node = parse_uint(value, SCHED_ROWS_MAX - 1, &v.node);
		for (unsigned i = 0; i < ARRAY_LEN(keys); i++)
			if (text_equal(key, keys[i].key) &&
				parse_u64(value, UINT64_MAX, keys[i].value))
				seen |= 1u << i;
	}
	if (!has_node || seen != (1u << ARRAY_LEN(keys)) - 1) {
		drop(s);
		return 0;
	}
	row = get_row(s, v.node, &is_new);
	if (!row)
		return -ENOMEM;
	if (!is_new)
		s->anomalies++;
	*row = v;
	s->era = SCHED_ERA_4_2;
	s->has_stats = true;
	return 0;
}

/*
 * The old formats say per record private (i = 1) or shared (i = 0). @halves has two bits per node:
 * which of the two were seen.
 */
static int take_old_record(
	struct sched_numa *s, struct text rest, enum sched_era era, uint8_t *halves)
{
	int64_t field[OLD_FIELDS];
	unsigned node, half;
	struct sched_row *row;
	struct text piece;
	bool is_new;

	for (unsigned i = 0; i < OLD_FIELDS; i++) {
		if (!text_split(&rest, ',', &piece) ||
			!parse_i64(text_trim(piece), -1, INT64_MAX, &field[i])) {
			drop(s);
			return 0;
		}
	}
	if (field[0] < 0 || field[0] > 1 || field[1] < 0 || field[1] >= SCHED_ROWS_MAX) {
		drop(s);
		return 0;
	}
	half = (unsigned)field[0];
	node = (unsigned)field[1];
	row = get_row(s, node, &is_new);
	if (!row)
		return -ENOMEM;
	if (halves[node] & 1u << half)
		s->anomalies++;
	halves[node] |= 1u << half;
	s->era = era;
	if (half == 0 && field[2] == 1) /* for i = 1 this flag speaks of the memory policy */
		s->current = (int)node;
	if (field[3] == 1)
		s->preferred = (int)node;
	if (field[4] >= 0) {
		*(half ? &row->task_private : &row->task_shared) = (uint64_t)field[4];
		s->has_stats = true;
	}
	return 0;
}

/* "name : value" or "name, value" */
static bool take_value(struct text line, const char *name, struct text *ret_value)
{
	if (!text_skip(&line, name))
		return false;
	line = text_trim(line);
	if (!text_skip(&line, ":") && !text_skip(&line, ","))
		return false;
	*ret_value = text_trim(line);
	return true;
}

static bool take_node(struct text value, int *ret)
{
	int64_t v;

	if (!parse_i64(value, -1, SCHED_ROWS_MAX - 1, &v))
		return false;
	*ret = (int)v;
	return true;
}

/* "current_node=5, numa_group_id=11176" */
static void take_current(struct sched_numa *s, struct text line)
{
	struct text piece, key, value;

	while (text_split(&line, ',', &piece)) {
		bool ok = true;

		if (!text_cut(text_trim(piece), '=', &key, &value))
			continue;
		if (text_equal(key, "current_node"))
			ok = take_node(value, &s->current);
		else if (text_equal(key, "numa_group_id"))
			ok = parse_uint(value, UINT32_MAX, &s->group_id);
		if (!ok)
			s->anomalies++;
	}
}

static int take_line(struct sched_numa *s, struct text line, uint8_t *halves)
{
	struct text v = line;
	bool ok = true;

	if (text_skip(&v, "numa_faults_memory,"))
		return take_old_record(s, v, SCHED_ERA_3_14, halves);
	if (text_skip(&v, "numa_faults,"))
		return take_old_record(s, v, SCHED_ERA_3_13, halves);
	if (text_skip(&v, "numa_faults "))
		return take_row(s, v);
	if (text_starts(line, "current_node="))
		take_current(s, line);
	else if (take_value(line, "mm->numa_scan_seq", &v))
		ok = s->has_scan_seq = parse_u64(v, UINT64_MAX, &s->scan_seq);
	else if (take_value(line, "total_numa_faults", &v))
		ok = s->has_total = parse_u64(v, UINT64_MAX, &s->total);
	else if (take_value(line, "numa_preferred_nid", &v))
		ok = take_node(v, &s->preferred);
	else if (take_value(line, "numa_pages_migrated", &v) ||
		 take_value(line, "numa_migrations", &v))
		ok = parse_u64(v, UINT64_MAX, &s->pages_migrated);
	if (!ok)
		s->anomalies++;
	return 0;
}

/* "COMM (TID, #threads: N)"; the name is free text, so the last " (" that fits counts. */
static bool take_header(struct sched_numa *s, struct text line)
{
	for (size_t i = line.n; i-- > 0;) {
		struct text rest = text_of(line.p + i, line.n - i), id, threads;
		unsigned n;
		int tid;

		if (!text_skip(&rest, " (") || !text_cut(rest, ',', &id, &threads) ||
			!parse_pid(id, &tid) || !text_skip(&threads, " #threads: ") ||
			!text_ends(threads, ")"))
			continue;
		threads.n--;
		if (!parse_uint(threads, UINT32_MAX, &n))
			continue;
		s->tid = tid;
		s->num_threads = n;
		text_copy(text_of(line.p, i), s->comm, sizeof(s->comm));
		return true;
	}
	return false;
}

/*
 * The header is what stands before the line of dashes; a name may hold a newline, so it can be more
 * than one line. Without dashes (a part of a file) it is the first line, if that looks like one.
 */
static void skip_header(struct sched_numa *s, struct text *rest)
{
	const char *dashes = rest->n ? memmem(rest->p, MIN2(rest->n, 256u), "\n---", 4) : NULL;
	struct text after = *rest, line;
	bool ended;

	if (dashes) {
		size_t n = (size_t)(dashes - rest->p);

		if (!take_header(s, text_of(rest->p, n)))
			s->anomalies++;
		*rest = text_of(dashes + 1, rest->n - n - 1);
		return;
	}
	if (text_line(&after, &line, &ended) && ended && take_header(s, line))
		*rest = after;
}

/* What should be there and is not. */
static void check_complete(
	struct sched_numa *s, const struct idset *online, bool numa_part, const uint8_t *halves)
{
	if (s->n_rows == 0) {
		/* the lines before the rows were there: the rows were cut off */
		s->incomplete = s->incomplete || numa_part;
		return;
	}
	if (s->era != SCHED_ERA_4_2)
		for (unsigned i = 0; i < s->n_rows; i++)
			if (halves[s->row[i].node] != 3)
				s->incomplete = true;
	if (!online)
		return;
	idset_foreach (node, online)
		if (!sched_numa_row(s, (unsigned)node))
			s->incomplete = true;
}

int sched_numa_parse(
	const char *text, size_t len, const struct idset *online, struct sched_numa *ret)
{
	_cleanup_sched_numa_ struct sched_numa s = {.preferred = -1, .current = -1};
	uint8_t halves[SCHED_ROWS_MAX] = {0};
	struct text rest = text_of(text, len), line;
	bool ended, numa_part = false;
	int r;

	skip_header(&s, &rest);
	while (text_line(&rest, &line, &ended)) {
		if (!ended) {
			s.incomplete = true;
			if (text_starts(line, "numa_faults"))
				s.anomalies++;
			break;
		}
		if (text_starts(line, "mm->numa_scan_seq") ||
			text_starts(line, "total_numa_faults"))
			numa_part = true;
		r = take_line(&s, line, halves);
		if (r)
			return r;
	}
	check_complete(&s, online, numa_part, halves);
	*ret = s;
	s.row = NULL;
	return 0;
}

int sched_numa_read(const struct hostfs *fs, pid_t pid, pid_t tid, const struct idset *online,
	struct sched_numa *ret)
{
	_cleanup_free_ char *text = NULL;
	size_t len;
	int r;

	if (tid)
		r = hostfs_read(fs, HOST_LIMIT_MEDIUM, &text, &len, "proc/%d/task/%d/sched",
			(int)pid, (int)tid);
	else
		r = hostfs_read(fs, HOST_LIMIT_MEDIUM, &text, &len, "proc/%d/sched", (int)pid);
	return r ? r : sched_numa_parse(text, len, online, ret);
}
