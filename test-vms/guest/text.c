/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "text.h"

void text_init(struct text *text, char *chars, size_t size)
{
	text->chars = chars;
	text->size = size;
	text->length = 0;
	text->cut = false;
	chars[0] = '\0';
}

static void text_add_char(struct text *text, char c)
{
	if (text->length + 1 >= text->size) {
		text->cut = true;
		return;
	}
	text->chars[text->length++] = c;
	text->chars[text->length] = '\0';
}

void text_add(struct text *text, const char *string)
{
	while (*string != '\0')
		text_add_char(text, *string++);
}

void text_add_input(struct text *text, const char *input, size_t length)
{
	size_t i;

	for (i = 0; i < length && input[i] != '\0'; i++)
		text_add_char(text, input[i] >= ' ' && input[i] <= '~' ? input[i] : '?');
}

static void text_add_base(struct text *text, uint64_t number, unsigned int base)
{
	char digits[20];
	size_t n = 0;

	do {
		digits[n++] = "0123456789abcdef"[number % base];
		number /= base;
	} while (number > 0);
	while (n > 0)
		text_add_char(text, digits[--n]);
}

void text_add_number(struct text *text, uint64_t number)
{
	text_add_base(text, number, 10);
}

void text_add_hex(struct text *text, uint64_t number)
{
	text_add(text, "0x");
	text_add_base(text, number, 16);
}
