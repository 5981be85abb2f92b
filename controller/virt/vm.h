/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What is said about one running VM, by libvirt (domainxml.c, session.c) or by its own QEMU
 * (qemu.c): a plain value.
 */
#pragma once

#include "policy/snapshot.h"

#define VIRT_CELLS_MAX TOPOLOGY_NODES_MAX

#define VIRT_SOCKET_MAX 108 /* what a UNIX socket's address holds, with its NUL */

enum virt_manager {
	VIRT_LIBVIRT,
	VIRT_QMP, /* a QEMU that libvirt does not know, asked through its QMP socket */
};

struct virt_vm {
	enum virt_manager manager;
	char uuid[SNAPSHOT_UUID_LEN];
	char name[SNAPSHOT_NAME_MAX];
	int id; /* libvirt's running id, part of the cgroup's name */
	enum vm_condition condition;

	unsigned max_vcpus;
	uint64_t ram_bytes; /* <memory>: the maximum, which is what QEMU maps */
	unsigned n_backends;
	uint64_t backend_bytes[VIRT_CELLS_MAX]; /* guest cells' memory, or all of it in one */
	char backend_id[VIRT_CELLS_MAX][64];    /* VIRT_QMP: QEMU's ids; "" if it has none */
	bool hugepages;
	bool pci_hostdev;     /* VFIO holds the guest's pages */
	bool placement_auto;  /* numad chose, which is the operator's word */
	char vcpu_cpuset[64]; /* <vcpu cpuset=>, "" if absent; for messages (cut if long) */
	bool numatune_strict; /* memory mode strict, or a strict memnode */
	bool numatune_restrictive;
	bool has_nodeset;
	struct idset nodeset; /* of <numatune><memory>, node ids */

	/* by QMP's word; none if QEMU was not asked */
	unsigned n_threads;
	struct vcpu_thread *thread; /* ascending id; own */

	/* VIRT_QMP only */
	char socket[VIRT_SOCKET_MAX];
	pid_t pid;
	uint64_t start_ticks;           /* with pid: the process that answered */
	char silent[SNAPSHOT_TEXT_MAX]; /* it has not answered for too long, and why; else "" */

	/* VIRT_LIBVIRT only. virDomainGetVcpuPinInfo: the mask configured for each vCPU; all host
	 * CPUs if none is */
	unsigned n_pins;
	struct idset *pin; /* [n_pins], own */
};

struct virt_list {
	unsigned n_vms;
	struct virt_vm *vm; /* own; ascending name, then UUID */
	uint64_t asked_ns;  /* when libvirt was asked: what it says of pins is of then; 0: never */
	unsigned n_odd;     /* VMs that could not be described and were left out */
	char odd[SNAPSHOT_TEXT_MAX]; /* the first of them, and why */
};

void virt_vm_clear(struct virt_vm *vm);
/* Deep copy; -ENOMEM leaves *ret zeroed. */
int virt_vm_copy(const struct virt_vm *from, struct virt_vm *ret);
void virt_list_clear(struct virt_list *l);
/* Deep copy; -ENOMEM leaves *ret empty. */
int virt_list_copy(const struct virt_list *from, struct virt_list *ret);
void virt_list_sort(struct virt_list *l);
/*
 * Adds copies of @more's VMs to @l, sorted. One that has the UUID of a VM which is there already is
 * the same VM, seen twice, and is left out. Odd ones are counted together. -ENOMEM leaves @l as it
 * was.
 */
int virt_list_merge(struct virt_list *l, const struct virt_list *more);
