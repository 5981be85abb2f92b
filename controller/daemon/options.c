/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Why flags at all: what is tried out by hand, or differs from run to run, should not need a file.
 * What stays is in the host configuration.
 */
#include "controller/daemon/options.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <syslog.h>

#include "controller/act/mover.h"
#include "controller/host/parse.h"

enum {
	OPT_TICK = 256,
	OPT_PERSISTENCE,
	OPT_COOLDOWN,
	OPT_RATE,
	OPT_BATCH,
	OPT_ROOT,
	OPT_ON_EXIT,
	OPT_LOG_LEVEL,
	OPT_CONFIG,
	OPT_QMP,
	OPT_LIBVIRT_MONITOR
};

/* What the command line says about things that the file may say, too. */
struct words {
	const char *config_path; /* NULL: the default, which may be missing */
	const char *uri;
	bool libvirt_monitor;
};

static const struct option long_options[] = {
	{"dry-run", no_argument, NULL, 'n'},
	{"config", required_argument, NULL, OPT_CONFIG},
	{"connect", required_argument, NULL, 'c'},
	{"qmp", required_argument, NULL, OPT_QMP},
	{"libvirt-monitor", no_argument, NULL, OPT_LIBVIRT_MONITOR},
	{"socket", required_argument, NULL, 's'},
	{"tick", required_argument, NULL, OPT_TICK},
	{"persistence", required_argument, NULL, OPT_PERSISTENCE},
	{"cooldown", required_argument, NULL, OPT_COOLDOWN},
	{"rate", required_argument, NULL, OPT_RATE},
	{"batch", required_argument, NULL, OPT_BATCH},
	{"root", required_argument, NULL, OPT_ROOT},
	{"on-exit", required_argument, NULL, OPT_ON_EXIT},
	{"log-level", required_argument, NULL, OPT_LOG_LEVEL},
	{"help", no_argument, NULL, 'h'},
	{"version", no_argument, NULL, 'V'},
	{0},
};

static void print_help(void)
{
	puts("Usage: numaherd [OPTION]...\n"
	     "Watch where each VM's memory accesses land and run it where its memory is.\n"
	     "\n"
	     "  -n, --dry-run          decide and explain, change nothing\n"
	     "      --config=FILE      host configuration (default " CONFIG_PATH_DEFAULT ")\n"
	     "  -c, --connect=URI      libvirt connection (default: libvirt's own, qemu:///system);\n"
	     "                         none: do without libvirt\n"
	     "      --qmp=GLOB         QMP sockets of QEMUs that libvirt does not know, such as\n"
	     "                         '/var/run/qemu-server/*.qmp'; may be given more than once\n"
	     "      --libvirt-monitor  where vCPU threads cannot be told apart otherwise, ask QEMU\n"
	     "                         through libvirt (marks the domain as tainted)\n"
	     "  -s, --socket=PATH      control socket (default " OPTIONS_SOCKET_DEFAULT ")\n"
	     "      --tick=SECONDS     time between two looks, 1 to 3600 (default 10)\n"
	     "      --persistence=N    windows a wish must hold, 1 to 100 (default 3)\n"
	     "      --cooldown=SECONDS least time between two moves of a VM, 0 to 86400 (default 60)\n"
	     "      --rate=MIB         memory to move per second, 1 to 1048576 (default 256)\n"
	     "      --batch=PAGES      pages per move_pages call, 64 to 8192 (default 2048)\n"
	     "      --on-exit=WHAT     restore (default): give vCPUs back the masks they had;\n"
	     "                         keep: leave them where they are\n"
	     "      --root=DIR         read /proc, /sys and /run below DIR (a captured host);\n"
	     "                         implies --dry-run\n"
	     "      --log-level=LEVEL  error, warning, notice, info (default), debug\n"
	     "  -h, --help\n"
	     "  -V, --version\n"
	     "\n"
	     "See numaherd(8). numaherdctl(1) shows what it does and why.");
}

static bool number_option(
	const char *name, const char *arg, uint64_t min, uint64_t max, uint64_t *ret)
{
	uint64_t v;

	if (!parse_u64(text_of(arg, strlen(arg)), max, &v) || v < min) {
		fprintf(stderr, "numaherd: --%s=%s: want a whole number from %llu to %llu\n", name,
			arg, (unsigned long long)min, (unsigned long long)max);
		return false;
	}
	*ret = v;
	return true;
}

static bool word_option(
	const char *name, const char *arg, const char *const *words, size_t n, unsigned *ret)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(arg, words[i]) == 0) {
			*ret = (unsigned)i;
			return true;
		}
	fprintf(stderr, "numaherd: --%s=%s: want one of:", name, arg);
	for (size_t i = 0; i < n; i++)
		fprintf(stderr, " %s", words[i]);
	fputc('\n', stderr);
	return false;
}

