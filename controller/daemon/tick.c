/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Theory of operation: a tick is two jobs on two workers and then one step on the main loop. First
 * libvirt is asked which VMs run; if it does not answer (a hang, a restart) the tick goes on with
 * the VMs known so far, since /proc is there all the same. Then the collector makes a snapshot; it
 * is published by replacing one pointer, and the decision is made from it at once.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "controller/daemon/daemon.h"
#include "controller/daemon/log.h"
#include "controller/virt/passthrough.h"

uint64_t daemon_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

struct refresh_job {
	struct daemon *d;
	char (*monitor)[SNAPSHOT_UUID_LEN]; /* VMs whose monitor is to be asked as well; own */
	unsigned n_monitor;
	struct virt_list list;
	int result;
	char error[SNAPSHOT_TEXT_MAX];
	char version[32];
};

struct collect_job {
	struct daemon *d;
	struct virt_list vms; /* own */
	struct collect collect;
	int result;
};

/* The operator has allowed to ask those QEMUs whose vCPU threads cannot be told apart otherwise. */
static void ask_monitors(struct refresh_job *j)
{
	char why[SNAPSHOT_TEXT_MAX];

	for (unsigned i = 0; i < j->n_monitor; i++)
		for (unsigned k = 0; k < j->list.n_vms; k++) {
			struct passthrough p = {.session = j->d->session, .uuid = j->monitor[i]};

			if (strcmp(j->list.vm[k].uuid, j->monitor[i]) == 0 &&
				passthrough_ask_threads(passthrough_call, &p, &j->list.vm[k], why) >
					0)
				log_debug("VM '%s': its monitor was asked in vain: %s",
					j->list.vm[k].name, why);
		}
}

static void run_refresh(void *arg)
{
	struct refresh_job *j = arg;
	uint64_t began_ns = daemon_now_ns();

	j->result = virt_session_refresh(j->d->session, &j->list);
	j->list.asked_ns = began_ns;
	if (j->result == 0)
		ask_monitors(j);
	snprintf(j->error, sizeof(j->error), "%s",
		j->result ? virt_session_error(j->d->session) : "");
	snprintf(j->version, sizeof(j->version), "%s", virt_session_version(j->d->session));
}

static void run_collect(void *arg)
{
	struct collect_job *j = arg;

	j->result = collect_run(&j->collect);
}

static uint64_t per_second(uint64_t now, uint64_t before, uint64_t window_ns)
{
	if (!window_ns || now < before)
		return 0;
	return (now - before) * 1000 / MAX2(window_ns / 1000000, UINT64_C(1));
}

static void log_warnings(struct daemon *d, const struct observed *o)
{
	for (unsigned i = 0; i < o->n_warnings; i++) {
		bool known = false;

		for (unsigned k = 0; d->observed && k < d->observed->n_warnings; k++)
			known |= strcmp(o->warning[i], d->observed->warning[k]) == 0;
		if (!known)
			log_warning("host: %s, going on without it", o->warning[i]);
	}
}

/* What came of changes that were made a while ago. */
static void log_outcomes(struct daemon *d, const struct snapshot *s, const struct plan *p)
{
	for (unsigned i = 0; i < s->n_vms; i++) {
		const struct vm_history *h = history_get(&d->history, &s->vm[i]);

		if (!p->vm[i].judged || !h)
			continue;
		if (h->trial.kept)
			log_info("VM '%s': promised %d permille, has %d", s->vm[i].name,
				h->trial.promised, h->trial.achieved);
		else
			log_warning(
				"VM '%s': promised %d permille, has only %d: its next move must gain "
				"%u times as much and waits as many times as long",
				s->vm[i].name, h->trial.promised, h->trial.achieved,
				trial_bar(&h->trial));
	}
}

static void publish(struct daemon *d, struct collect *c)
{
	const struct snapshot *old = d->snapshot;
	struct plan plan;

	if (old) {
		d->hint_faults_per_s = per_second(
			c->snapshot->hint_faults, old->hint_faults, c->snapshot->window_ns);
		d->kernel_pages_per_s = per_second(c->snapshot->kernel_pages_migrated,
			old->kernel_pages_migrated, c->snapshot->window_ns);
	}
	log_warnings(d, c->observed);
	actions_check_pins(d, c->snapshot, c->observed);
	if (decide(c->snapshot, &d->options.settings, &d->history, &d->space, &d->next_plan) < 0) {
		log_err("out of memory while deciding, keeping the last plan");
		return;
	}
	log_outcomes(d, c->snapshot, &d->next_plan);
	plan = d->plan;
	d->plan = d->next_plan;
	d->next_plan = plan;
	snapshot_free(d->snapshot);
	d->snapshot = TAKE_PTR(c->snapshot);
	observed_free(d->observed);
	d->observed = TAKE_PTR(c->observed);
	d->trouble[0] = '\0';
	d->ticks++;
	pins_drop_gone(&d->pins, d->snapshot);
	moves_drop_gone(d->moves, d->snapshot);
	if (!d->stopping)
		actions_hand_out(d);
}

static void done_collect(void *arg)
{
	struct collect_job *j = arg;
	struct daemon *d = j->d;
	char text[SNAPSHOT_TEXT_MAX];

	d->collecting = false;
	if (j->result == 0) {
		publish(d, &j->collect);
	} else {
		snprintf(text, sizeof(text), "the host's nodes cannot be read: %s",
			host_strerror(j->result));
		if (strcmp(text, d->trouble) != 0)
			log_warning("%s, trying again", text);
		memcpy(d->trouble, text, sizeof(text));
	}
	snapshot_free(j->collect.snapshot);
	observed_free(j->collect.observed);
	virt_list_clear(&j->vms);
	free(j);
	if (d->refresh_wanted) {
		d->refresh_wanted = false;
		tick_soon(d);
	}
}

