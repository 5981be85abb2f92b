/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * numaherd: wiring. Everything is made here, in the order of its floors, and unmade in reverse.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "controller/daemon/daemon.h"
#include "controller/daemon/log.h"

#define STOP_TIMEOUT_USEC (UINT64_C(15) * 1000000)
#define WORKER_TIMEOUT_MS 3000

static void on_virt_message(void *arg)
{
	tick_soon(arg);
}

/* On libvirt's event thread. */
static void on_virt_event(void *userdata, enum virt_event event)
{
	struct daemon *d = userdata;

	mainq_post(d->mainq, on_virt_message, d);
}

static int on_stop_timeout(sd_event_source *source, uint64_t usec, void *userdata)
{
	log_warning("not all calls ended in time: some vCPUs may keep our masks");
	return sd_event_exit(sd_event_source_get_event(source), 0);
}

static int on_signal(sd_event_source *source, const struct signalfd_siginfo *si, void *userdata)
{
	struct daemon *d = userdata;

	if (d->stopping)
		return sd_event_exit(d->event, 0);
	log_info("stopping");
	sd_notify(0, "STOPPING=1");
	d->stopping = true;
	moves_cancel_all(d->moves);
	if (!d->options.keep_on_exit && !d->options.dry_run)
		actions_restore_all(d);
	if (!d->restores)
		return sd_event_exit(d->event, 0);
	return sd_event_add_time_relative(
		d->event, NULL, CLOCK_MONOTONIC, STOP_TIMEOUT_USEC, 0, on_stop_timeout, d);
}

static int setup_event(struct daemon *d)
{
	sigset_t mask;
	int r;

	sigemptyset(&mask);
	sigaddset(&mask, SIGTERM);
	sigaddset(&mask, SIGINT);
	if (sigprocmask(SIG_BLOCK, &mask, NULL) < 0)
		return -errno;
	r = sd_event_default(&d->event);
	if (r >= 0)
		r = sd_event_add_signal(d->event, NULL, SIGTERM, on_signal, d);
	if (r >= 0)
		r = sd_event_add_signal(d->event, NULL, SIGINT, on_signal, d);
	if (r >= 0)
		r = sd_event_set_watchdog(d->event, true);
	return r < 0 ? r : mainq_new(d->event, &d->mainq);
}

static int setup_workers(struct daemon *d)
{
	struct moves_config mc;
	int r;

	r = worker_new(d->mainq, "virt", &d->virt);
	if (r == 0)
		r = worker_new(d->mainq, "collect", &d->collector);
	if (r == 0)
		r = worker_new(d->mainq, "mover", &d->mover);
	if (r < 0)
		return r;
	mc = (struct moves_config){
		.worker = d->mover,
		.fs = &d->fs,
		.ops = &page_ops_kernel,
		.rate_bytes = d->options.rate_bytes,
		.batch_pages = d->options.batch_pages,
		.reserve_bytes = d->options.settings.reserve_bytes / 2,
		.done = actions_move_done,
		.userdata = d,
	};
	return moves_new(&mc, &d->moves);
}

static int setup_server(struct daemon *d)
{
	int r = server_new(d->event, d->options.socket, calls_handle, d, &d->server);

	if (r == -EADDRINUSE)
		log_err("%s: another numaherd is listening there; stop it, or use --socket",
			d->options.socket);
	else if (r == -EEXIST)
		log_err("%s exists and is no socket; remove it, or use --socket",
			d->options.socket);
	else if (r < 0)
		log_err("%s: cannot make the control socket: %s", d->options.socket, strerror(-r));
	return r;
}

/* Many QEMUs mean many sockets; what is allowed to be had is to be had. */
static void raise_file_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

static int setup(struct daemon *d)
{
	int r;

	raise_file_limit();
	r = hostfs_open(&d->fs, d->options.root);
	if (r != 0) {
		log_err("--root=%s: %s", d->options.root, host_strerror(r));
		return -EIO;
	}
	d->pages = strcmp(d->options.root, "/") == 0 ? &page_ops_kernel : NULL;
	r = virt_events_start();
	if (r == 0)
		r = setup_event(d);
	if (r == 0)
		r = setup_workers(d);
	if (r == 0)
		r = virt_session_new(d->options.config.libvirt_uri, on_virt_event, d, &d->session);
	if (r == 0)
		r = standalone_setup(d);
	if (r < 0) {
		log_err("cannot start: %s", strerror(-r));
		return r;
	}
	return setup_server(d);
}

/* False: a worker hangs in a call and still uses parts of @d. */
static bool teardown(struct daemon *d)
{
	bool clean = true;

	d->server = server_free(d->server);
	standalone_teardown(d);
	moves_cancel_all(d->moves);
	clean &= worker_stop(d->mover, WORKER_TIMEOUT_MS);
	clean &= worker_stop(d->collector, WORKER_TIMEOUT_MS);
	clean &= worker_stop(d->virt, WORKER_TIMEOUT_MS);
	clean &= worker_stop(d->finder, WORKER_TIMEOUT_MS);
	if (!clean)
		return false;
	d->session = virt_session_free(d->session);
	d->mover = worker_free(d->mover);
	d->collector = worker_free(d->collector);
	d->virt = worker_free(d->virt);
	d->finder = worker_free(d->finder);
	d->moves = moves_free(d->moves);
	plan_clear(&d->plan);
	plan_clear(&d->next_plan);
	decide_space_clear(&d->space);
	d->snapshot = snapshot_free(d->snapshot);
	d->observed = observed_free(d->observed);
	history_clear(&d->history);
	pins_clear(&d->pins);
	virt_list_clear(&d->vms);
	virt_list_clear(&d->libvirt_vms);
	config_clear(&d->options.config);
	d->timer = sd_event_source_disable_unref(d->timer);
	/* the queue stays: libvirt's event thread may post until the process ends */
	sd_event_unref(d->event);
	hostfs_close(&d->fs);
	return true;
}

int main(int argc, char **argv)
{
	_cleanup_free_ struct daemon *d = calloc(1, sizeof(*d));
	int r;

	if (!d)
		return 1;
	r = options_parse(argc, argv, &d->options);
	if (r != 0) {
		config_clear(&d->options.config);
		return r == OPTIONS_E_EXIT ? 0 : 2;
	}
	log_setup(d->options.log_level);
	d->fs.fd = -1;
	d->started_ns = daemon_now_ns();
	r = setup(d);
	if (r == 0) {
		log_info("numaherd %s, %s, looking every %llu s", NUMAHERD_VERSION,
			d->options.dry_run ? "dry run: nothing will be changed" : "acting",
			(unsigned long long)(d->options.tick_ns / 1000000000));
		sd_notify(0, "READY=1\nSTATUS=watching");
		r = tick_arm(d, 0);
	}
	if (r == 0)
		r = sd_event_loop(d->event);
	if (!teardown(d)) {
		log_warning("a call into libvirt or the kernel hangs, ending without it");
		_exit(r < 0 ? 1 : 0);
	}
	log_info("stopped");
	return r < 0 ? 1 : 0;
}
