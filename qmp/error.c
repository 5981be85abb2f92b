/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Why texts are cleaned here: they end on terminals and in logs, and part of them was written by a
 * QEMU that nobody trusts.
 */
#include "qmp/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *qmp_result_name(int result)
{
	static const char *const names[QMP_RESULTS] = {
		[0] = "ok",
		[QMP_E_NOT_FOUND] = "not-found",
		[QMP_E_NOT_SOCKET] = "not-socket",
		[QMP_E_PATH_TOO_LONG] = "path-too-long",
		[QMP_E_PERM] = "permission",
		[QMP_E_REFUSED] = "refused",
		[QMP_E_BUSY] = "busy",
		[QMP_E_NO_GREETING] = "no-greeting",
		[QMP_E_NEGOTIATION] = "negotiation",
		[QMP_E_CLOSED] = "closed",
		[QMP_E_TRUNCATED] = "truncated",
		[QMP_E_STALLED] = "stalled",
		[QMP_E_IO] = "io",
		[QMP_E_SYNTAX] = "syntax",
		[QMP_E_UTF8] = "utf-8",
		[QMP_E_TOO_DEEP] = "too-deep",
		[QMP_E_TOO_BIG] = "too-big",
		[QMP_E_TOO_MANY] = "too-many-values",
		[QMP_E_PROTOCOL] = "protocol",
		[QMP_E_REMOTE] = "error-reply",
		[QMP_E_TIMEOUT] = "timeout",
		[QMP_E_CANCELLED] = "cancelled",
		[QMP_E_STATE] = "not-ready",
		[QMP_E_FULL] = "full",
		[QMP_E_SHAPE] = "shape",
	};

	if (result < 0)
		return "internal";
	if (result >= QMP_RESULTS || !names[result])
		return "unknown";
	return names[result];
}

int qmp_error_set(struct qmp_error *err, int code, const char *fmt, ...)
{
	va_list args;

	if (!err)
		return code;
	*err = (struct qmp_error){.code = code};
	va_start(args, fmt);
	vsnprintf(err->text, sizeof(err->text), fmt, args);
	va_end(args);
	for (char *c = err->text; *c; c++)
		if (*c < ' ' || *c > '~')
			*c = '?';
	return code;
}
