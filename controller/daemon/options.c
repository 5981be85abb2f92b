/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Why flags only: per-VM words belong into policy, and what is left for the daemon itself fits a
 * unit's drop-in.
 */
#include "controller/daemon/options.h"

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
	OPT_LOG_LEVEL
};

static const struct option long_options[] = {
	{"dry-run", no_argument, NULL, 'n'},
	{"connect", required_argument, NULL, 'c'},
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
	     "  -c, --connect=URI      libvirt connection (default: libvirt's own, qemu:///system)\n"
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

static int take_option(int opt, const char *name, struct options *o)
{
	switch (opt) {
	case 'n':
		o->dry_run = true;
		return 0;
	case 'c':
		o->uri = optarg;
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
	int opt, idx = 0, r;

	while ((opt = getopt_long(argc, argv, "nc:s:hV", long_options, &idx)) != -1) {
		r = take_option(opt, long_options[idx].name, &o);
		if (r != 0)
			return r;
	}
	if (optind < argc) {
		fprintf(stderr, "numaherd: unexpected argument '%s'; see numaherd --help\n",
			argv[optind]);
		return OPTIONS_E_USAGE;
	}
	*ret = o;
	return 0;
}
