/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Why the last ')' of a stat line: the name in the parentheses is free text of the program and may
 * hold blanks and parentheses of its own ("a) S 1 ("), while nothing behind it can.
 */
#include "controller/host/threads.h"

#include <errno.h>
#include <stdio.h>

#include "controller/host/parse.h"

#define THREADS_LIMIT ((size_t)1 << 18)

/* "proc/PID/" or "proc/PID/task/TID/", to put before a file's name. */
#define DIR_LEN 64
static const char *thread_dir(pid_t pid, pid_t tid, char buf[DIR_LEN])
{
	if (tid)
		snprintf(buf, DIR_LEN, "proc/%d/task/%d", (int)pid, (int)tid);
	else
		snprintf(buf, DIR_LEN, "proc/%d", (int)pid);
	return buf;
}

/* "PID (" at the beginning; false if it is not so. */
static bool take_id(struct text *t, pid_t *ret)
{
	struct text before, behind;
	int id;

	if (!text_cut(*t, '(', &before, &behind) || !parse_pid(text_trim(before), &id))
		return false;
	*t = behind;
	*ret = id;
	return true;
}

/* Fields 3 and later; false if one that must be there is missing or no number. */
static bool take_fields(struct text rest, struct thread_stat *s)
{
	struct text word;
	int64_t cpu;

	rest = text_trim(rest);
	for (unsigned field = 3; field <= 39; field++) {
		bool ok = true;

		if (!text_word(&rest, &word))
			return field > 22;
		if (field == 3) {
			ok = word.n == 1;
			s->state = word.p[0];
		} else if (field == 14) {
			ok = parse_u64(word, UINT64_MAX, &s->utime_ticks);
		} else if (field == 15) {
			ok = parse_u64(word, UINT64_MAX, &s->stime_ticks);
		} else if (field == 20) {
			ok = parse_uint(word, UINT32_MAX, &s->num_threads);
		} else if (field == 22) {
			ok = parse_u64(word, UINT64_MAX, &s->start_ticks);
		} else if (field == 39) {
			if (parse_i64(word, 0, IDSET_MAX - 1, &cpu))
				s->last_cpu = (int)cpu;
		}
		if (!ok)
			return false;
	}
	return true;
}

int thread_stat_parse(const char *text, size_t len, struct thread_stat *ret)
{
	struct thread_stat s = {.last_cpu = -1};
	struct text t = text_of(text, len);
	const char *end;

	if (!take_id(&t, &s.id))
		return HOST_E_FORMAT;
	end = t.n ? memrchr(t.p, ')', t.n) : NULL;
	if (!end)
		return HOST_E_FORMAT;
	text_copy(text_of(t.p, (size_t)(end - t.p)), s.comm, sizeof(s.comm));
	if (!take_fields(text_of(end + 1, t.n - (size_t)(end + 1 - t.p)), &s))
		return HOST_E_FORMAT;
	*ret = s;
	return 0;
}

int thread_stat_read(const struct hostfs *fs, pid_t pid, pid_t tid, struct thread_stat *ret)
{
	_cleanup_free_ char *text = NULL;
	char dir[DIR_LEN];
	size_t len;
	int r;

	r = hostfs_read(fs, HOST_LIMIT_SMALL, &text, &len, "%s/stat", thread_dir(pid, tid, dir));
	return r ? r : thread_stat_parse(text, len, ret);
}

int thread_schedstat_parse(const char *text, size_t len, struct thread_schedstat *ret)
{
	struct text rest = text_trim(text_of(text, len)), run, wait, slices;
	struct thread_schedstat s;

	if (!text_word(&rest, &run) || !text_word(&rest, &wait) || !text_word(&rest, &slices))
		return HOST_E_FORMAT;
	if (!parse_u64(run, UINT64_MAX, &s.run_ns) || !parse_u64(wait, UINT64_MAX, &s.wait_ns) ||
		!parse_u64(slices, UINT64_MAX, &s.slices))
		return HOST_E_FORMAT;
	*ret = s;
	return 0;
}

