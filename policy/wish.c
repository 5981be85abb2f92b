/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Why a wish has to hold for some windows: one window is a sample, and a move copies memory.
 */
#include "policy/wish.h"

/* What is wished for. Of a wide VM only which nodes: its vCPUs are alike, and which of them goes
 * where may come out differently each time without meaning anything. */
static uint64_t key_of(const struct snapshot *s, const struct snap_vm *vm, const struct vm_plan *p)
{
	uint64_t key = UINT64_C(14695981039346656037);

	if (!p->split || p->wide) {
		topology_foreach (n, &s->topology) {
			if (p->home & NODE_BIT(n))
				key = (key ^ s->topology.node[n].id) * UINT64_C(1099511628211);
		}
		return (key ^ 1) | 1;
	}
	for (unsigned i = 0; i < vm->n_vcpus; i++) {
		int n = p->vcpu_target[i];

		key = (key ^ (n < 0 ? UINT64_C(0xffff) : s->topology.node[n].id)) *
		      UINT64_C(1099511628211);
	}
	return (key ^ 2) | 1;
}

void wish_forget(struct vm_history *h)
{
	h->wish = 0;
	h->wish_windows = 0;
}

bool wish_settle(const struct snapshot *s, const struct settings *set, const struct snap_vm *vm,
	struct vm_history *h, struct vm_plan *p, unsigned moving)
{
	uint64_t key = key_of(s, vm, p);
	uint64_t since = h->changed_ns ? s->time_ns - h->changed_ns : 0;
	uint64_t cooldown = set->cooldown_ns * trial_bar(&h->trial);
	bool cool, persistent, may_move;

	h->wish_windows = h->wish == key ? h->wish_windows + 1 : 1;
	h->wish = key;
	h->wish_node = (int)s->topology.node[p->target].id;
	persistent = reason_gate(
		&p->reason, &(struct gate){.name = "persistence",
				    .unit = "windows",
				    .source = settings_source(set, SETTING_PERSISTENCE),
				    .value = h->wish_windows,
				    .threshold = set->persistence_windows,
				    .node = -1,
				    .met = h->wish_windows >= set->persistence_windows});
	cool = reason_gate(&p->reason, &(struct gate){.name = "cooldown",
					       .unit = "ms",
					       .source = settings_source(set, SETTING_COOLDOWN),
					       .value = (int64_t)(since / 1000000),
					       .threshold = (int64_t)(cooldown / 1000000),
					       .node = -1,
					       .met = !h->changed_ns || since >= cooldown});
	may_move =
		!p->move_bytes ||
		reason_gate(&p->reason, &(struct gate){.name = "moves-in-flight",
						.unit = "VMs",
						.source = settings_source(set, SETTING_MOVES_MAX),
						.value = moving,
						.threshold = set->moves_max,
						.node = -1,
						.met = moving < set->moves_max});
	p->reason.why = !persistent ? WHY_WATCHING
			: !cool     ? WHY_COOLING
			: !may_move ? WHY_IN_FLIGHT
				    : WHY_READY;
	return p->reason.why == WHY_READY;
}
