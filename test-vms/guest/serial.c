/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * COM1, polled. Every access to the port is an exit to the emulator, some ten microseconds on a
 * good day: so the line status is read once per FIFO load, and lines are queued and sent 16
 * characters at a time between the bursts, not all at once.
 */
#include "serial.h"
#include "cpu.h"

enum {
	PORT = 0x3f8,
	PORT_DATA = PORT,
	PORT_INTERRUPTS = PORT + 1,
	PORT_FIFO = PORT + 2,
	PORT_LINE = PORT + 3,
	PORT_MODEM = PORT + 4,
	PORT_STATUS = PORT + 5,

	LINE_DIVISOR = 0x80,
	LINE_8N1 = 0x03,
	FIFO_ENABLE_CLEAR = 0x07,
	MODEM_DTR_RTS = 0x03,
	STATUS_EMPTY = 0x20,

	FIFO_SIZE = 16,
	QUEUE_SIZE = 32768,
	FLUSH_POLLS_MAX = 20000,
};

static char queue[QUEUE_SIZE];
static size_t queue_first, queue_length;

void serial_init(void)
{
	cpu_out8(PORT_INTERRUPTS, 0);
	cpu_out8(PORT_LINE, LINE_DIVISOR);
	cpu_out8(PORT_DATA, 1); /* 115200 */
	cpu_out8(PORT_INTERRUPTS, 0);
	cpu_out8(PORT_LINE, LINE_8N1);
	cpu_out8(PORT_FIFO, FIFO_ENABLE_CLEAR);
	cpu_out8(PORT_MODEM, MODEM_DTR_RTS);
}

bool serial_queue(const struct text *text)
{
	size_t i;

	if (text->length > QUEUE_SIZE - queue_length)
		return false;
	for (i = 0; i < text->length; i++)
		queue[(queue_first + queue_length + i) % QUEUE_SIZE] = text->chars[i];
	queue_length += text->length;
	return true;
}

void serial_send_some(void)
{
	int room = FIFO_SIZE;

	if (queue_length == 0 || (cpu_in8(PORT_STATUS) & STATUS_EMPTY) == 0)
		return;
	while (queue_length > 0 && room-- > 0) {
		cpu_out8(PORT_DATA, (uint8_t)queue[queue_first]);
		queue_first = (queue_first + 1) % QUEUE_SIZE;
		queue_length--;
	}
}

bool serial_is_pending(void)
{
	return queue_length > 0;
}

void serial_flush(void)
{
	int polls = FLUSH_POLLS_MAX;

	while (queue_length > 0 && polls > 0) {
		size_t before = queue_length;

		serial_send_some();
		if (queue_length == before) {
			polls--;
			cpu_pause();
		}
	}
}
