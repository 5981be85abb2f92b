/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Why the way down from the root group: a CPU that any group on the way excludes cannot be used,
 * whatever a mask asks for, and the operator needs to hear which file it is. On version 1 a group's
 * set is not restored when a CPU comes back online, so "online" alone is never enough.
 */
#include "controller/host/cgroup.h"

#include <errno.h>
#include <stdio.h>

#include "controller/host/parse.h"

#define GROUPS_MAX 65536u
#define INDEX_MAX 65535u
#define PATH_MAX_LEN 4096

void vm_cgroup_clear(struct vm_cgroup *cg)
{
	free(cg->mount);
	free(cg->group);
	*cg = (struct vm_cgroup){0};
}

/* The last component of a group is one of those that libvirt makes below a VM's group. */
static bool is_thread_group(struct text name)
{
	unsigned n;

	if (text_equal(name, "emulator"))
		return true;
	return (text_skip(&name, "vcpu") || text_skip(&name, "iothread")) &&
	       parse_uint(name, INDEX_MAX, &n);
}

static struct text strip_thread_group(struct text group)
{
	size_t slash = group.n;

	while (slash > 0 && group.p[slash - 1] != '/')
		slash--;
	if (slash > 1 && is_thread_group(text_of(group.p + slash, group.n - slash)))
		group.n = slash - 1;
	return group;
}

/*
 * "/../..": seen from inside a cgroup namespace, the group lies outside of what is mounted here,
 * and
 * "/.." in a path that we open would lead anywhere.
 */
static bool leads_up(struct text group)
{
	struct text part;

	while (text_split(&group, '/', &part))
		if (text_equal(part, "..") || text_equal(part, "."))
			return true;
	return false;
}

static bool has_controller(struct text list, const char *name)
{
	struct text item;

	while (text_split(&list, ',', &item))
		if (text_equal(item, name))
			return true;
	return false;
}

int vm_cgroup_parse(const char *text, size_t len, struct vm_cgroup *ret)
{
	struct text rest = text_of(text, len), line, group = {0};
	bool v2 = false, v1 = false, ended;
	struct vm_cgroup cg = {0};

	/* the path of a line that was cut would be another group */
	while (text_line(&rest, &line, &ended) && ended) {
		struct text id, behind, controllers, path;

		if (!text_cut(line, ':', &id, &behind) ||
			!text_cut(behind, ':', &controllers, &path) || !path.n || path.p[0] != '/')
			continue;
		if (has_controller(controllers, "cpuset")) {
			v1 = true;
			group = path;
		} else if (text_equal(id, "0") && !controllers.n && !v1) {
			v2 = true;
			group = path;
		}
	}
	if (!v1 && !v2)
		return len ? HOST_E_NOT_FOUND : HOST_E_FORMAT;
	if (leads_up(group) || memchr(group.p, '\0', group.n))
		return HOST_E_FORMAT;
	group = strip_thread_group(group);
	cg.v2 = !v1;
	cg.mount = strdup(v1 ? "sys/fs/cgroup/cpuset" : "sys/fs/cgroup");
	cg.group = text_dup(group);
	if (!cg.mount || !cg.group) {
		vm_cgroup_clear(&cg);
		return -ENOMEM;
	}
	*ret = cg;
	return 0;
}

/* "" for the root group, so that paths do not get two slashes. */
static const char *group_path(const struct vm_cgroup *cg)
{
	return strcmp(cg->group, "/") == 0 ? "" : cg->group;
}

static bool holds_threads(const struct hostfs *fs, const struct vm_cgroup *cg, const char *below)
{
	/* libvirt makes emulator/ first, and always; vcpu0 can be unplugged on some machines */
	return hostfs_exists(fs, "%s%s%s/emulator", cg->mount, group_path(cg), below) ||
	       hostfs_exists(fs, "%s%s%s/vcpu0", cg->mount, group_path(cg), below);
}

