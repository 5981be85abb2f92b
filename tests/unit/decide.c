/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tests/builder.h"
#include "tests/tap.h"

static const struct settings set = SETTINGS_DEFAULT;
static const int at0[] = {0}, at1[] = {1};

static void history_clearp(struct history *h)
{
	history_clear(h);
}

static void vcpus_go_to_their_memory(struct tap *tap_)
{
	_cleanup_snapshot_ struct snapshot *s = build_two(1);
	_cleanup_(history_clearp) struct history h = {0};
	_cleanup_plan_ struct plan p = {0};
	struct snap_vm *vm = build_vm(s, 0, "vm1", 2, 4 * GIB, at0, 1);

	build_faults(s, vm, FAULT_SHARED, (uint64_t[]){0, 1000});
	build_memory(s, vm, (uint64_t[]){0, 4 * GIB});
	build_decide(s, &set, &h, 2, &p);
	CHECK_INT(p.vm[0].kind, PLAN_PIN);
	CHECK_INT(p.vm[0].target, 1);
	CHECK(!p.vm[0].due); /* two windows of three */
	plan_clear(&p);
	build_decide(s, &set, &h, 1, &p);
	CHECK(p.vm[0].due);
	CHECK_INT(p.n_due, 1);
	CHECK_INT(p.vm[0].now, 0);
	CHECK_INT(p.vm[0].then, 1000);
	CHECK_INT(p.vm[0].move_bytes, 0);
}

static void the_rest_of_the_memory_follows(struct tap *tap_)
{
	_cleanup_snapshot_ struct snapshot *s = build_mesh4(1);
	_cleanup_(history_clearp) struct history h = {0};
	_cleanup_plan_ struct plan p = {0};
	struct snap_vm *vm = build_vm(s, 0, "vm1", 2, 4 * GIB, (int[]){1, 0}, 2);

	build_faults(s, vm, FAULT_SHARED, (uint64_t[]){0, 0, 200, 800});
	build_memory(s, vm, (uint64_t[]){0, 0, 800 * MIB, 3200 * MIB});
	build_decide(s, &set, &h, 3, &p);
	CHECK_INT(p.vm[0].kind, PLAN_REHOME);
	CHECK_INT(p.vm[0].target, 3);
	CHECK_INT(p.vm[0].move_bytes, 800 * MIB);
}

static void a_well_placed_vm_is_left_alone(struct tap *tap_)
{
	_cleanup_snapshot_ struct snapshot *s = build_two(1);
	_cleanup_(history_clearp) struct history h = {0};
	_cleanup_plan_ struct plan p = {0};
	struct snap_vm *vm = build_vm(s, 0, "vm1", 2, 4 * GIB, at1, 1);

	build_faults(s, vm, FAULT_SHARED, (uint64_t[]){15, 985});
	build_memory(s, vm, (uint64_t[]){80 * MIB, 4016 * MIB});
	build_decide(s, &set, &h, 20, &p);
	CHECK_INT(p.vm[0].kind, PLAN_HOLD);
	CHECK(strstr(build_text(s, &p, 0), "well placed") != NULL);
}

