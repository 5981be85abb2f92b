/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The libvirt client. Two kinds of threads use it:
 *
 *  - the event thread, started by virt_events_start(): libvirt's own event loop. The notify
 * callback is called there;
 *  - one worker, which makes all the (blocking) calls below it. They are not to be made from two
 *    threads at once.
 *
 *   state            refresh()                       connection lost
 *   ---------------  ------------------------------  ------------------------
 *   disconnected  -> connected, or VIRT_E_LOST       -
 *   connected     -> connected                       disconnected (notify)
 */
#pragma once

#include "controller/virt/vm.h"

enum {
	VIRT_E_LOST = 1, /* no connection to libvirtd; try again later */
	VIRT_E_GONE,     /* the VM does not run any more */
	VIRT_E_BUSY,     /* another libvirt job has the VM */
	VIRT_E_REFUSED,  /* libvirt or the kernel said no */
};

enum virt_event {
	VIRT_EVENT_VMS,  /* a VM came, went, or changed: refresh soon */
	VIRT_EVENT_LOST, /* the connection broke */
};
/* Called on the event thread. */
typedef void (*virt_notify)(void *userdata, enum virt_event event);

/*
 * Registers libvirt's event loop and starts its thread. To be called once, first of all and before
 * any session; libvirt offers no safe way to stop it, so it runs until the process ends.
 */
int virt_events_start(void);

struct virt_session;
/* @uri: NULL for libvirt's default (qemu:///system for root). Does not connect yet. */
int virt_session_new(
	const char *uri, virt_notify notify, void *userdata, struct virt_session **ret);
/* Closes the connection. No call may be under way. */
struct virt_session *virt_session_free(struct virt_session *s);

/*
 * Lists all running VMs, connecting first if need be.
 * @ret: replaced as a whole on 0.
 * Returns 0, VIRT_E_LOST or -ENOMEM. virt_session_error() has the text.
 */
int virt_session_refresh(struct virt_session *s, struct virt_list *ret);

/*
 * Pins one vCPU, live only.
 * Returns 0, VIRT_E_LOST, VIRT_E_GONE, VIRT_E_BUSY, VIRT_E_REFUSED.
 */
int virt_session_pin_vcpu(
	struct virt_session *s, const char *uuid, unsigned vcpu, const struct idset *cpus);

/*
 * Sends one command to the VM's monitor, which marks the domain as tainted.
 * @command: JSON. @ret_reply: JSON; the caller frees it.
 * Returns 0, VIRT_E_LOST, VIRT_E_GONE, VIRT_E_BUSY, VIRT_E_REFUSED.
 */
int virt_session_monitor(
	struct virt_session *s, const char *uuid, const char *command, char **ret_reply);

/* What the last call that failed had to say; never NULL. */
const char *virt_session_error(const struct virt_session *s);
/* "libvirt 9.0.0" of the server, "" before the first connection. */
const char *virt_session_version(const struct virt_session *s);