int vm_cgroup_find(const struct hostfs *fs, pid_t pid, struct vm_cgroup *ret)
{
	_cleanup_free_ char *text = NULL;
	struct vm_cgroup cg;
	size_t len;
	int r;

	r = hostfs_read(fs, HOST_LIMIT_SMALL, &text, &len, "proc/%d/cgroup", (int)pid);
	if (r != 0)
		return r;
	r = vm_cgroup_parse(text, len, &cg);
	if (r != 0)
		return r;
	/* some systems mount the v1 hierarchy together with another controller's */
	if (!cg.v2 && !hostfs_exists(fs, "%s", cg.mount) &&
		hostfs_exists(fs, "sys/fs/cgroup/cpu,cpuacct,cpuset")) {
		free(cg.mount);
		cg.mount = strdup("sys/fs/cgroup/cpu,cpuacct,cpuset");
		if (!cg.mount) {
			vm_cgroup_clear(&cg);
			return -ENOMEM;
		}
	}
	cg.has_threads = holds_threads(fs, &cg, "");
	if (!cg.has_threads && holds_threads(fs, &cg, "/libvirt")) {
		char *group;

		if (asprintf(&group, "%s/libvirt", group_path(&cg)) < 0) {
			vm_cgroup_clear(&cg);
			return -ENOMEM;
		}
		free(cg.group);
		cg.group = group;
		cg.has_threads = true;
	}
	*ret = cg;
	return 0;
}

void cgroup_threads_clear(struct cgroup_threads *threads)
{
	free(threads->thread);
	*threads = (struct cgroup_threads){0};
}

static int compare_threads(const void *a, const void *b)
{
	const struct cgroup_thread *x = a, *y = b;

	if (x->role != y->role)
		return x->role < y->role ? -1 : 1;
	if (x->index != y->index)
		return x->index < y->index ? -1 : 1;
	return x->tid < y->tid ? -1 : x->tid > y->tid;
}