/* Nobody holds it, and the scheduler has sent its vCPUs away before. */
static void a_vm_that_wandered_is_kept_where_it_is_well_placed(struct tap *tap_)
{
	_cleanup_snapshot_ struct snapshot *s = build_two(1);
	_cleanup_(history_clearp) struct history h = {0};
	_cleanup_plan_ struct plan p = {0};
	struct snap_vm *vm = build_vm(s, 0, "vm1", 2, 4 * GIB, at1, 1);

	build_faults(s, vm, FAULT_SHARED, (uint64_t[]){20, 980});
	build_memory(s, vm, (uint64_t[]){82 * MIB, 4014 * MIB});
	build_decide(s, &set, &h, 5, &p);
	CHECK_INT(p.vm[0].kind, PLAN_HOLD); /* it has always been there: not touched */
	plan_clear(&p);
	vm->vcpu[0].node = vm->vcpu[1].node = 0;
	build_decide(s, &set, &h, 1, &p);
	CHECK(p.vm[0].kind != PLAN_HOLD && !p.vm[0].due);
	plan_clear(&p);
	vm->vcpu[0].node = vm->vcpu[1].node = 1;
	build_decide(s, &set, &h, 1, &p);
	CHECK(!p.vm[0].due && strstr(build_text(s, &p, 0), "to be kept there") != NULL);
	plan_clear(&p);
	build_decide(s, &set, &h, 2, &p);
	CHECK(p.vm[0].due && p.vm[0].anchor);
	CHECK_INT(p.vm[0].target, 1);
	CHECK_INT(p.vm[0].move_bytes, 0);
	decide_commit(&h, s, 0, &p.vm[0], s->time_ns);
	CHECK_INT(history_find(&h, vm->uuid)->home, 1);
	CHECK(!history_find(&h, vm->uuid)->trial.open);
	plan_clear(&p);
	build_decide(s, &set, &h, 20, &p);
	CHECK_INT(p.vm[0].kind, PLAN_HOLD);
}

/* Memory that goes to and fro between two nodes must not keep the wish from growing old. */
static void of_equals_the_last_wish_wins(struct tap *tap_)
{
	_cleanup_snapshot_ struct snapshot *s = build_mesh4(1);
	_cleanup_(history_clearp) struct history h = {0};
	struct snap_vm *vm = build_vm(s, 0, "vm1", 2, 4 * GIB, (int[]){1, 3}, 2);
	int first = -1;

	for (unsigned i = 0; i < 3; i++) {
		_cleanup_plan_ struct plan p = {0};
		uint64_t little = i % 2 ? 8 * MIB : 0;

		build_faults(s, vm, FAULT_SHARED, (uint64_t[]){500, 0, 500, 0});
		build_memory(
			s, vm, (uint64_t[]){2 * GIB - little, 0, 2 * GIB + little - 4 * MIB, 0});
		build_decide(s, &set, &h, 1, &p);
		first = i ? first : p.vm[0].target;
		CHECK_INT(p.vm[0].target, first);
		CHECK_INT(p.vm[0].due, i == 2);
	}
}

/* Few windows say little about who shares what. */
static void a_vm_is_one_group_until_it_is_known_better(struct tap *tap_)
{
	_cleanup_snapshot_ struct snapshot *s = build_two(1);
	_cleanup_(history_clearp) struct history h = {0};
	_cleanup_plan_ struct plan p = {0};
	struct snap_vm *vm = build_vm(s, 0, "vm1", 2, 4 * GIB, at0, 1);

	vm->vcpu[0].faults[2 * 0 + FAULT_PRIVATE] = 1000;
	vm->vcpu[1].faults[2 * 1 + FAULT_PRIVATE] = 1000;
	build_memory(s, vm, (uint64_t[]){2 * GIB, 2 * GIB});
	vm->windows = set.ungroup_windows - 1;
	build_decide(s, &set, &h, 3, &p);
	CHECK(p.vm[0].grouped && !p.vm[0].split);
	plan_clear(&p);
	vm->windows = set.ungroup_windows;
	build_decide(s, &set, &h, 3, &p);
	CHECK(!p.vm[0].grouped);
}

/* A group whose vCPUs each run by their own memory: gathering them would bring most of them away
 * from it. */
static void a_group_that_is_near_its_own_memory_stays(struct tap *tap_)
{
	_cleanup_snapshot_ struct snapshot *s = build_two(1);
	_cleanup_(history_clearp) struct history h = {0};
	_cleanup_plan_ struct plan p = {0};
	struct snap_vm *vm = build_vm(s, 0, "vm1", 2, 4 * GIB, (int[]){0, 1}, 2);

	vm->vcpu[0].faults[2 * 0 + FAULT_PRIVATE] = 1000;
	vm->vcpu[0].faults[2 * 0 + FAULT_SHARED] = 50;
	vm->vcpu[1].faults[2 * 1 + FAULT_PRIVATE] = 700;
	build_memory(s, vm, (uint64_t[]){2 * GIB, 2 * GIB});
	vm->memory_fixed = true;
	build_decide(s, &set, &h, 5, &p);
	CHECK_INT(p.vm[0].kind, PLAN_HOLD);
	CHECK_INT(p.vm[0].now, 1000);
}

