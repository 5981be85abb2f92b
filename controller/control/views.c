/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Why JSON is the only view: tables for people are made from it by the client, so the two can never
 * disagree.
 */
#include "controller/control/views.h"

#include <stdio.h>
#include <string.h>

#include "policy/explain.h"

static void put_int(struct json_object *o, const char *key, int64_t v)
{
	json_object_object_add(o, key, json_object_new_int64(v));
}

static void put_text(struct json_object *o, const char *key, const char *v)
{
	json_object_object_add(o, key, json_object_new_string(v));
}

static void put_bool(struct json_object *o, const char *key, bool v)
{
	json_object_object_add(o, key, json_object_new_boolean(v));
}

/* null stands for "not known": never 0 */
static void put_known(struct json_object *o, const char *key, int64_t v, bool known)
{
	json_object_object_add(o, key, known ? json_object_new_int64(v) : NULL);
}

static struct json_object *daemon_view(const struct view_host *h)
{
	struct json_object *o = json_object_new_object();

	put_text(o, "version", NUMAHERD_VERSION);
	put_text(o, "mode", h->dry_run ? "dry-run" : "acting");
	put_text(o, "trouble", h->trouble);
	put_int(o, "now_ns", (int64_t)h->now_ns);
	put_int(o, "uptime_ns", (int64_t)(h->now_ns - h->started_ns));
	put_int(o, "tick_ns", (int64_t)h->tick_ns);
	put_int(o, "ticks", (int64_t)h->ticks);
	put_int(o, "cpu_ns", (int64_t)h->cpu_ns);
	put_known(o, "first_decision_ns", (int64_t)h->first_decision_ns, h->first_decision_ns != 0);
	put_known(o, "last_action_ns", (int64_t)h->last_action_ns, h->last_action_ns != 0);
	return o;
}

static struct json_object *libvirt_view(const struct view_host *h)
{
	struct json_object *o = json_object_new_object();

	put_bool(o, "used", h->libvirt_used);
	put_bool(o, "connected", h->libvirt_connected);
	put_text(o, "version", h->libvirt_version);
	put_text(o, "error", h->libvirt_error);
	return o;
}

static struct json_object *left_out_view(const struct view_host *h)
{
	struct json_object *o = json_object_new_object();

	put_int(o, "count", h->n_left_out);
	put_text(o, "first", h->left_out);
	return o;
}

static struct json_object *host_view(const struct view_host *h, const struct snapshot *s)
{
	struct json_object *o = json_object_new_object(), *w = json_object_new_array();

	for (unsigned i = 0; i < h->n_warnings; i++)
		json_object_array_add(w, json_object_new_string(h->warning[i]));
	json_object_object_add(o, "warnings", w);
	if (!s)
		return o;
	put_int(o, "sequence", (int64_t)s->seq);
	put_int(o, "time_ns", (int64_t)s->time_ns);
	put_text(o, "topology", topology_type_name(s->topology.type));
	put_int(o, "max_distance", s->topology.max_distance);
	put_known(o, "numa_balancing", s->balancing, s->balancing >= 0);
	put_int(o, "hint_faults_per_s", (int64_t)h->hint_faults_per_s);
	put_int(o, "kernel_pages_migrated_per_s", (int64_t)h->kernel_pages_per_s);
	return o;
}

static unsigned vms_on(const struct snapshot *s, unsigned n)
{
	unsigned count = 0;

	for (unsigned i = 0; i < s->n_vms; i++)
		for (unsigned k = 0; k < s->vm[i].n_vcpus; k++)
			if (s->vm[i].vcpu[k].tid && s->vm[i].vcpu[k].node == (int)n) {
				count++;
				break;
			}
	return count;
}

static struct json_object *node_view(const struct snapshot *s, unsigned n)
{
	struct json_object *o = json_object_new_object(), *d = json_object_new_array();
	const struct topology_node *node = &s->topology.node[n];
	char cpus[256];

	put_int(o, "id", node->id);
	put_text(o, "cpus", idset_format(&node->cpus, cpus, sizeof(cpus)));
	put_int(o, "n_cpus", idset_count(&node->cpus));
	put_int(o, "busy_permille", s->node[n].busy_permille);
	put_int(o, "mem_total_bytes", (int64_t)s->node[n].mem_total_bytes);
	put_int(o, "mem_free_bytes", (int64_t)s->node[n].mem_free_bytes);
	put_int(o, "vms", vms_on(s, n));
	topology_foreach (k, &s->topology) {
		json_object_array_add(d, json_object_new_int(s->topology.distance[n][k]));
	}
	json_object_object_add(o, "distance", d);
	return o;
}