static int add_thread(struct cgroup_threads *t, struct cgroup_thread thread)
{
	struct cgroup_thread *p = reallocarray(t->thread, t->n + 1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	t->thread = p;
	p[t->n++] = thread;
	return 0;
}

static int read_group(const struct hostfs *fs, const struct vm_cgroup *cg, const char *name,
	struct cgroup_thread like, struct cgroup_threads *t)
{
	_cleanup_free_ char *text = NULL;
	struct text rest, line;
	size_t len;
	int r;

	r = hostfs_read(fs, HOST_LIMIT_MEDIUM, &text, &len, "%s%s/%s/%s", cg->mount, group_path(cg),
		name, cg->v2 ? "cgroup.threads" : "tasks");
	if (r == HOST_E_GONE || r == HOST_E_IO) /* unplugged meanwhile (ENODEV reads as gone) */
		return 0;
	if (r != 0)
		return r;
	rest = text_of(text, len);
	while (r == 0 && text_line(&rest, &line, NULL)) {
		int tid;

		line = text_trim(line);
		if (!line.n)
			continue;
		if (!parse_pid(line, &tid)) {
			t->anomalies++;
			continue;
		}
		like.tid = tid;
		r = add_thread(t, like);
	}
	return r;
}

/* Which of libvirt's groups a directory is. */
static bool role_of(const char *name, struct cgroup_thread *ret)
{
	struct text t = text_of(name, strlen(name));

	*ret = (struct cgroup_thread){.role = CGROUP_EMULATOR};
	if (text_equal(t, "emulator"))
		return true;
	if (text_skip(&t, "vcpu"))
		ret->role = CGROUP_VCPU;
	else if (text_skip(&t, "iothread"))
		ret->role = CGROUP_IOTHREAD;
	else
		return false;
	return parse_uint(t, INDEX_MAX, &ret->index);
}

int cgroup_threads_read(
	const struct hostfs *fs, const struct vm_cgroup *cg, struct cgroup_threads *ret)
{
	_cleanup_host_names_ struct host_names names = {0};
	_cleanup_(cgroup_threads_clear) struct cgroup_threads t = {0};
	bool any = false;
	int r;

	r = hostfs_list(fs, GROUPS_MAX, &names, "%s%s", cg->mount, group_path(cg));
	if (r == HOST_E_GONE)
		return HOST_E_NOT_FOUND;
	for (size_t i = 0; r == 0 && i < names.n; i++) {
		struct cgroup_thread like;

		if (!role_of(names.name[i], &like))
			continue;
		any = true;
		r = read_group(fs, cg, names.name[i], like, &t);
	}
	if (r != 0)
		return r;
	if (!any)
		return HOST_E_NOT_FOUND;
	if (t.n)
		qsort(t.thread, t.n, sizeof(*t.thread), compare_threads);
	*ret = t;
	t = (struct cgroup_threads){0};
	return 0;
}

void cgroup_allowed_clear(struct cgroup_allowed *a)
{
	free(a->cpus_file);
	free(a->mems_file);
	*a = (struct cgroup_allowed){0};
}

static const char *const set_files[2][2][2] = {
	/* version 1: what is in force, and for kernels without it what was written */
	{{"cpuset.effective_cpus", "cpuset.cpus"}, {"cpuset.effective_mems", "cpuset.mems"}},
	{{"cpuset.cpus.effective", "cpuset.cpus"}, {"cpuset.mems.effective", "cpuset.mems"}},
};

/*
 * The set of one group. True: there is one. An empty set says nothing, since a group without the
 * controller, or with nothing configured, reads so.
 */
static bool read_set(const struct hostfs *fs, const struct vm_cgroup *cg, const char *group,
	enum cgroup_resource res, struct idset *ret, char *file, size_t size, unsigned *anomalies)
{
	for (unsigned k = 0; k < 2; k++) {
		_cleanup_free_ char *text = NULL;
		const char *name = set_files[cg->v2][res][k];
		size_t len;

		if (hostfs_read(fs, HOST_LIMIT_SMALL, &text, &len, "%s%s/%s", cg->mount, group,
			    name) != 0)
			continue;
		if (idset_parse_list(text, len, ret) != 0) {
			(*anomalies)++;
			continue;
		}
		snprintf(file, size, "/%s%s/%s", cg->mount, group, name);
		if (!idset_empty(ret))
			return true;
	}
	return false;
}

/*
 * Walks from the root group down to the VM's; calls @fn with each group's set until it returns
 * false.
 */
typedef bool (*set_fn)(const struct idset *set, const char *file, void *userdata);
static void walk(const struct hostfs *fs, const struct vm_cgroup *cg, enum cgroup_resource res,
	set_fn fn, void *userdata, unsigned *anomalies)
{
	const char *path = group_path(cg);
	char group[PATH_MAX_LEN], file[PATH_MAX_LEN + 128];
	size_t len = strlen(path);

	if (len >= sizeof(group))
		return;
	for (size_t end = 0; end <= len; end++) {
		struct idset set;

		if (end < len && path[end] != '/')
			continue;
		memcpy(group, path, end);
		group[end] = '\0';
		if (read_set(fs, cg, group, res, &set, file, sizeof(file), anomalies) &&
			!fn(&set, file, userdata))
			return;
	}
}

struct narrowing {
	struct idset left;
	char *file;
	bool failed;
};

static bool narrow(const struct idset *set, const char *file, void *userdata)
{
	struct narrowing *n = userdata;

	if (!idset_subset(&n->left, set)) {
		if (!n->file && !(n->file = strdup(file)))
			n->failed = true;
		idset_and(&n->left, set);
	}
	return !n->failed;
}

int cgroup_allowed_read(const struct hostfs *fs, const struct vm_cgroup *cg,
	const struct idset *online_cpus, const struct idset *online_mems,
	struct cgroup_allowed *ret)
{
	struct narrowing cpus = {.left = *online_cpus}, mems = {.left = *online_mems};
	unsigned anomalies = 0;

	walk(fs, cg, CGROUP_CPUS, narrow, &cpus, &anomalies);
	walk(fs, cg, CGROUP_MEMS, narrow, &mems, &anomalies);
	if (cpus.failed || mems.failed) {
		free(cpus.file);
		free(mems.file);
		return -ENOMEM;
	}
	*ret = (struct cgroup_allowed){.cpus = cpus.left,
		.mems = mems.left,
		.cpus_file = cpus.file,
		.mems_file = mems.file,
		.anomalies = anomalies};
	return 0;
}

struct lookup {
	unsigned id;
	char *file;
	bool failed;
};

static bool look(const struct idset *set, const char *file, void *userdata)
{
	struct lookup *l = userdata;

	if (idset_has(set, l->id))
		return true;
	l->file = strdup(file);
	l->failed = !l->file;
	return false;
}

int cgroup_who_excludes(const struct hostfs *fs, const struct vm_cgroup *cg,
	enum cgroup_resource resource, unsigned id, char **ret_file)
{
	struct lookup l = {.id = id};
	unsigned anomalies = 0;

	walk(fs, cg, resource, look, &l, &anomalies);
	if (l.failed)
		return -ENOMEM;
	if (!l.file)
		return HOST_E_NOT_FOUND;
	*ret_file = l.file;
	return 0;
}