static void task_faults_count_only_without_a_group(struct tap *tap_)
{
	_cleanup_snapshot_ struct snapshot *s = build_two(1);
	_cleanup_(history_clearp) struct history h = {0};
	_cleanup_plan_ struct plan p = {0};
	struct snap_vm *vm = build_vm(s, 0, "vm1", 2, 4 * GIB, at0, 1);

	/* two vCPUs, each with private memory of its own on another node */
	vm->vcpu[0].faults[2 * 0 + FAULT_PRIVATE] = 1000;
	vm->vcpu[1].faults[2 * 1 + FAULT_PRIVATE] = 1000;
	build_memory(s, vm, (uint64_t[]){2 * GIB, 2 * GIB});
	build_decide(s, &set, &h, 3, &p);
	CHECK_INT(p.vm[0].kind, PLAN_PIN);
	CHECK(p.vm[0].split);
	REQUIRE(p.vm[0].vcpu_target != NULL);
	CHECK_INT(p.vm[0].vcpu_target[0], 0);
	CHECK_INT(p.vm[0].vcpu_target[1], 1);
	CHECK_INT(p.vm[0].move_bytes, 0);
	/* done, it stays that way: each vCPU has its own home */
	decide_commit(&h, s, 0, &p.vm[0], s->time_ns);
	vm->vcpu[1].node = 1;
	plan_clear(&p);
	build_decide(s, &set, &h, 20, &p);
	CHECK_INT(p.vm[0].kind, PLAN_HOLD);
	/* the same with shared faults is one group, and goes to one node */
	plan_clear(&p);
	vm->vcpu[0].faults[2 * 0 + FAULT_SHARED] = 900;
	vm->vcpu[1].faults[2 * 0 + FAULT_SHARED] = 900;
	vm->vcpu[1].node = 0;
	history_clear(&h);
	build_decide(s, &set, &h, 3, &p);
	CHECK(!p.vm[0].split);
	CHECK(p.vm[0].grouped);
}

static void without_data_pages_alone_decide_D03(struct tap *tap_)
{
	_cleanup_snapshot_ struct snapshot *s = build_two(1);
	_cleanup_(history_clearp) struct history h = {0};
	_cleanup_plan_ struct plan p = {0};
	struct snap_vm *vm = build_vm(s, 0, "vm1", 2, 4 * GIB, at0, 1);

	s->balancing = 0;
	vm->data = DATA_BALANCING_OFF;
	build_memory(s, vm, (uint64_t[]){0, 4096 * MIB});
	CHECK_INT(snap_vm_memory_locality_permille(s, vm), 0);
	build_decide(s, &set, &h, 3, &p);
	CHECK_INT(p.vm[0].kind, PLAN_PIN);
	CHECK_INT(p.vm[0].target, 1);
	CHECK(p.vm[0].blind);
	CHECK(p.vm[0].due);
}

static void without_data_an_even_split_is_left_alone(struct tap *tap_)
{
	_cleanup_snapshot_ struct snapshot *s = build_two(1);
	_cleanup_(history_clearp) struct history h = {0};
	_cleanup_plan_ struct plan p = {0};
	struct snap_vm *vm = build_vm(s, 0, "vm1", 2, 4 * GIB, (int[]){0, 1}, 2);

	vm->data = DATA_STALE;
	build_memory(s, vm, (uint64_t[]){2 * GIB, 2 * GIB});
	build_decide(s, &set, &h, 5, &p);
	CHECK_INT(p.vm[0].kind, PLAN_HOLD);
}

