/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Why so little: the journal adds time, unit and pid; on a terminal the line itself is enough.
 */
#include "controller/daemon/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The log level is the one piece of state of the process that is not passed around. */
static struct {
	int max_level;
	bool journal;
} log_state = {.max_level = LOG_INFO};

void log_setup(int max_level)
{
	log_state.max_level = max_level;
	log_state.journal = getenv("JOURNAL_STREAM") != NULL;
}

void log_line(int level, const char *fmt, ...)
{
	static const char *const names[] = {
		"emerg", "alert", "crit", "error", "warning", "notice", "info", "debug"};
	char line[1024];
	size_t used;
	va_list ap;

	if (level > log_state.max_level)
		return;
	if (log_state.journal)
		snprintf(line, sizeof(line), "<%d>", level);
	else
		snprintf(line, sizeof(line), "numaherd: %s: ", names[level & 7]);
	used = strlen(line);
	va_start(ap, fmt);
	vsnprintf(line + used, sizeof(line) - used - 1, fmt, ap);
	va_end(ap);
	/* names of VMs come from outside: one message stays one line */
	for (char *p = line; *p; p++)
		if ((unsigned char)*p < ' ')
			*p = ' ';
	used = strlen(line);
	line[used] = '\n';
	fwrite(line, 1, used + 1, stderr);
}
