/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The compiler may call these even in a freestanding program. */
#pragma once

#include <stddef.h>

void *memcpy(void *to, const void *from, size_t n);
void *memmove(void *to, const void *from, size_t n);
void *memset(void *to, int byte, size_t n);
int memcmp(const void *a, const void *b, size_t n);
