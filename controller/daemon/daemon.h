/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The daemon's root object. Embeds or owns everything; nothing else in the process has state.
 *
 * Threads: main (this object, the plan, the socket), virt-events (libvirt's loop, posts messages),
 * virt (blocking libvirt calls), collect (/proc, /sys), mover (move_pages), finder (globs).
 *
 *   timer -> [virt] refresh -> [collect] snapshot -> publish -> decide -> hand out
 *     |                                                 [virt] pins -> [mover] memory
 *     `----> [finder] globs -> QMP sockets, on the main loop
 */
#pragma once

#include <systemd/sd-event.h>

#include "controller/act/pins.h"
#include "controller/control/server.h"
#include "controller/daemon/moves.h"
#include "controller/daemon/options.h"
#include "controller/host/root.h"
#include "controller/source/collect.h"
#include "controller/virt/qemu.h"
#include "controller/virt/session.h"
#include "policy/decide.h"

struct daemon {
	struct options options;
	sd_event *event;
	struct mainq *mainq;
	struct worker *virt, *collector, *mover;
	struct virt_session *session;
	struct hostfs fs;
	const struct page_ops *pages; /* NULL on a captured host */
	struct server *server;
	struct moves *moves;
	sd_event_source *timer;
	uint64_t timer_ns;     /* when it is to go off */
	uint64_t last_tick_ns; /* when it last did */
	uint64_t started_ns;

	/* what libvirt said last, and with what QMP sockets said: all VMs */
	struct virt_list libvirt_vms, vms;
	bool connected;
	bool refresh_wanted; /* an event came: look again soon */
	char virt_error[SNAPSHOT_TEXT_MAX];
	char virt_version[32];
	char odd_logged[SNAPSHOT_TEXT_MAX];

	/* QEMU without libvirt; NULL: nobody asked for it */
	struct qemus *qemus;
	sd_event_source *qemus_io, *qemus_timer;
	struct worker *finder;
	bool finding; /* the globs are under way */

	/* the published moment; replaced whole */
	struct snapshot *snapshot;
	struct observed *observed;
	struct plan plan, next_plan; /* decided in turn, so that what they own is used again */
	struct decide_space space;
	uint64_t hint_faults_per_s, kernel_pages_per_s;
	uint64_t ticks;
	char trouble[SNAPSHOT_TEXT_MAX]; /* why there is no (new) snapshot */

	struct history history;
	struct pins pins;
	uint64_t first_decision_ns, last_action_ns;
	bool stopping;
	bool collecting;
	bool refreshing;
	unsigned restores; /* calls under way that give vCPUs back their masks */
};

uint64_t daemon_now_ns(void);

/* tick.c */
/* Starts one look at the host, unless one is under way. */
void tick_start(struct daemon *d);
/* Arms the timer for the next one. */
int tick_arm(struct daemon *d, uint64_t delay_ns);
/* Something changed: look again as soon as that makes sense. */
void tick_soon(struct daemon *d);

/* standalone.c */
int standalone_setup(struct daemon *d);
void standalone_teardown(struct daemon *d);
/* Starts a look at the QMP sockets, unless one is under way. */
void standalone_look(struct daemon *d);
/* Adds the VMs that QMP sockets told of. -ENOMEM. */
int standalone_merge(struct daemon *d, struct virt_list *list);

/* actions.c */
/* Looks at the pins of the snapshot that is about to be published: marks VMs that somebody else has
 * pinned, puts back drifted masks. */
void actions_check_pins(struct daemon *d, struct snapshot *s, const struct observed *o);
/* Hands out what the plan says is due. */
void actions_hand_out(struct daemon *d);
void actions_move_done(void *userdata, const struct moves_vm *vm);
/* Gives every vCPU that we pinned the mask it had; d->restores counts the calls. */
void actions_restore_all(struct daemon *d);

/* calls.c */
struct json_object *calls_handle(void *userdata, const char *method, struct json_object *parameters,
	bool privileged, const char **ret_error);