static struct json_object *by_node(const struct snapshot *s, const uint64_t *v)
{
	struct json_object *o = json_object_new_object();
	char key[16];

	topology_foreach (n, &s->topology) {
		snprintf(key, sizeof(key), "%u", s->topology.node[n].id);
		put_int(o, key, (int64_t)v[n]);
	}
	return o;
}

static struct json_object *vcpu_view(const struct snapshot *s, const struct snap_vcpu *v)
{
	struct json_object *o = json_object_new_object();
	uint64_t faults[TOPOLOGY_NODES_MAX];

	put_int(o, "id", v->id);
	put_known(o, "tid", v->tid, v->tid > 0);
	put_text(o, "state", !v->tid ? "offline" : v->idle ? "idle" : "running");
	put_known(o, "node", v->node >= 0 ? s->topology.node[v->node].id : 0, v->node >= 0);
	put_int(o, "run_permille", v->run_permille);
	put_int(o, "wait_permille", v->wait_permille);
	snap_vcpu_task_faults(s, v, faults);
	json_object_object_add(o, "faults", by_node(s, faults));
	return o;
}

static struct json_object *plan_view(const struct snapshot *s, const struct vm_plan *p)
{
	struct json_object *o = json_object_new_object(), *gates = json_object_new_array();

	put_text(o, "kind", plan_kind_name(p->kind));
	put_bool(o, "due", p->due);
	json_object_object_add(
		o, "with", p->partner >= 0 ? json_object_new_string(s->vm[p->partner].name) : NULL);
	put_known(o, "target", p->target >= 0 ? s->topology.node[p->target].id : 0, p->target >= 0);
	put_known(o, "now_permille", p->now, p->now >= 0);
	put_known(o, "then_permille", p->then, p->then >= 0);
	put_int(o, "move_bytes", (int64_t)p->move_bytes);
	put_bool(o, "wide", p->wide);
	put_text(o, "by", p->blind ? "residency" : p->grouped ? "group-faults" : "task-faults");
	for (unsigned i = 0; i < p->reason.n_gates; i++) {
		const struct gate *g = &p->reason.gate[i];
		struct json_object *v = json_object_new_object();

		put_text(v, "gate", g->name);
		put_int(v, "value", g->value);
		put_int(v, "threshold", g->threshold);
		put_text(v, "unit", g->unit);
		put_text(v, "source", g->source);
		put_known(v, "node", g->node, g->node >= 0);
		put_bool(v, "met", g->met);
		json_object_array_add(gates, v);
	}
	json_object_object_add(o, "gates", gates);
	return o;
}

/* The state of a VM as a sentence: what is under way, else what was decided. */
static void put_state(struct json_object *o, const struct view_vm_extra *x,
	const struct snapshot *s, const struct plan *plan, unsigned i, bool dry_run)
{
	char text[REASON_TEXT_MAX + 32], reason[REASON_TEXT_MAX];

	explain_text(s, plan, i, reason);
	if (x->moving)
		snprintf(text, sizeof(text), "moving memory to node %d: %llu of %llu MiB",
			x->history ? x->history->home : -1,
			(unsigned long long)(x->done_bytes >> 20),
			(unsigned long long)(x->want_bytes >> 20));
	else
		snprintf(text, sizeof(text), "%s%s", plan->vm[i].due && dry_run ? "would " : "",
			reason);
	put_text(o, "state", text);
}

/* What the last change was to bring, what came of it, and what follows from that. */
static void put_trial(struct json_object *o, const struct trial *t)
{
	put_known(o, "promised_permille", t ? t->promised : 0, t && t->promised >= 0);
	put_known(o, "achieved_permille", t ? t->achieved : 0, t && t->judged && !t->open);
	put_int(o, "broken_promises", t ? t->broken_all : 0);
	put_int(o, "bar", t ? trial_bar(t) : 1);
}

