/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Why errors in the JSON name line and column: it went through a shell's quoting, and what was
 * typed is not always what arrives. QEMU's own error would name no place.
 */
#include "qmp/cli.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define JSON_DEPTH_MAX 64

enum {
	OPT_PRETTY = 256,
	OPT_EVENTS,
	OPT_COUNT,
	OPT_TIMEOUT,
	OPT_OOB
};

static const struct option long_options[] = {
	{"pretty", no_argument, NULL, OPT_PRETTY},
	{"events", optional_argument, NULL, OPT_EVENTS},
	{"count", required_argument, NULL, OPT_COUNT},
	{"timeout", required_argument, NULL, OPT_TIMEOUT},
	{"oob", no_argument, NULL, OPT_OOB},
	{"help", no_argument, NULL, 'h'},
	{"version", no_argument, NULL, 'V'},
	{0},
};

static void print_help(void)
{
	puts("Usage: qmp-cli [OPTION]... SOCKET [COMMAND [JSON]]\n"
	     "Give a QEMU one command over its QMP socket and print what it returns as JSON.\n"
	     "\n"
	     "  JSON                    the command's arguments, an object; -: read it from stdin\n"
	     "\n"
	     "      --pretty            indent what it returns\n"
	     "      --events[=NAME,...] then follow events (of these names), one in a line, until\n"
	     "                          QEMU ends; COMMAND may be left out\n"
	     "      --count=N           end after N events\n"
	     "      --timeout=SECONDS   for all of it (default 10 up to the reply, none for events);\n"
	     "                          0: none\n"
	     "      --oob               send COMMAND out of band\n"
	     "  -h, --help\n"
	     "  -V, --version\n"
	     "\n"
	     "Exit status: 0 done, 1 error reply, 2 usage, 3 cannot reach the socket, 4 timeout,\n"
	     "5 the connection or the protocol broke. See qmp-cli(1).");
}

static bool number_option(
	const char *name, const char *arg, uint64_t min, uint64_t max, uint64_t *ret)
{
	uint64_t v = 0;
	const char *p = arg;

	for (; *p >= '0' && *p <= '9' && v <= max; p++)
		v = v * 10 + (uint64_t)(*p - '0');
	if (!*arg || *p || v < min || v > max) {
		fprintf(stderr, "qmp-cli: --%s=%s: want a whole number from %llu to %llu\n", name,
			arg, (unsigned long long)min, (unsigned long long)max);
		return false;
	}
	*ret = v;
	return true;
}

/* "NAME,NAME": no name is empty. */
static bool names_option(const char *names)
{
	for (const char *p = names; *p || p == names; p += *p == ',') {
		size_t n = strcspn(p, ",");

		if (n == 0 || (p[n] == ',' && !p[n + 1])) {
			fprintf(stderr, "qmp-cli: --events=%s: want NAME or NAME,NAME\n", names);
			return false;
		}
		p += n;
	}
	return true;
}

static int take_option(int opt, struct cli_options *o)
{
	bool ok = true;

	switch (opt) {
	case OPT_PRETTY:
		o->pretty = true;
		return 0;
	case OPT_OOB:
		o->oob = true;
		return 0;
	case OPT_EVENTS:
		o->events = true;
		o->names = optarg;
		ok = !optarg || names_option(optarg);
		break;
	case OPT_COUNT:
		ok = number_option("count", optarg, 1, UINT32_MAX, &o->count);
		break;
	case OPT_TIMEOUT:
		o->has_timeout = true;
		ok = number_option("timeout", optarg, 0, CLI_TIMEOUT_MAX, &o->timeout_s);
		break;
	case 'h':
		print_help();
		return CLI_OPTIONS_E_EXIT;
	case 'V':
		puts("qmp-cli " NUMAHERD_VERSION);
		return CLI_OPTIONS_E_EXIT;
	default:
		fputs("qmp-cli: see qmp-cli --help\n", stderr);
		return CLI_OPTIONS_E_USAGE;
	}
	return ok ? 0 : CLI_OPTIONS_E_USAGE;
}

static int bad_json(const char *text, size_t at, const char *what)
{
	size_t line = 1, column = 1;

	for (size_t i = 0; i < at; i++) {
		column = text[i] == '\n' ? 1 : column + 1;
		line += text[i] == '\n';
	}
	fprintf(stderr, "qmp-cli: JSON, line %zu, column %zu: %s\n", line, column, what);
	return CLI_OPTIONS_E_USAGE;
}

