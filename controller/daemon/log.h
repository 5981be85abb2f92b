/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Log lines to stderr, with the <N> prefix that the journal understands when stderr is its socket.
 * ERR: failed and passed on. WARNING: degraded, going on, says how. NOTICE: a placement changed.
 * INFO: start, stop, connect. DEBUG: numbers.
 *
 * Leaves log nothing; whoever decides logs, once.
 */
#pragma once

#include <syslog.h>

#include "policy/base.h"

/* Lines above this level are dropped; main sets it once, before any thread starts. */
void log_setup(int max_level);
void log_line(int level, const char *fmt, ...) _printf_(2, 3);

#define log_err(...) log_line(LOG_ERR, __VA_ARGS__)
#define log_warning(...) log_line(LOG_WARNING, __VA_ARGS__)
#define log_notice(...) log_line(LOG_NOTICE, __VA_ARGS__)
#define log_info(...) log_line(LOG_INFO, __VA_ARGS__)
#define log_debug(...) log_line(LOG_DEBUG, __VA_ARGS__)
