/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The oracle's eye: where each page of a test guest lies and where its vCPUs run, asked of the
 * kernel directly and without a line of the daemon's code. What is touched how often is known from
 * the guest's own counts; putting both together is the scenario runner's work.
 *
 *   numaherd-oracle INTERVAL_MS SAMPLES VM:PID:RAM_BYTES:TID[,TID]...[:START+BYTES]... ...
 *
 * The TIDs are those of vCPU 0, 1, ...: not every QEMU names its threads.
 *
 * Prints one JSON object a line: the monotonic time, the kernel's migration counters, and per VM
 * for "ram" and each region the pages by node, and per vCPU the CPUs it was seen on in this
 * interval. SAMPLES 0 goes on until it is killed. A VM whose process is gone is printed as such.
 */
#include <errno.h>
#include <inttypes.h>
#include <numaif.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define REGIONS_MAX 64
#define VMS_MAX 32
#define NODES_MAX 64
#define VCPUS_MAX 64
#define CPUS_MAX 256
#define CHUNK 4096
#define LOOKS 10 /* at the vCPUs in each interval */

struct region {
	uint64_t start, bytes; /* guest-physical */
};

struct vcpu {
	int tid;
	unsigned seen[CPUS_MAX];
};

struct vm {
	char name[64];
	int pid;
	uint64_t ram_bytes, ram_start;
	int n_regions;
	struct region region[REGIONS_MAX];
	int n_vcpus;
	struct vcpu vcpu[VCPUS_MAX];
};

static bool parse_vm(const char *arg, struct vm *vm)
{
	int used = 0;

	memset(vm, 0, sizeof(*vm));
	if (sscanf(arg, "%63[^:]:%d:%" SCNu64 "%n", vm->name, &vm->pid, &vm->ram_bytes, &used) != 3)
		return false;
	arg += used;
	for (char sep = ':'; *arg == sep && vm->n_vcpus < VCPUS_MAX; arg += 1 + used, sep = ',')
		if (sscanf(arg + 1, "%d%n", &vm->vcpu[vm->n_vcpus++].tid, &used) != 1)
			return false;
	for (; *arg == ':' && vm->n_regions < REGIONS_MAX; arg += used) {
		struct region *r = &vm->region[vm->n_regions++];

		if (sscanf(arg, ":%" SCNu64 "+%" SCNu64 "%n", &r->start, &r->bytes, &used) != 2)
			return false;
	}
	return *arg == '\0' && vm->n_vcpus > 0;
}

/* Guest RAM: the one anonymous mapping as large as the guest's memory. */
static bool find_ram(struct vm *vm)
{
	char path[64], line[1024];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/maps", vm->pid);
	f = fopen(path, "re");
	if (!f)
		return false;
	vm->ram_start = 0;
	while (fgets(line, sizeof(line), f)) {
		uint64_t a, b;
		char perms[5] = "";

		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s", &a, &b, perms) == 3 &&
			b - a == vm->ram_bytes && perms[0] == 'r' && perms[1] == 'w')
			vm->ram_start = a;
	}
	fclose(f);
	return vm->ram_start != 0;
}

static int cpu_of(int pid, int tid)
{
	char path[64], text[1024], *p;
	size_t n;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", pid, tid);
	f = fopen(path, "re");
	if (!f)
		return -1;
	n = fread(text, 1, sizeof(text) - 1, f);
	fclose(f);
	text[n] = '\0';
	p = strrchr(text, ')');
	for (int field = 3; p && field <= 39; field++)
		p = strchr(p + 1, ' ');
	return p ? atoi(p + 1) : -1;
}

/* Pages by node; absent pages count nowhere. False: the process is gone. */
static bool pages_of(const struct vm *vm, uint64_t start, uint64_t bytes, uint64_t *by_node)
{
	static void *page[CHUNK];
	static int status[CHUNK];

	memset(by_node, 0, NODES_MAX * sizeof(*by_node));
	for (uint64_t at = 0; at < bytes;) {
		unsigned n = 0;

		for (; n < CHUNK && at < bytes; n++, at += 4096)
			page[n] = (void *)(uintptr_t)(vm->ram_start + start + at);
		if (move_pages(vm->pid, n, page, NULL, status, 0) < 0)
			return false;
		for (unsigned i = 0; i < n; i++)
			if (status[i] >= 0 && status[i] < NODES_MAX)
				by_node[status[i]]++;
	}
	return true;
}

