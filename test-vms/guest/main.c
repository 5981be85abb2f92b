/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What vCPU 0 does: it sets the machine up, starts the others, and then, between bursts like
 * theirs, watches the time: phases, reports, and the console's queue. Nobody ever waits without
 * hlt, except for the few milliseconds in which the clocks are measured.
 */
#include "guest.h"
#include "apic.h"
#include "clock.h"
#include "cmdline.h"
#include "cpu.h"
#include "interrupts.h"
#include "report.h"
#include "serial.h"
#include "smp.h"
#include "timer.h"
#include "work.h"

enum {
	MESSAGES_SIZE = 16384,
	POPULATE_POLL_US = 2000,
	SEND_EVERY_NS = 1000000,
	/* An AP's exception is noticed, and a missed moment made up for, within this. */
	SLEEP_MAX_NS = 1000000000,
};

struct guest the_guest;

static void read_machine(const struct hvm_start_info *info, struct text *messages)
{
	struct platform *platform = &the_guest.platform;
	int r;

	r = platform_read(info, apic_id(), platform, messages);
	if (r == 0)
		r = cmdline_parse(platform->cmdline, platform->vcpus, &the_guest.config, messages);
	if (r == 0) {
		layout_place(&the_guest.config, platform->vcpus, &the_guest.layout);
		r = layout_check(&the_guest.layout, platform->ram, platform->ram_n, messages);
	}
	report_version();
	report_messages(messages);
	if (r != 0)
		report_stop();
	report_machine(&the_guest);
}

static void prepare_vcpu(uint32_t index)
{
	struct vcpu *vcpu = vcpu_self();

	vcpu->index = index;
	pattern_random_init(&vcpu->random, the_guest.config.seed, index);
	__atomic_store_n(&vcpu->started, true, __ATOMIC_RELEASE);
}

static void check_faults(void)
{
	uint32_t v;

	for (v = 1; v < the_guest.platform.vcpus; v++) {
		if (__atomic_load_n(&vcpu_get(v)->faulted, __ATOMIC_ACQUIRE))
			report_fault(vcpu_get(v));
	}
}

static bool is_populated(void)
{
	uint32_t v;

	for (v = 0; v < the_guest.platform.vcpus; v++) {
		if (!__atomic_load_n(&vcpu_get(v)->populated, __ATOMIC_ACQUIRE))
			return false;
	}
	return true;
}

static uint64_t since_ready_ms(uint64_t now_ns)
{
	return (now_ns - the_guest.ready_ns) / 1000000;
}

/* Enters the stage that is due; returns true if that is another one than before. */
static bool update_stage(uint64_t now_ns)
{
	uint64_t ms = since_ready_ms(now_ns);
	uint32_t due = pattern_stage_at(&the_guest.config, ms);

	if (due == the_guest.stage)
		return false;
	/* Phases that went by while the machine stood still are reported all the same. */
	while (the_guest.stage < due) {
		__atomic_store_n(&the_guest.stage, the_guest.stage + 1, __ATOMIC_RELEASE);
		report_phase(&the_guest, ms);
	}
	smp_wake(&the_guest.platform);
	return true;
}

/* Reports if it is time; returns when the next report is due. */
static uint64_t update_report(uint64_t now_ns, uint64_t due_ns)
{
	const uint64_t every_ns = (uint64_t)the_guest.config.report_ms * 1000000;

	if (now_ns < due_ns)
		return due_ns;
	/* A console that does not keep up gets fewer reports, not older ones. */
	if (!serial_is_pending())
		report_counts(&the_guest, since_ready_ms(now_ns));
	return due_ns + ((now_ns - due_ns) / every_ns + 1) * every_ns;
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t next_stage_ns(void)
{
	const struct config *config = &the_guest.config;

	if (the_guest.stage + 1 >= config->stages_n)
		return UINT64_MAX;
	return the_guest.ready_ns + (uint64_t)config->stages[the_guest.stage + 1].at_ms * 1000000;
}

static void run(void) __attribute__((noreturn));
static void run(void)
{
	struct vcpu *const self = vcpu_self();
	struct vcpu_touch how = pattern_vcpu_touch(&the_guest.config, the_guest.stage, 0);
	uint64_t burst_ns = the_guest.ready_ns, report_ns = UINT64_MAX;

	if (the_guest.config.report_ms > 0)
		report_ns = the_guest.ready_ns + (uint64_t)the_guest.config.report_ms * 1000000;
	for (;;) {
		uint64_t now_ns = clock_ns(), until_ns;

		if (update_stage(now_ns)) {
			how = pattern_vcpu_touch(&the_guest.config, the_guest.stage, 0);
			burst_ns = now_ns;
		}
		report_ns = update_report(now_ns, report_ns);
		serial_send_some();
		check_faults();
		if (now_ns >= burst_ns) {
			work_burst(&the_guest, self, &how);
			now_ns = clock_ns();
			burst_ns = now_ns + (uint64_t)how.pause_us * 1000;
		}

		until_ns = earlier(earlier(burst_ns, report_ns), next_stage_ns());
		until_ns = earlier(until_ns, now_ns + SLEEP_MAX_NS);
		if (serial_is_pending())
			until_ns = earlier(until_ns, now_ns + SEND_EVERY_NS);
		if (until_ns > now_ns)
			timer_sleep_us((until_ns - now_ns + 999) / 1000);
	}
}

void guest_main(const struct hvm_start_info *info)
{
	static char message_chars[MESSAGES_SIZE];
	struct text messages;
	uint64_t start_ns, now_ns;

	text_init(&messages, message_chars, sizeof(message_chars));
	the_guest.stage = GUEST_STAGE_WAIT;
	serial_init();
	interrupts_init();
	interrupts_enable_table();
	apic_init();
	apic_enable();
	clock_init(&messages);
	start_ns = clock_ns();
	timer_init();

	read_machine(info, &messages);
	prepare_vcpu(0);
	if (smp_start(&the_guest.platform, &messages) != 0) {
		report_messages(&messages);
		report_stop();
	}
	/* The others populate meanwhile. */
	serial_flush();
	work_populate(&the_guest, vcpu_self());
	while (!is_populated()) {
		check_faults();
		timer_sleep_us(POPULATE_POLL_US);
	}

	now_ns = clock_ns();
	the_guest.ready_ns = now_ns;
	__atomic_store_n(&the_guest.stage, 0, __ATOMIC_RELEASE);
	smp_wake(&the_guest.platform);
	report_ready((now_ns - start_ns) / 1000000);
	run();
}

void ap_main(uint32_t index)
{
	interrupts_enable_table();
	apic_enable();
	prepare_vcpu(index);
	work_run(&the_guest, vcpu_self());
}
