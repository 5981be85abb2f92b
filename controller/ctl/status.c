/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The status tables. Why worst first: at three in the morning the VM that suffers must be the first
 * line. Ranges, never bitmaps; VM names, never pids; both localities, since their difference is
 * news.
 */
#include <libsmartcols.h>
#include <string.h>

#include "controller/ctl/ctl.h"
#include "policy/idset.h"

#define GREEN_PERMILLE 900
#define YELLOW_PERMILLE 750

enum node_column {
	NODE_ID,
	NODE_CPUS,
	NODE_BUSY,
	NODE_MEMORY,
	NODE_FREE,
	NODE_VMS
};
enum vm_column {
	VM_NAME,
	VM_VCPUS,
	VM_HOME,
	VM_AT,
	VM_MEM,
	VM_FAULT,
	VM_MOVES,
	VM_STATE
};

static const char *mark(int64_t permille)
{
	return permille >= GREEN_PERMILLE ? "" : permille >= YELLOW_PERMILLE ? " -" : " !";
}

static const char *color_of(int64_t permille)
{
	return permille >= GREEN_PERMILLE    ? "green"
	       : permille >= YELLOW_PERMILLE ? "yellow"
					     : "red";
}

static void gib(char *buf, size_t size, int64_t bytes)
{
	int64_t tenths = (bytes * 10 + (INT64_C(1) << 29)) >> 30;

	snprintf(buf, size, "%lld.%lld", (long long)(tenths / 10), (long long)(tenths % 10));
}

/* libsmartcols keeps a copy of what it is given. */
static void put(struct libscols_line *ln, size_t column, const char *text)
{
	scols_line_set_data(ln, column, text);
}

static void host_line(const struct ctl *ctl, struct json_object *status, FILE *out)
{
	struct json_object *d = get_member(status, "daemon"), *h = get_member(status, "host");
	struct json_object *v = get_member(status, "libvirt"), *w = get_member(h, "warnings");
	struct json_object *vms = get_member(status, "vms");
	struct json_object *left_out = get_member(status, "left_out");
	/* daemons before there were QMP sockets say nothing of it */
	bool used = !get_known(v, "used") || get_bool(v, "used"),
	     connected = get_bool(v, "connected") || !used,
	     acting = strcmp(get_text(d, "mode"), "acting") == 0;
	size_t n_vms = vms ? json_object_array_length(vms) : 0;
	int64_t age_s = (get_int(d, "now_ns", 0) - get_int(h, "time_ns", 0)) / 1000000000;
	int64_t balancing = get_int(h, "numa_balancing", -1);

	fprintf(out, "%s numaherd %s  %s  libvirt %s  %zu VM%s  kernel balancing: %s",
		connected ? "●" : "×", get_text(d, "version"),
		acting ? "acting" : "dry run (changes nothing)",
		!used       ? "not used"
		: connected ? "connected"
			    : "NOT CONNECTED",
		n_vms, n_vms == 1 ? "" : "s",
		balancing < 0    ? "unknown"
		: balancing == 0 ? "off"
		: balancing == 1 ? "on"
				 : "tiering");
	if (get_known(h, "time_ns"))
		fprintf(out, "  %s  sample %lld s old\n", get_text(h, "topology"),
			(long long)age_s);
	else
		fprintf(out, "  no sample yet\n");
	if (!connected && get_text(v, "error")[0])
		fprintf(out, "  ! %s\n", get_text(v, "error"));
	if (get_int(left_out, "count", 0))
		fprintf(out, "  ! left out: %lld, the first is %s\n",
			(long long)get_int(left_out, "count", 0), get_text(left_out, "first"));
	if (get_text(d, "trouble")[0])
		fprintf(out, "  ! %s\n", get_text(d, "trouble"));
	if (balancing == 0)
		fprintf(out,
			"  ! kernel.numa_balancing is 0: no hint faults, so VMs are placed by where "
			"their pages lie\n");
	for (size_t i = 0; w && i < json_object_array_length(w); i++)
		fprintf(out, "  ! %s\n", json_object_get_string(json_object_array_get_idx(w, i)));
}

static struct libscols_table *new_table(const struct ctl *ctl, FILE *out)
{
	struct libscols_table *t = scols_new_table();

	if (!t)
		return NULL;
	scols_table_set_stream(t, out);
	scols_table_enable_noheadings(t, ctl->no_legend);
	scols_table_enable_colors(t, ctl->color);
	return t;
}