static void print_pages(const uint64_t *by_node)
{
	const char *sep = "";

	printf("{");
	for (int n = 0; n < NODES_MAX; n++)
		if (by_node[n]) {
			printf("%s\"%d\":%" PRIu64, sep, n, by_node[n]);
			sep = ",";
		}
	printf("}");
}

static void print_vm(struct vm *vm)
{
	uint64_t by_node[NODES_MAX];

	printf("\"%s\":{", vm->name);
	if (!find_ram(vm) || !pages_of(vm, 0, vm->ram_bytes, by_node)) {
		printf("\"gone\":true}");
		return;
	}
	printf("\"ram\":");
	print_pages(by_node);
	printf(",\"regions\":[");
	for (int i = 0; i < vm->n_regions; i++) {
		printf("%s", i ? "," : "");
		if (!pages_of(vm, vm->region[i].start, vm->region[i].bytes, by_node))
			memset(by_node, 0, sizeof(by_node));
		print_pages(by_node);
	}
	printf("],\"vcpus\":{");
	for (int i = 0; i < vm->n_vcpus; i++) {
		const char *sep = "";

		printf("%s\"%d\":{", i ? "," : "", i);
		for (int c = 0; c < CPUS_MAX; c++)
			if (vm->vcpu[i].seen[c]) {
				printf("%s\"%d\":%u", sep, c, vm->vcpu[i].seen[c]);
				sep = ",";
			}
		printf("}");
	}
	printf("}}");
}

static uint64_t vmstat(const char *key)
{
	FILE *f = fopen("/proc/vmstat", "re");
	char name[64];
	uint64_t v, found = 0;

	while (f && fscanf(f, "%63s %" SCNu64, name, &v) == 2)
		if (strcmp(name, key) == 0)
			found = v;
	if (f)
		fclose(f);
	return found;
}

static void look_at_vcpus(struct vm *vms, int n, unsigned interval_ms)
{
	struct timespec pause = {.tv_nsec = 0};
	uint64_t each_ns = (uint64_t)interval_ms * 1000000 / LOOKS;

	pause.tv_sec = (time_t)(each_ns / 1000000000);
	pause.tv_nsec = (long)(each_ns % 1000000000);
	for (int i = 0; i < n; i++)
		for (int c = 0; c < vms[i].n_vcpus; c++)
			memset(vms[i].vcpu[c].seen, 0, sizeof(vms[i].vcpu[c].seen));
	for (int k = 0; k < LOOKS; k++) {
		for (int i = 0; i < n; i++)
			for (int c = 0; c < vms[i].n_vcpus; c++) {
				int cpu = cpu_of(vms[i].pid, vms[i].vcpu[c].tid);

				if (cpu >= 0 && cpu < CPUS_MAX)
					vms[i].vcpu[c].seen[cpu]++;
			}
		nanosleep(&pause, NULL);
	}
}

int main(int argc, char **argv)
{
	static struct vm vms[VMS_MAX];
	int n = argc - 3, samples;

	if (n < 1 || n > VMS_MAX) {
		fprintf(stderr, "usage: numaherd-oracle INTERVAL_MS SAMPLES "
				"VM:PID:RAM_BYTES:TID[,TID]...[:START+BYTES]...\n");
		return 2;
	}
	for (int i = 0; i < n; i++)
		if (!parse_vm(argv[3 + i], &vms[i])) {
			fprintf(stderr, "numaherd-oracle: cannot read '%s'\n", argv[3 + i]);
			return 2;
		}
	samples = atoi(argv[2]);
	for (int s = 0; samples == 0 || s < samples; s++) {
		struct timespec now;

		look_at_vcpus(vms, n, (unsigned)atoi(argv[1]));
		clock_gettime(CLOCK_MONOTONIC, &now);
		printf("{\"ns\":%" PRIu64 ",\"numa_pages_migrated\":%" PRIu64
		       ",\"pgmigrate_success\":%" PRIu64 ",\"vms\":{",
			(uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec,
			vmstat("numa_pages_migrated"), vmstat("pgmigrate_success"));
		for (int i = 0; i < n; i++) {
			printf("%s", i ? "," : "");
			print_vm(&vms[i]);
		}
		printf("}}\n");
		fflush(stdout);
	}
	return 0;
}