static unsigned by_qmp(const struct virt_list *l)
{
	unsigned n = 0;

	for (unsigned i = 0; i < l->n_vms; i++)
		n += l->vm[i].manager == VIRT_QMP;
	return n;
}

/* All VMs there are, by libvirt's and the QMP sockets' last word. */
static int update_vms(struct daemon *d)
{
	struct virt_list all = {0};
	int r = virt_list_copy(&d->libvirt_vms, &all);

	if (r == 0)
		r = standalone_merge(d, &all);
	if (r < 0) {
		virt_list_clear(&all);
		return r;
	}
	if (all.n_odd && strcmp(all.odd, d->odd_logged) != 0)
		log_warning("%u left out: %s", all.n_odd, all.odd);
	memcpy(d->odd_logged, all.odd, sizeof(d->odd_logged));
	if (by_qmp(&all) != by_qmp(&d->vms))
		log_info("%u VMs running that were found by their QMP sockets", by_qmp(&all));
	virt_list_clear(&d->vms);
	d->vms = all;
	return 0;
}

static void start_collect(struct daemon *d)
{
	struct collect_job *j;

	if (d->collecting || d->stopping)
		return;
	j = calloc(1, sizeof(*j));
	if (!j || update_vms(d) < 0 || virt_list_copy(&d->vms, &j->vms) < 0) {
		free(j);
		log_err("out of memory, this look at the host is left out");
		return;
	}
	j->d = d;
	j->collect = (struct collect){
		.fs = &d->fs,
		.pages = d->pages,
		.settings = &d->options.settings,
		.vms = &j->vms,
		.prev = d->snapshot,
		.prev_observed = d->observed,
		.now_ns = daemon_now_ns(),
	};
	if (worker_submit(d->collector, run_collect, done_collect, j) < 0) {
		virt_list_clear(&j->vms);
		free(j);
		return;
	}
	d->collecting = true;
}

static void note_connection(struct daemon *d, const struct refresh_job *j)
{
	bool connected = j->result == 0;

	if (connected && !d->connected)
		log_info("connected to %s, %u VMs running", j->version, j->list.n_vms);
	else if (!connected && strcmp(j->error, d->virt_error) != 0)
		log_warning(
			"%s; going on with the VMs known so far, trying again each tick", j->error);
	d->connected = connected;
	memcpy(d->virt_error, j->error, sizeof(d->virt_error));
	memcpy(d->virt_version, j->version, sizeof(d->virt_version));
}

static void done_refresh(void *arg)
{
	struct refresh_job *j = arg;
	struct daemon *d = j->d;

	d->refreshing = false;
	note_connection(d, j);
	if (j->result == 0) {
		virt_list_clear(&d->libvirt_vms);
		d->libvirt_vms = j->list;
	}
	free(j->monitor);
	free(j);
	start_collect(d);
}

/* Which VMs need their monitor to be asked; none without memory for the list. */
static void choose_monitors(const struct daemon *d, struct refresh_job *j)
{
	if (!d->options.config.libvirt_monitor || !d->snapshot || !d->snapshot->n_vms)
		return;
	j->monitor = calloc(d->snapshot->n_vms, sizeof(*j->monitor));
	for (unsigned i = 0; j->monitor && i < d->snapshot->n_vms; i++)
		if (d->observed->vm[i].needs_monitor)
			memcpy(j->monitor[j->n_monitor++], d->snapshot->vm[i].uuid,
				SNAPSHOT_UUID_LEN);
}

void tick_start(struct daemon *d)
{
	struct refresh_job *j;

	standalone_look(d);
	if (d->options.config.no_libvirt) {
		start_collect(d);
		return;
	}
	if (d->refreshing) {
		/* libvirt has not answered since the last tick: go on without it */
		start_collect(d);
		return;
	}
	j = calloc(1, sizeof(*j));
	if (!j) {
		log_err("out of memory, this look at libvirt is left out");
		return;
	}
	j->d = d;
	choose_monitors(d, j);
	if (worker_submit(d->virt, run_refresh, done_refresh, j) < 0) {
		free(j->monitor);
		free(j);
		return;
	}
	d->refreshing = true;
}

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata)
{
	struct daemon *d = userdata;
	uint64_t next = d->options.tick_ns;

	d->last_tick_ns = daemon_now_ns();
	/* look more often while something moves */
	if (moves_active(d->moves))
		next = MAX2(next / 4, UINT64_C(1000000000));
	tick_start(d);
	return tick_arm(d, next);
}

int tick_arm(struct daemon *d, uint64_t delay_ns)
{
	int r;

	d->timer_ns = daemon_now_ns() + delay_ns;
	if (!d->timer)
		return sd_event_add_time(d->event, &d->timer, CLOCK_MONOTONIC, d->timer_ns / 1000,
			10000, on_timer, d);
	r = sd_event_source_set_time(d->timer, d->timer_ns / 1000);
	if (r < 0)
		return r;
	return sd_event_source_set_enabled(d->timer, SD_EVENT_ONESHOT);
}

/*
 * Why not at once: whoever makes the news could make us look as often as he likes, and a window of
 * faults needs some time. And never later than planned, or a steady stream of news would keep us
 * from looking at all.
 */
void tick_soon(struct daemon *d)
{
	uint64_t now = daemon_now_ns();
	uint64_t distance = MAX2(d->options.tick_ns / 4, UINT64_C(1000000000));
	uint64_t when = MAX2(now + UINT64_C(300000000), d->last_tick_ns + distance);

	if (d->stopping || d->refresh_wanted)
		return;
	if (d->collecting || d->refreshing)
		d->refresh_wanted = true;
	else if (when < d->timer_ns)
		tick_arm(d, when - now);
}