int thread_schedstat_read(
	const struct hostfs *fs, pid_t pid, pid_t tid, struct thread_schedstat *ret)
{
	_cleanup_free_ char *text = NULL;
	char dir[DIR_LEN];
	size_t len;
	int r;

	r = hostfs_read(
		fs, HOST_LIMIT_SMALL, &text, &len, "%s/schedstat", thread_dir(pid, tid, dir));
	return r ? r : thread_schedstat_parse(text, len, ret);
}

int thread_status_parse(const char *text, size_t len, struct thread_status *ret)
{
	struct text rest = text_of(text, len), line;
	struct thread_status s = {0};
	bool ended;

	while (text_line(&rest, &line, &ended)) {
		if (!ended) /* a mask that was cut would be a wrong mask */
			break;
		if (text_skip(&line, "Cpus_allowed_list:"))
			s.has_cpus = idset_parse_list(line.p, line.n, &s.cpus) == 0;
		else if (text_skip(&line, "Mems_allowed_list:"))
			s.has_mems = idset_parse_list(line.p, line.n, &s.mems) == 0;
	}
	if (!s.has_cpus && !s.has_mems)
		return HOST_E_FORMAT;
	*ret = s;
	return 0;
}

int thread_status_read(const struct hostfs *fs, pid_t pid, pid_t tid, struct thread_status *ret)
{
	_cleanup_free_ char *text = NULL;
	char dir[DIR_LEN];
	size_t len;
	int r;

	r = hostfs_read(fs, HOST_LIMIT_SMALL, &text, &len, "%s/status", thread_dir(pid, tid, dir));
	return r ? r : thread_status_parse(text, len, ret);
}

int thread_comm_read(const struct hostfs *fs, pid_t pid, pid_t tid, char *buf, size_t size)
{
	_cleanup_free_ char *text = NULL;
	char dir[DIR_LEN];
	size_t len;
	int r;

	r = hostfs_read(fs, HOST_LIMIT_SMALL, &text, &len, "%s/comm", thread_dir(pid, tid, dir));
	if (r)
		return r;
	if (len && text[len - 1] == '\n')
		len--;
	text_copy(text_of(text, len), buf, size);
	return 0;
}

void thread_ids_clear(struct thread_ids *ids)
{
	free(ids->tid);
	*ids = (struct thread_ids){0};
}

static int compare_ids(const void *a, const void *b)
{
	pid_t x = *(const pid_t *)a, y = *(const pid_t *)b;

	return (x > y) - (x < y);
}

bool thread_ids_has(const struct thread_ids *ids, pid_t tid)
{
	return ids->n && bsearch(&tid, ids->tid, ids->n, sizeof(*ids->tid), compare_ids);
}

int thread_ids_read(const struct hostfs *fs, pid_t pid, struct thread_ids *ret)
{
	_cleanup_host_names_ struct host_names names = {0};
	struct thread_ids ids = {0};
	int r;

	r = hostfs_list(fs, THREADS_LIMIT, &names, "proc/%d/task", (int)pid);
	if (r)
		return r;
	ids.tid = calloc(names.n + 1, sizeof(*ids.tid));
	if (!ids.tid)
		return -ENOMEM;
	for (size_t i = 0; i < names.n; i++) {
		int tid;

		if (parse_pid(text_of(names.name[i], strlen(names.name[i])), &tid))
			ids.tid[ids.n++] = tid;
	}
	qsort(ids.tid, ids.n, sizeof(*ids.tid), compare_ids);
	*ret = ids;
	return 0;
}

int thread_cmdline_read(const struct hostfs *fs, pid_t pid, char **ret_text, size_t *ret_len)
{
	return hostfs_read(fs, HOST_LIMIT_MEDIUM, ret_text, ret_len, "proc/%d/cmdline", (int)pid);
}
