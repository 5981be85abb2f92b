/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * numaherdctl: options, the table of verbs, and fetching a status.
 */
#include <getopt.h>
#include <locale.h>
#include <string.h>
#include <unistd.h>

#include "controller/control/client.h"
#include "controller/ctl/ctl.h"
#include "controller/daemon/options.h"

enum {
	OPT_JSON = 256,
	OPT_COLOR,
	OPT_NO_LEGEND,
	OPT_FROM
};

static const struct option long_options[] = {
	{"socket", required_argument, NULL, 's'},
	{"json", no_argument, NULL, OPT_JSON},
	{"color", required_argument, NULL, OPT_COLOR},
	{"no-legend", no_argument, NULL, OPT_NO_LEGEND},
	{"from", required_argument, NULL, OPT_FROM},
	{"help", no_argument, NULL, 'h'},
	{"version", no_argument, NULL, 'V'},
	{0},
};

static void print_help(void)
{
	puts("Usage: numaherdctl [OPTION]... [status [VM]]\n"
	     "Show what numaherd sees on this host, what it did, and why.\n"
	     "\n"
	     "  status [VM]         host, nodes and VMs, worst first; or one VM (default verb)\n"
	     "\n"
	     "  -s, --socket=PATH   control socket (default " OPTIONS_SOCKET_DEFAULT ")\n"
	     "      --json          the daemon's answer as JSON, base units (bytes, ns, permille)\n"
	     "      --from=FILE     show a saved --json answer instead of asking the daemon\n"
	     "      --color=WHEN    auto (default), always, never; NO_COLOR is respected\n"
	     "      --no-legend     tables without headings\n"
	     "  -h, --help\n"
	     "  -V, --version\n"
	     "\n"
	     "MEM LOCAL is the share of the VM's memory on the nodes its vCPUs run on, FAULT LOCAL the\n"
	     "share of its memory access faults that were local. From 90% on they are shown plain\n"
	     "(green), from 75% with '-' (yellow), below with '!' (red).\n"
	     "\n"
	     "Exit status: 0 ok, 1 error, 2 usage, 3 daemon not running, 4 no such VM.");
}

static enum ctl_exit read_saved(const char *path, struct json_object **ret)
{
	*ret = json_object_from_file(path);
	if (*ret)
		return CTL_OK;
	fprintf(stderr, "numaherdctl: %s: %s", path, json_util_get_last_err());
	return CTL_ERROR;
}

enum ctl_exit ctl_get_status(const struct ctl *ctl, struct json_object **ret)
{
	char why[256] = "out of memory";
	int r;

	if (ctl->from)
		return read_saved(ctl->from, ret);
	r = client_call(ctl->socket, "GetStatus", NULL, ret, why);
	if (r == 0)
		return CTL_OK;
	if (r == CLIENT_E_NO_DAEMON)
		fprintf(stderr, "numaherdctl: numaherd is not running (%s)\n", why);
	else if (r == CLIENT_E_DENIED)
		fprintf(stderr,
			"numaherdctl: %s; run it as root or as a member of the socket's group\n",
			why);
	else
		fprintf(stderr, "numaherdctl: %s\n", why);
	return r == CLIENT_E_NO_DAEMON ? CTL_NO_DAEMON : CTL_ERROR;
}

static enum ctl_exit verb_status(const struct ctl *ctl, int argc, char **argv)
{
	struct json_object *status = NULL;
	enum ctl_exit r;

	if (argc > 1) {
		fprintf(stderr, "numaherdctl: status takes at most one VM, not '%s' too\n",
			argv[1]);
		return CTL_USAGE;
	}
	r = ctl_get_status(ctl, &status);
	if (r != CTL_OK)
		return r;
	if (ctl->json)
		puts(json_object_to_json_string_ext(status, JSON_C_TO_STRING_PRETTY));
	else
		r = status_print(ctl, status, argc ? argv[0] : NULL, stdout);
	json_object_put(status);
	return r;
}

static const struct verb {
	const char *name;
	enum ctl_exit (*run)(const struct ctl *ctl, int argc, char **argv);
} verbs[] = {
	{"status", verb_status},
};

static bool want_color(const char *when)
{
	const char *no_color = getenv("NO_COLOR");

	if (when && strcmp(when, "auto") != 0)
		return strcmp(when, "always") == 0;
	return isatty(STDOUT_FILENO) && !(no_color && *no_color);
}

static int take_options(int argc, char **argv, struct ctl *ctl)
{
	const char *color = NULL;
	int opt;

	while ((opt = getopt_long(argc, argv, "s:hV", long_options, NULL)) != -1) {
		switch (opt) {
		case 's':
			ctl->socket = optarg;
			break;
		case OPT_JSON:
			ctl->json = true;
			break;
		case OPT_COLOR:
			color = optarg;
			if (strcmp(color, "auto") != 0 && strcmp(color, "always") != 0 &&
				strcmp(color, "never") != 0) {
				fprintf(stderr,
					"numaherdctl: --color=%s: want auto, always or never\n",
					color);
				return CTL_USAGE;
			}
			break;
		case OPT_NO_LEGEND:
			ctl->no_legend = true;
			break;
		case OPT_FROM:
			ctl->from = optarg;
			break;
		case 'h':
			print_help();
			return -1;
		case 'V':
			puts("numaherdctl " NUMAHERD_VERSION);
			return -1;
		default:
			fputs("numaherdctl: see numaherdctl --help\n", stderr);
			return CTL_USAGE;
		}
	}
	ctl->color = want_color(color);
	return 0;
}

int main(int argc, char **argv)
{
	struct ctl ctl = {.socket = OPTIONS_SOCKET_DEFAULT};
	const char *name = "status";
	int r;

	setlocale(LC_CTYPE, "");
	r = take_options(argc, argv, &ctl);
	if (r != 0)
		return r < 0 ? CTL_OK : r;
	if (optind < argc)
		name = argv[optind++];
	for (size_t i = 0; i < ARRAY_LEN(verbs); i++)
		if (strcmp(name, verbs[i].name) == 0)
			return verbs[i].run(&ctl, argc - optind, argv + optind);
	fprintf(stderr, "numaherdctl: no verb '%s'; see numaherdctl --help\n", name);
	return CTL_USAGE;
}