static void put_history(struct json_object *o, const struct vm_history *h)
{
	struct json_object *home = json_object_new_array();

	for (int id = h && h->home >= 0 ? idset_next(&h->homes, 0) : -1; id >= 0;
		id = idset_next(&h->homes, (unsigned)id + 1))
		json_object_array_add(home, json_object_new_int(id));
	json_object_object_add(o, "home", home);
	put_int(o, "home_changes", h ? h->home_changes : 0);
	put_int(o, "vcpu_moves", h ? h->vcpu_moves : 0);
	put_int(o, "pulls", h ? h->pulls : 0);
	put_trial(o, h ? &h->trial : NULL);
	put_known(o, "changed_ns", h ? (int64_t)h->changed_ns : 0, h && h->changed_ns);
}

static void put_localities(
	struct json_object *o, const struct snapshot *s, const struct snap_vm *vm)
{
	int mem = snap_vm_memory_locality_permille(s, vm);
	int faults = snap_vm_fault_locality_permille(s, vm);

	put_known(o, "memory_locality_permille", mem, mem >= 0);
	put_known(o, "fault_locality_permille", faults, faults >= 0);
}

static struct json_object *vm_view(
	const struct view_host *h, const struct snapshot *s, const struct plan *p, unsigned i)
{
	static const char *const failures[] = {"busy", "no-memory", "denied", "other"};
	struct json_object *o = json_object_new_object(), *a = json_object_new_array();
	struct json_object *failed = json_object_new_object();
	const struct snap_vm *vm = &s->vm[i];
	struct view_vm_extra x = {0};
	uint64_t faults[TOPOLOGY_NODES_MAX];

	h->extra(h->userdata, i, &x);
	put_text(o, "name", vm->name);
	put_text(o, "uuid", vm->uuid);
	put_known(o, "pid", vm->pid, vm->pid > 0);
	put_text(o, "manager", x.socket ? "qmp" : "libvirt");
	json_object_object_add(o, "socket", x.socket ? json_object_new_string(x.socket) : NULL);
	put_history(o, x.history);
	put_localities(o, s, vm);
	put_int(o, "ram_bytes", (int64_t)vm->ram_bytes);
	json_object_object_add(
		o, "memory_bytes", vm->has_memory ? by_node(s, vm->mem_bytes) : NULL);
	snap_vm_group_faults(s, vm, faults);
	json_object_object_add(o, "faults", by_node(s, faults));
	put_text(o, "data", data_state_name(vm->data));
	put_text(o, "data_sentence", data_state_sentence(vm->data));
	put_int(o, "data_age_ns", (int64_t)vm->data_age_ns);
	put_int(o, "demand_permille", snap_vm_demand_permille(vm));
	put_int(o, "pages_moved", (int64_t)x.moved_pages);
	for (unsigned k = 0; k < ARRAY_LEN(failures); k++)
		put_int(failed, failures[k], (int64_t)x.failed_pages[k]);
	json_object_object_add(o, "pages_failed", failed);
	json_object_object_add(
		o, "move_end", x.move_end ? json_object_new_string(x.move_end) : NULL);
	put_state(o, &x, s, p, i, h->dry_run);
	json_object_object_add(o, "plan", plan_view(s, &p->vm[i]));
	for (unsigned k = 0; k < vm->n_vcpus; k++)
		json_object_array_add(a, vcpu_view(s, &vm->vcpu[k]));
	json_object_object_add(o, "vcpus", a);
	return o;
}

struct json_object *view_status(
	const struct view_host *host, const struct snapshot *s, const struct plan *p)
{
	struct json_object *o = json_object_new_object();
	struct json_object *nodes = json_object_new_array(), *vms = json_object_new_array();

	put_int(o, "version", VIEW_VERSION);
	json_object_object_add(o, "daemon", daemon_view(host));
	json_object_object_add(o, "libvirt", libvirt_view(host));
	json_object_object_add(o, "left_out", left_out_view(host));
	json_object_object_add(o, "host", host_view(host, s));
	for (unsigned n = 0; s && n < s->topology.n_nodes; n++)
		json_object_array_add(nodes, node_view(s, n));
	json_object_object_add(o, "nodes", nodes);
	for (unsigned i = 0; s && p && i < s->n_vms; i++)
		json_object_array_add(vms, vm_view(host, s, p, i));
	json_object_object_add(o, "vms", vms);
	return o;
}
