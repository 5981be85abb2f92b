/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Words that every module shares.
 *
 * Return values of functions that return int, throughout the project:
 *
 *   < 0   a negative errno: out of memory, or a promise inside this program is broken. The caller
 *         only passes it on.
 *   = 0   done.
 *   > 0   a named condition (MODULE_E_...) that is expected in normal life, such as "the thread is
 *         gone": the direct caller handles it.
 *
 * Out-parameters come last, are named ret_..., and are only written on success (= 0) unless the
 * function's own comment says otherwise.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#define _cleanup_(f) __attribute__((cleanup(f)))
#define _printf_(a, b) __attribute__((format(printf, a, b)))
#define _unused_ __attribute__((unused))

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

static inline void freep(void *p)
{
	free(*(void **)p);
}
#define _cleanup_free_ _cleanup_(freep)

/* Hand a pointer on: the local one becomes NULL, so that its cleanup does nothing. */
#define TAKE_PTR(p)                         \
	__extension__({                     \
		__typeof__(p) taken_ = (p); \
		(p) = NULL;                 \
		taken_;                     \
	})

#define MIN2(a, b)                      \
	__extension__({                 \
		__typeof__(a) a_ = (a); \
		__typeof__(b) b_ = (b); \
		a_ < b_ ? a_ : b_;      \
	})
#define MAX2(a, b)                      \
	__extension__({                 \
		__typeof__(a) a_ = (a); \
		__typeof__(b) b_ = (b); \
		a_ > b_ ? a_ : b_;      \
	})