static void no_statistics_is_not_zero_D44(struct tap *tap_)
{
	_cleanup_snapshot_ struct snapshot *s = build_two(1);
	_cleanup_(history_clearp) struct history h = {0};
	_cleanup_plan_ struct plan p = {0};
	struct snap_vm *vm = build_vm(s, 0, "vm1", 2, 4 * GIB, at0, 1);

	vm->data = DATA_STALE;
	vm->has_memory = false;
	build_decide(s, &set, &h, 5, &p);
	CHECK_INT(p.vm[0].kind, PLAN_HOLD);
	CHECK_INT(p.vm[0].now, -1);
	CHECK_INT(snap_vm_fault_locality_permille(s, vm), -1);
}

static void headroom_on_the_target_D19(struct tap *tap_)
{
	_cleanup_snapshot_ struct snapshot *s = build_two(1);
	_cleanup_(history_clearp) struct history h = {0};
	_cleanup_plan_ struct plan p = {0};
	struct snap_vm *vm = build_vm(s, 0, "vm1", 2, 8 * GIB, at0, 1);

	s->node[0].mem_free_bytes = GIB;
	build_faults(s, vm, FAULT_SHARED, (uint64_t[]){0, 1000});
	build_memory(s, vm, (uint64_t[]){0, 8 * GIB});
	build_decide(s, &set, &h, 3, &p);
	CHECK_INT(p.vm[0].kind, PLAN_PIN);
	CHECK_INT(p.vm[0].target, 1);
	CHECK_INT(p.vm[0].move_bytes, 0);
}

static void headroom_is_used_up_by_the_plan(struct tap *tap_)
{
	_cleanup_snapshot_ struct snapshot *s = build_two(2);
	_cleanup_(history_clearp) struct history h = {0};
	_cleanup_plan_ struct plan p = {0};
	unsigned bring = 0;

	/* two VMs on node 1 with half their memory there; room for one half only */
	s->node[1].mem_free_bytes = 3 * GIB;
	s->node[0].mem_free_bytes = 0;
	for (unsigned i = 0; i < 2; i++) {
		struct snap_vm *vm = build_vm(s, i, i ? "b" : "a", 2, 4 * GIB, at1, 1);

		build_faults(s, vm, FAULT_SHARED, (uint64_t[]){500, 500});
		build_memory(s, vm, (uint64_t[]){2 * GIB, 2 * GIB});
	}
	build_decide(s, &set, &h, 3, &p);
	for (unsigned i = 0; i < 2; i++)
		bring += p.vm[i].move_bytes > 0;
	CHECK_INT(bring, 1);
}

static void strict_cannot_follow_D17(struct tap *tap_)
{
	_cleanup_snapshot_ struct snapshot *s = build_two(1);
	_cleanup_(history_clearp) struct history h = {0};
	_cleanup_plan_ struct plan p = {0};
	struct snap_vm *vm = build_vm(s, 0, "vm1", 2, 4 * GIB, at0, 1);

	vm->memory_fixed = true;
	build_faults(s, vm, FAULT_SHARED, (uint64_t[]){500, 500});
	build_memory(s, vm, (uint64_t[]){4 * GIB, 0});
	build_decide(s, &set, &h, 5, &p);
	CHECK_INT(p.vm[0].move_bytes, 0);
	CHECK_INT(p.vm[0].kind, PLAN_HOLD);
}

static void cpu_room_is_asked_for(struct tap *tap_)
{
	_cleanup_snapshot_ struct snapshot *s = build_two(1);
	_cleanup_(history_clearp) struct history h = {0};
	_cleanup_plan_ struct plan p = {0};
	struct snap_vm *vm = build_vm(s, 0, "vm1", 2, 4 * GIB, at0, 1);

	vm->vcpu[0].run_permille = vm->vcpu[1].run_permille = 900;
	vm->memory_fixed = true; /* so that only following is possible */
	s->node[0].busy_permille = 1800;
	s->node[1].busy_permille = 3800; /* of 4000 */
	build_faults(s, vm, FAULT_SHARED, (uint64_t[]){0, 1000});
	build_memory(s, vm, (uint64_t[]){0, 4 * GIB});
	build_decide(s, &set, &h, 5, &p);
	CHECK_INT(p.vm[0].kind, PLAN_HOLD);
	CHECK(strstr(build_text(s, &p, 0), "cpu-capacity") != NULL);
}