static size_t cpu_nodes(struct json_object *nodes)
{
	size_t with = 0;

	for (size_t i = 0; i < json_object_array_length(nodes); i++)
		with += get_int(json_object_array_get_idx(nodes, i), "n_cpus", 0) > 0;
	return with;
}

static void node_line(struct libscols_table *t, struct json_object *node)
{
	struct libscols_line *ln = scols_table_new_line(t, NULL);
	int64_t total = get_int(node, "mem_total_bytes", 0),
		free = get_int(node, "mem_free_bytes", 0);
	int64_t cpus = get_int(node, "n_cpus", 0);
	char text[80], used[32], all[32];

	if (!ln)
		return;
	snprintf(text, sizeof(text), "%lld", (long long)get_int(node, "id", -1));
	put(ln, NODE_ID, text);
	put(ln, NODE_CPUS, cpus ? get_text(node, "cpus") : "-");
	if (cpus)
		snprintf(text, sizeof(text), "%lld",
			(long long)(get_int(node, "busy_permille", 0) / cpus / 10));
	put(ln, NODE_BUSY, cpus ? text : "-");
	gib(used, sizeof(used), total - free);
	gib(all, sizeof(all), total);
	snprintf(text, sizeof(text), "%s / %s", used, all);
	put(ln, NODE_MEMORY, text);
	gib(text, sizeof(text), free);
	put(ln, NODE_FREE, text);
	snprintf(text, sizeof(text), "%lld", (long long)get_int(node, "vms", 0));
	put(ln, NODE_VMS, text);
}

static void print_nodes(const struct ctl *ctl, struct json_object *status, FILE *out)
{
	struct json_object *nodes = get_member(status, "nodes");
	struct libscols_table *t;
	struct idset memory_only = {0};
	size_t n = nodes ? json_object_array_length(nodes) : 0;
	char text[128];

	if (!n || !(t = new_table(ctl, out)))
		return;
	scols_table_new_column(t, "NODE", 0, SCOLS_FL_RIGHT);
	scols_table_new_column(t, "CPUS", 0, 0);
	scols_table_new_column(t, "CPU%", 0, SCOLS_FL_RIGHT);
	scols_table_new_column(t, "USED/TOTAL GiB", 0, SCOLS_FL_RIGHT);
	scols_table_new_column(t, "FREE", 0, SCOLS_FL_RIGHT);
	scols_table_new_column(t, "VMs", 0, SCOLS_FL_RIGHT);
	for (size_t i = 0; i < n; i++) {
		struct json_object *node = json_object_array_get_idx(nodes, i);

		/* dozens of memory-only nodes (GPUs) would drown the others */
		if (!get_int(node, "n_cpus", 0) && n - cpu_nodes(nodes) > 4)
			idset_add(&memory_only, (unsigned)get_int(node, "id", 0));
		else
			node_line(t, node);
	}
	scols_print_table(t);
	scols_unref_table(t);
	if (!idset_empty(&memory_only))
		fprintf(out, "  memory-only nodes: %s\n",
			idset_format(&memory_only, text, sizeof(text)));
	if (cpu_nodes(nodes) < 2)
		fprintf(out, "  one node with CPUs: there is nothing to place\n");
}

/* What the table is sorted by: the worse of its localities; what is not known comes last. */
static int64_t badness(struct json_object *vm)
{
	int64_t m = get_int(vm, "memory_locality_permille", 1001);
	int64_t f = get_int(vm, "fault_locality_permille", 1001);

	return MIN2(m, f);
}

static int compare_vms(const void *a, const void *b)
{
	struct json_object *x = *(struct json_object *const *)a;
	struct json_object *y = *(struct json_object *const *)b;
	int64_t d = badness(x) - badness(y);

	return d ? (d < 0 ? -1 : 1) : strcmp(get_text(x, "name"), get_text(y, "name"));
}

static void nodes_of_vcpus(struct json_object *vm, char *buf, size_t size)
{
	struct json_object *vcpus = get_member(vm, "vcpus");
	struct idset at = {0};

	for (size_t i = 0; vcpus && i < json_object_array_length(vcpus); i++) {
		struct json_object *v = json_object_array_get_idx(vcpus, i);

		if (get_known(v, "node") && strcmp(get_text(v, "state"), "offline") != 0)
			idset_add(&at, (unsigned)get_int(v, "node", 0));
	}
	idset_format(&at, buf, size);
	if (!buf[0])
		snprintf(buf, size, "-");
}