static bool take_number(int opt, const char *name, const char *arg, struct options *o)
{
	uint64_t v;

	switch (opt) {
	case OPT_TICK:
		if (!number_option(name, arg, 1, 3600, &v))
			return false;
		o->tick_ns = v * 1000000000;
		return true;
	case OPT_PERSISTENCE:
		if (!number_option(name, arg, 1, 100, &v))
			return false;
		o->settings.persistence_windows = (unsigned)v;
		return true;
	case OPT_COOLDOWN:
		if (!number_option(name, arg, 0, 86400, &v))
			return false;
		o->settings.cooldown_ns = v * 1000000000;
		return true;
	case OPT_RATE:
		if (!number_option(name, arg, 1, 1048576, &v))
			return false;
		o->rate_bytes = v << 20;
		return true;
	default:
		if (!number_option(name, arg, 64, MOVER_BATCH_MAX, &v))
			return false;
		o->batch_pages = (unsigned)v;
		return true;
	}
}

static bool take_word(int opt, const char *name, const char *arg, struct options *o)
{
	static const char *const ends[] = {"restore", "keep"};
	static const char *const levels[] = {"error", "warning", "notice", "info", "debug"};
	unsigned i;

	if (opt == OPT_ON_EXIT) {
		if (!word_option(name, arg, ends, ARRAY_LEN(ends), &i))
			return false;
		o->keep_on_exit = i == 1;
		return true;
	}
	if (!word_option(name, arg, levels, ARRAY_LEN(levels), &i))
		return false;
	o->log_level = LOG_ERR + (int)i;
	return true;
}

static int take_pattern(const char *pattern, struct options *o)
{
	const char *problem = config_pattern_problem(pattern);
	int r;

	if (problem) {
		fprintf(stderr, "numaherd: --qmp=%s: %s\n", pattern, problem);
		return OPTIONS_E_USAGE;
	}
	r = config_add_source(&o->config, pattern, /* share= */ true);
	if (r == 0)
		return 0;
	fprintf(stderr, "numaherd: --qmp=%s: %s\n", pattern,
		r == -ENOSPC ? "at most 64 of them" : "out of memory");
	return OPTIONS_E_USAGE;
}

static int take_option(int opt, const char *name, struct options *o, struct words *w)
{
	switch (opt) {
	case 'n':
		o->dry_run = true;
		return 0;
	case 'c':
		w->uri = optarg;
		return 0;
	case OPT_CONFIG:
		w->config_path = optarg;
		return 0;
	case OPT_QMP:
		return take_pattern(optarg, o);
	case OPT_LIBVIRT_MONITOR:
		w->libvirt_monitor = true;
		return 0;
	case 's':
		o->socket = optarg;
		return 0;
	case OPT_ROOT:
		o->root = optarg;
		o->dry_run = true;
		return 0;
	case 'h':
		print_help();
		return OPTIONS_E_EXIT;
	case 'V':
		puts("numaherd " NUMAHERD_VERSION);
		return OPTIONS_E_EXIT;
	case OPT_ON_EXIT:
	case OPT_LOG_LEVEL:
		return take_word(opt, name, optarg, o) ? 0 : OPTIONS_E_USAGE;
	case '?':
		fputs("numaherd: see numaherd --help\n", stderr);
		return OPTIONS_E_USAGE;
	default:
		return take_number(opt, name, optarg, o) ? 0 : OPTIONS_E_USAGE;
	}
}

/* The file first, then what the command line says against it. */
static int read_config(const struct words *w, struct config *c)
{
	const char *path = w->config_path ? w->config_path : CONFIG_PATH_DEFAULT;
	char why[CONFIG_WHY_MAX];
	int r = config_read(path, c, why);

	if (r < 0 || (r > 0 && !(r == CONFIG_E_MISSING && !w->config_path))) {
		fprintf(stderr, "numaherd: %s\n", r < 0 ? "out of memory" : why);
		return OPTIONS_E_USAGE;
	}
	c->libvirt_monitor |= w->libvirt_monitor;
	if (!w->uri)
		return 0;
	free(c->libvirt_uri);
	c->no_libvirt = strcmp(w->uri, "none") == 0;
	c->libvirt_uri = c->no_libvirt ? NULL : strdup(w->uri);
	return 0;
}

int options_parse(int argc, char **argv, struct options *ret)
{
	struct options o = {
		.tick_ns = UINT64_C(10) * 1000000000,
		.rate_bytes = MOVER_RATE_DEFAULT,
		.batch_pages = MOVER_BATCH_DEFAULT,
		.log_level = LOG_INFO,
		.root = "/",
		.socket = OPTIONS_SOCKET_DEFAULT,
		.settings = SETTINGS_DEFAULT,
	};
	struct words w = {0};
	int opt, idx = 0, r = 0;

	while (r == 0 && (opt = getopt_long(argc, argv, "nc:s:hV", long_options, &idx)) != -1)
		r = take_option(opt, long_options[idx].name, &o, &w);
	if (r == 0 && optind < argc) {
		fprintf(stderr, "numaherd: unexpected argument '%s'; see numaherd --help\n",
			argv[optind]);
		r = OPTIONS_E_USAGE;
	}
	if (r == 0)
		r = read_config(&w, &o.config);
	*ret = o;
	return r;
}