static void two_equally_good_nodes_D50(struct tap *tap_)
{
	_cleanup_snapshot_ struct snapshot *s = build_two(1);
	_cleanup_(history_clearp) struct history h = {0};
	struct snap_vm *vm = build_vm(s, 0, "vm1", 2, 4 * GIB, at0, 1);
	unsigned moves = 0;

	vm->memory_fixed = true;
	build_memory(s, vm, (uint64_t[]){2 * GIB, 2 * GIB});
	for (unsigned i = 0; i < 3600; i++) {
		_cleanup_plan_ struct plan p = {0};

		build_faults(s, vm, FAULT_SHARED,
			i % 2 ? (uint64_t[]){520, 480} : (uint64_t[]){480, 520});
		build_decide(s, &set, &h, 1, &p);
		moves += p.n_due;
	}
	CHECK_INT(moves, 0);
}

static void reasons_to_keep_hands_off(struct tap *tap_)
{
	_cleanup_snapshot_ struct snapshot *s = build_two(4);
	_cleanup_(history_clearp) struct history h = {0};
	_cleanup_plan_ struct plan p = {0};

	for (unsigned i = 0; i < 4; i++) {
		char name[] = {(char)('a' + (int)i), 0};
		struct snap_vm *vm = build_vm(s, i, name, 2, GIB, at0, 1);

		build_faults(s, vm, FAULT_SHARED, (uint64_t[]){0, 1000});
		build_memory(s, vm, (uint64_t[]){0, GIB});
	}
	s->vm[0].foreign_pin = true;
	snprintf(s->vm[0].foreign_pin_why, SNAPSHOT_TEXT_MAX, "pinned by hand");
	s->vm[1].condition = VM_PAUSED;
	snprintf(s->vm[2].problem, SNAPSHOT_TEXT_MAX, "no RAM");
	build_decide(s, &set, &h, 5, &p);
	CHECK_STR(build_text(s, &p, 0), "left alone: pinned by hand");
	CHECK_STR(build_text(s, &p, 1), "waiting: the VM is paused");
	CHECK_STR(build_text(s, &p, 2), "left alone: no RAM");
	CHECK_INT(p.n_due, 1);
	CHECK_INT(p.order[0], 3);
}

static void cooldown_and_commit(struct tap *tap_)
{
	_cleanup_snapshot_ struct snapshot *s = build_two(1);
	_cleanup_(history_clearp) struct history h = {0};
	_cleanup_plan_ struct plan p = {0};
	struct snap_vm *vm = build_vm(s, 0, "vm1", 2, GIB, at0, 1);

	vm->memory_fixed = true;
	build_faults(s, vm, FAULT_SHARED, (uint64_t[]){0, 1000});
	build_memory(s, vm, (uint64_t[]){0, GIB});
	build_decide(s, &set, &h, 3, &p);
	REQUIRE(p.vm[0].due);
	decide_commit(&h, s, 0, &p.vm[0], s->time_ns);
	CHECK_INT(h.vm[0].home, 1);
	CHECK_INT(h.vm[0].home_changes, 1);
	CHECK_INT(h.vm[0].vcpu_moves, 2);
	/* the memory goes back at once: nothing before the cooldown is over */
	build_faults(s, vm, FAULT_SHARED, (uint64_t[]){1000, 0});
	build_memory(s, vm, (uint64_t[]){GIB, 0});
	vm->vcpu[0].node = vm->vcpu[1].node = 1;
	plan_clear(&p);
	build_decide(s, &set, &h, 5, &p);
	CHECK(!p.vm[0].due);
	CHECK(strstr(build_text(s, &p, 0), "cooling down") != NULL);
	plan_clear(&p);
	build_decide(s, &set, &h, 1, &p);
	CHECK(p.vm[0].due);
	CHECK_INT(p.vm[0].target, 0);
}

