/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Starts every line that the guest prints. */
#define GUEST_PREFIX "numaherd-guest: "

/*
 * A line under construction in the caller's memory. What does not fit is left out and `cut` is set;
 * the text is always terminated.
 */
struct text {
	char *chars;
	size_t size;
	size_t length;
	bool cut;
};

void text_init(struct text *text, char *chars, size_t size);
void text_add(struct text *text, const char *string);

/* Adds at most `length` characters of untrusted input; whatever is not printable becomes '?'. */
void text_add_input(struct text *text, const char *input, size_t length);

void text_add_number(struct text *text, uint64_t number);
void text_add_hex(struct text *text, uint64_t number);
