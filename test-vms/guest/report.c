/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "report.h"
#include "cmdline.h"
#include "cpu.h"
#include "serial.h"

enum {
	/* Room for 64 vCPUs with the regions of a rotation or two. */
	COUNTS_SIZE = 16384,
	LINE_SIZE = 256,
	/* isa-debug-exit: QEMU's default, and where most guests expect it. */
	DEBUG_EXIT_PORT = 0x501,
	DEBUG_EXIT_PORT_USUAL = 0xf4,
	DEBUG_EXIT_FAILED = 1, /* QEMU exits with 3 */
};

static void add_value(struct text *text, const char *name, uint64_t value)
{
	text_add(text, name);
	text_add_number(text, value);
}

static void add_params(struct text *text, const struct touch_params *params)
{
	text_add(text, " name=");
	text_add(text, cmdline_pattern_name(params->pattern));
	add_value(text, " shared_permille=", params->shared_permille);
	add_value(text, " write_permille=", params->write_permille);
	add_value(text, " burst=", params->idle ? 0 : params->burst);
	add_value(text, " pause_us=", params->idle ? params->idle_pause_us : params->pause_us);
}

static void queue_line(struct text *text)
{
	text_add(text, "\n");
	(void)serial_queue(text);
}

void report_version(void)
{
	char chars[LINE_SIZE];
	struct text text;

	text_init(&text, chars, sizeof(chars));
	text_add(&text, GUEST_PREFIX "version 1");
	queue_line(&text);
}

void report_messages(struct text *messages)
{
	(void)serial_queue(messages);
	text_init(messages, messages->chars, messages->size);
}

void report_machine(const struct guest *guest)
{
	const struct layout *layout = &guest->layout;
	const struct touch_params *params = &guest->config.stages[0].params;
	char chars[LINE_SIZE];
	struct text text;
	uint32_t i;

	text_init(&text, chars, sizeof(chars));
	add_value(&text, GUEST_PREFIX "vcpus ", layout->vcpus);
	queue_line(&text);

	for (i = 0; i <= layout->vcpus; i++) {
		text_init(&text, chars, sizeof(chars));
		text_add(&text, GUEST_PREFIX "region ");
		layout_add_name(layout, i, &text);
		text_add(&text, " start ");
		text_add_hex(&text, layout->regions[i].start);
		add_value(&text, " bytes ", layout->regions[i].bytes);
		queue_line(&text);
	}

	text_init(&text, chars, sizeof(chars));
	text_add(&text, GUEST_PREFIX "pattern");
	add_params(&text, params);
	add_value(&text, " rotate=", params->rotate);
	add_value(&text, " seed=", guest->config.seed);
	queue_line(&text);
}

void report_ready(uint64_t ms)
{
	char chars[LINE_SIZE];
	struct text text;

	text_init(&text, chars, sizeof(chars));
	add_value(&text, GUEST_PREFIX "ready ms=", ms);
	queue_line(&text);
}

void report_counts(const struct guest *guest, uint64_t ms)
{
	static char chars[COUNTS_SIZE];
	const uint32_t vcpus = guest->layout.vcpus;
	struct text text;
	uint32_t v, i;

	text_init(&text, chars, sizeof(chars));
	add_value(&text, GUEST_PREFIX "counts ms=", ms);
	for (v = 0; v < vcpus; v++) {
		const struct vcpu *vcpu = vcpu_get(v);
		struct vcpu_touch how = pattern_vcpu_touch(&guest->config, guest->stage, v);
		uint32_t mine = pattern_private_region(v, how.rotate, vcpus);

		for (i = 0; i <= vcpus; i++) {
			uint64_t touches = __atomic_load_n(&vcpu->counts[i], __ATOMIC_RELAXED);

			if (touches == 0 && i != mine && i != vcpus)
				continue;
			add_value(&text, " v", v);
			text_add(&text, ".");
			layout_add_name(&guest->layout, i, &text);
			add_value(&text, "=", touches);
		}
	}
	if (text.cut) {
		text_init(&text, chars, sizeof(chars));
		text_add(&text, GUEST_PREFIX "warning: the counts are too long for a line");
	}
	queue_line(&text);
}

void report_phase(const struct guest *guest, uint64_t ms)
{
	const struct touch_params *params = &guest->config.stages[guest->stage].params;
	char chars[LINE_SIZE];
	struct text text;

	text_init(&text, chars, sizeof(chars));
	add_value(&text, GUEST_PREFIX "phase ms=", ms);
	add_value(&text, " rotate=", params->rotate);
	add_params(&text, params);
	queue_line(&text);
}

void report_fault(const struct vcpu *vcpu)
{
	char chars[LINE_SIZE];
	struct text text;

	text_init(&text, chars, sizeof(chars));
	add_value(&text, GUEST_PREFIX "error: vCPU ", vcpu->index);
	add_value(&text, " got exception ", vcpu->fault_vector);
	text_add(&text, " at ");
	text_add_hex(&text, vcpu->fault_rip);
	queue_line(&text);
	report_stop();
}

void report_stop(void)
{
	__atomic_store_n(&the_guest.stage, GUEST_STAGE_STOP, __ATOMIC_RELEASE);
	serial_flush();
	cpu_out8(DEBUG_EXIT_PORT, DEBUG_EXIT_FAILED);
	cpu_out8(DEBUG_EXIT_PORT_USUAL, DEBUG_EXIT_FAILED);
	cpu_stop();
}