static void a_vm_wider_than_the_host_is_left_alone(struct tap *tap_)
{
	_cleanup_snapshot_ struct snapshot *s = build_mesh4(1);
	_cleanup_(history_clearp) struct history h = {0};
	_cleanup_plan_ struct plan p = {0};
	struct snap_vm *vm = build_vm(s, 0, "wide", 9, GIB, (int[]){0, 1}, 2);

	build_faults(s, vm, FAULT_SHARED, (uint64_t[]){0, 0, 0, 1000});
	build_memory(s, vm, (uint64_t[]){0, 0, 0, GIB});
	build_decide(s, &set, &h, 5, &p);
	CHECK_INT(p.vm[0].kind, PLAN_HOLD);
	CHECK_STR(build_text(s, &p, 0),
		"left alone: its 9 vCPUs are more than the 8 CPUs it may use");
}

static void memory_only_nodes_are_no_home(struct tap *tap_)
{
	_cleanup_snapshot_ struct snapshot *s = build_mesh4(1);
	_cleanup_(history_clearp) struct history h = {0};
	_cleanup_plan_ struct plan p = {0};
	struct snap_vm *vm;

	s->topology.node[3].has_cpu = false;
	idset_clear(&s->topology.node[3].cpus);
	topology_finish(&s->topology);
	vm = build_vm(s, 0, "vm1", 2, GIB, at0, 1);
	idset_remove(&vm->allowed_mems, 3);
	build_faults(s, vm, FAULT_SHARED, (uint64_t[]){0, 0, 0, 1000});
	build_memory(s, vm, (uint64_t[]){0, 0, 0, GIB});
	build_decide(s, &set, &h, 3, &p);
	CHECK(p.vm[0].target >= 0 && p.vm[0].target != 3);
	CHECK_INT(p.vm[0].move_bytes, GIB);
}

static void old_faults_do_not_carry_a_vm_off(struct tap *tap_)
{
	_cleanup_snapshot_ struct snapshot *s = build_mesh4(1);
	_cleanup_(history_clearp) struct history h = {0};
	_cleanup_plan_ struct plan p = {0};
	struct snap_vm *vm = build_vm(s, 0, "vm1", 2, GIB, (int[]){2}, 1);

	/* all of its memory is where it runs; the counters still tell of node 0 */
	build_faults(s, vm, FAULT_SHARED, (uint64_t[]){600, 0, 400, 0});
	build_memory(s, vm, (uint64_t[]){0, 0, GIB, 0});
	build_decide(s, &set, &h, 5, &p);
	CHECK_INT(p.vm[0].kind, PLAN_HOLD);
	/* and where a small part is elsewhere, that part comes, not the VM goes */
	build_memory(s, vm, (uint64_t[]){100 * MIB, 0, 924 * MIB, 0});
	plan_clear(&p);
	build_decide(s, &set, &h, 5, &p);
	CHECK_INT(p.vm[0].kind, PLAN_PULL);
	CHECK_INT(p.vm[0].target, 2);
	CHECK_INT(p.vm[0].move_bytes, 100 * MIB);
}

TAP_MAIN(TEST(vcpus_go_to_their_memory), TEST(the_rest_of_the_memory_follows),
	TEST(a_well_placed_vm_is_left_alone), TEST(a_group_that_is_near_its_own_memory_stays),
	TEST(a_vm_is_one_group_until_it_is_known_better), TEST(of_equals_the_last_wish_wins),
	TEST(a_vm_that_wandered_is_kept_where_it_is_well_placed),
	TEST(task_faults_count_only_without_a_group), TEST(without_data_pages_alone_decide_D03),
	TEST(without_data_an_even_split_is_left_alone), TEST(no_statistics_is_not_zero_D44),
	TEST(headroom_on_the_target_D19), TEST(headroom_is_used_up_by_the_plan),
	TEST(strict_cannot_follow_D17), TEST(cpu_room_is_asked_for),
	TEST(two_equally_good_nodes_D50), TEST(reasons_to_keep_hands_off),
	TEST(cooldown_and_commit), TEST(a_vm_wider_than_the_host_is_left_alone),
	TEST(memory_only_nodes_are_no_home), TEST(old_faults_do_not_carry_a_vm_off))