/*
 * Where what is no JSON comes first, of that which json-c lets pass even if it is told to be
 * strict: 'keys', NaN, Infinity, and control characters in strings. @len: there is none.
 */
static size_t find_lax(const char *text, size_t len)
{
	bool in_string = false;

	for (size_t i = 0; i < len; i++) {
		if (in_string && (unsigned char)text[i] < ' ')
			return i;
		if (!in_string && text[i] && strchr("'NI", text[i]))
			return i;
		if (in_string && text[i] == '\\')
			i++;
		else if (text[i] == '"')
			in_string = !in_string;
	}
	return len;
}

static int parse_arguments(const char *text, size_t len, struct json_object **ret)
{
	static const char white[] = {' ', '\t', '\r', '\n'};
	struct json_tokener *tokener;
	struct json_object *object;
	enum json_tokener_error e;
	size_t begin = 0, end, lax;

	while (begin < len && memchr(white, text[begin], sizeof(white)))
		begin++;
	if (begin == len || text[begin] != '{')
		return bad_json(text, begin, "want an object, such as {\"device\":\"disk0\"}");
	while (memchr(white, text[len - 1], sizeof(white)))
		len--;
	lax = find_lax(text, len);
	tokener = json_tokener_new_ex(JSON_DEPTH_MAX);
	if (!tokener)
		return -ENOMEM;
	json_tokener_set_flags(tokener, JSON_TOKENER_STRICT | JSON_TOKENER_VALIDATE_UTF8);
	object = json_tokener_parse_ex(tokener, text, (int)len);
	e = json_tokener_get_error(tokener);
	end = json_tokener_get_parse_end(tokener);
	json_tokener_free(tokener);
	if (e == json_tokener_success && end == len && lax == len) {
		*ret = object;
		return 0;
	}
	json_object_put(object);
	if (lax < end)
		return bad_json(text, lax, "unexpected character");
	if (e == json_tokener_continue)
		return bad_json(text, len, "the object does not end");
	if (e == json_tokener_success)
		return bad_json(text, end, "something follows the object");
	return bad_json(text, end, json_tokener_error_desc(e));
}

static int read_stdin(struct json_object **ret)
{
	char *text = malloc(CLI_JSON_BYTES_MAX + 1);
	size_t len;
	int r;

	if (!text)
		return -ENOMEM;
	len = fread(text, 1, CLI_JSON_BYTES_MAX + 1, stdin);
	if (ferror(stdin)) {
		fprintf(stderr, "qmp-cli: stdin: %s\n", strerror(errno));
		r = CLI_OPTIONS_E_USAGE;
	} else if (len > CLI_JSON_BYTES_MAX) {
		fprintf(stderr, "qmp-cli: stdin: more than %zu bytes\n", CLI_JSON_BYTES_MAX);
		r = CLI_OPTIONS_E_USAGE;
	} else {
		r = parse_arguments(text, len, ret);
	}
	free(text);
	return r;
}

static int usage(const char *what)
{
	fprintf(stderr, "qmp-cli: %s; see qmp-cli --help\n", what);
	return CLI_OPTIONS_E_USAGE;
}

int cli_options_parse(int argc, char **argv, struct cli_options *ret)
{
	struct cli_options o = {.timeout_s = CLI_TIMEOUT_DEFAULT};
	const char *json;
	int opt, r;

	while ((opt = getopt_long(argc, argv, "hV", long_options, NULL)) != -1) {
		r = take_option(opt, &o);
		if (r != 0)
			return r;
	}
	if (argc - optind > 3)
		return usage("more than SOCKET COMMAND JSON");
	if (argc - optind < 1)
		return usage("want a SOCKET");
	o.path = argv[optind++];
	o.command = optind < argc ? argv[optind++] : NULL;
	json = optind < argc ? argv[optind] : NULL;
	if (!o.command && !o.events)
		return usage("want a COMMAND, or --events");
	if (!o.command && o.oob)
		return usage("--oob wants a COMMAND");
	if (o.count && !o.events)
		return usage("--count wants --events");
	if (json) {
		r = strcmp(json, "-") == 0 ? read_stdin(&o.arguments)
					   : parse_arguments(json, strlen(json), &o.arguments);
		if (r != 0)
			return r;
	}
	*ret = o;
	return 0;
}