static void locality_cell(const struct ctl *ctl, struct libscols_line *ln, size_t column,
	struct json_object *vm, const char *key)
{
	int64_t v = get_int(vm, key, -1);
	struct libscols_cell *cell = scols_line_get_cell(ln, column);
	char text[32];

	if (v < 0) {
		put(ln, column, "-");
		return;
	}
	snprintf(text, sizeof(text), "%lld%%%s", (long long)(v / 10), mark(v));
	put(ln, column, text);
	if (ctl->color && cell)
		scols_cell_set_color(cell, color_of(v));
}

static void vm_line(const struct ctl *ctl, struct libscols_table *t, struct json_object *vm)
{
	struct libscols_line *ln = scols_table_new_line(t, NULL);
	struct json_object *home = get_member(vm, "home"), *vcpus = get_member(vm, "vcpus");
	char text[256];

	if (!ln)
		return;
	put(ln, VM_NAME, get_text(vm, "name"));
	snprintf(text, sizeof(text), "%zu", vcpus ? json_object_array_length(vcpus) : 0);
	put(ln, VM_VCPUS, text);
	if (home && json_object_array_length(home))
		snprintf(text, sizeof(text), "%s",
			json_object_get_string(json_object_array_get_idx(home, 0)));
	else
		snprintf(text, sizeof(text), "-");
	put(ln, VM_HOME, text);
	nodes_of_vcpus(vm, text, sizeof(text));
	put(ln, VM_AT, text);
	locality_cell(ctl, ln, VM_MEM, vm, "memory_locality_permille");
	locality_cell(ctl, ln, VM_FAULT, vm, "fault_locality_permille");
	snprintf(text, sizeof(text), "%lld", (long long)get_int(vm, "home_changes", 0));
	put(ln, VM_MOVES, text);
	put(ln, VM_STATE, get_text(vm, "state"));
}

static enum ctl_exit print_vms(
	const struct ctl *ctl, struct json_object *status, const char *only, FILE *out)
{
	struct json_object *vms = get_member(status, "vms");
	size_t n = vms ? json_object_array_length(vms) : 0, shown = 0;
	_cleanup_free_ struct json_object **sorted = calloc(n ? n : 1, sizeof(*sorted));
	struct libscols_table *t = sorted ? new_table(ctl, out) : NULL;

	if (!t)
		return CTL_ERROR;
	scols_table_new_column(t, "VM", 0, 0);
	scols_table_new_column(t, "vCPU", 0, SCOLS_FL_RIGHT);
	scols_table_new_column(t, "HOME", 0, 0);
	scols_table_new_column(t, "CPU@", 0, 0);
	scols_table_new_column(t, "MEM LOCAL", 0, SCOLS_FL_RIGHT);
	scols_table_new_column(t, "FAULT LOCAL", 0, SCOLS_FL_RIGHT);
	scols_table_new_column(t, "MOVES", 0, SCOLS_FL_RIGHT);
	scols_table_new_column(t, "STATE", 0, 0);
	for (size_t i = 0; i < n; i++)
		sorted[i] = json_object_array_get_idx(vms, i);
	qsort(sorted, n, sizeof(*sorted), compare_vms);
	for (size_t i = 0; i < n; i++) {
		if (only && strcmp(only, get_text(sorted[i], "name")) != 0 &&
			strcmp(only, get_text(sorted[i], "uuid")) != 0)
			continue;
		vm_line(ctl, t, sorted[i]);
		shown++;
	}
	if (shown)
		scols_print_table(t);
	else if (!only)
		fprintf(out, "no running VMs\n");
	scols_unref_table(t);
	if (only && !shown) {
		fprintf(stderr,
			"numaherdctl: no running VM is named '%s'; 'numaherdctl status' lists "
			"them\n",
			only);
		return CTL_NO_VM;
	}
	return CTL_OK;
}

enum ctl_exit status_print(
	const struct ctl *ctl, struct json_object *status, const char *vm, FILE *out)
{
	if (!vm) {
		host_line(ctl, status, out);
		print_nodes(ctl, status, out);
	}
	return print_vms(ctl, status, vm, out);
}
