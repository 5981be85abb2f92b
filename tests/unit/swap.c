/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Two VMs that sit on each other's memory, on a host with no room to spare. */
#include "tests/builder.h"
#include "tests/tap.h"

static const struct settings set = SETTINGS_DEFAULT;

struct fixture {
	struct snapshot *s;
	struct history h;
	struct plan p;
	struct snap_vm *a, *b;
};

static void busy(struct fixture *f, struct snap_vm *vm, unsigned run_permille)
{
	for (unsigned k = 0; k < vm->n_vcpus; k++) {
		f->s->node[vm->vcpu[k].node].busy_permille += run_permille;
		vm->vcpu[k].run_permille = run_permille;
	}
}

static void setup(struct fixture *f)
{
	*f = (struct fixture){.s = build_two(2)};
	f->a = build_vm(f->s, 0, "a", 4, 4 * GIB, (int[]){0}, 1);
	f->b = build_vm(f->s, 1, "b", 4, 4 * GIB, (int[]){1}, 1);
	build_faults(f->s, f->a, FAULT_SHARED, (uint64_t[]){0, 1000});
	build_faults(f->s, f->b, FAULT_SHARED, (uint64_t[]){1000, 0});
	build_memory(f->s, f->a, (uint64_t[]){0, 4 * GIB});
	build_memory(f->s, f->b, (uint64_t[]){4 * GIB, 0});
	f->s->node[0].busy_permille = f->s->node[1].busy_permille = 0;
	f->s->node[0].mem_free_bytes = f->s->node[1].mem_free_bytes = 0;
	busy(f, f->a, 950);
	busy(f, f->b, 950);
}

static void teardown(struct fixture *f)
{
	plan_clear(&f->p);
	history_clear(&f->h);
	snapshot_free(f->s);
}

static void run(struct fixture *f, unsigned times)
{
	plan_clear(&f->p);
	build_decide(f->s, &set, &f->h, times, &f->p);
}

static void two_vms_change_places(struct tap *tap_)
{
	struct fixture f;

	setup(&f);
	run(&f, 2);
	CHECK_INT(f.p.vm[0].kind, PLAN_SWAP);
	CHECK_INT(f.p.n_due, 0);
	run(&f, 1);
	REQUIRE(f.p.n_due == 2);
	CHECK_INT(f.p.vm[0].kind, PLAN_SWAP);
	CHECK_INT(f.p.vm[1].kind, PLAN_SWAP);
	CHECK_INT(f.p.vm[0].target, 1);
	CHECK_INT(f.p.vm[1].target, 0);
	CHECK_INT(f.p.vm[0].partner, 1);
	CHECK_INT(f.p.vm[1].partner, 0);
	CHECK_INT(f.p.vm[0].move_bytes, 0);
	CHECK_STR(build_text(f.s, &f.p, 0), "swap with VM 'b', to node 1 (0 -> 1000 permille)");
	teardown(&f);
}

static void neither_goes_while_one_cools_down(struct tap *tap_)
{
	struct fixture f;

	setup(&f);
	run(&f, 1);
	history_find(&f.h, f.b->uuid)->changed_ns = f.s->time_ns;
	run(&f, 3);
	CHECK_INT(f.p.n_due, 0);
	CHECK_STR(build_text(f.s, &f.p, 0), "waiting to swap with VM 'b', which is not ready");
	CHECK(strstr(build_text(f.s, &f.p, 1), "cooling down") != NULL);
	teardown(&f);
}

static void nobody_is_made_to_go(struct tap *tap_)
{
	struct fixture f;

	setup(&f);
	f.b->foreign_pin = true;
	run(&f, 5);
	CHECK_INT(f.p.vm[0].kind, PLAN_HOLD);
	CHECK(strstr(build_text(f.s, &f.p, 0), "refused by cpu-capacity") != NULL);
	CHECK_INT(f.p.vm[0].partner, -1);
	teardown(&f);
}

/* The other would lose, or would not gain enough: the sum alone does not decide. */
static void one_does_not_pay_for_the_other(struct tap *tap_)
{
	struct fixture f;

	for (unsigned i = 0; i < 2; i++) {
		setup(&f);
		build_faults(f.s, f.b, FAULT_SHARED,
			i ? (uint64_t[]){514, 486} : (uint64_t[]){300, 700});
		build_memory(f.s, f.b,
			i ? (uint64_t[]){514 * MIB, 486 * MIB} : (uint64_t[]){GIB, 3 * GIB});
		run(&f, 5);
		CHECK_INT(f.p.vm[0].kind, PLAN_HOLD);
		CHECK_INT(f.p.vm[1].kind, PLAN_HOLD);
		teardown(&f);
	}
}

static void unequal_demands_must_not_tip_the_scales(struct tap *tap_)
{
	struct fixture f;

	setup(&f);
	/* others keep node 1 full, so that b's little demand leaving makes no room for a's */
	f.s->node[1].busy_permille = 3900;
	for (unsigned k = 0; k < 4; k++)
		f.b->vcpu[k].run_permille = 100;
	run(&f, 5);
	CHECK_INT(f.p.vm[0].kind, PLAN_HOLD);
	CHECK_INT(f.p.vm[1].kind, PLAN_HOLD);
	teardown(&f);
}

/* Where there is room, each goes by itself. */
static void with_room_nobody_needs_a_partner(struct tap *tap_)
{
	struct fixture f;

	setup(&f);
	f.s->node[0].busy_permille = f.s->node[1].busy_permille = 0;
	busy(&f, f.a, 100);
	busy(&f, f.b, 100);
	run(&f, 3);
	CHECK_INT(f.p.vm[0].kind, PLAN_PIN);
	CHECK_INT(f.p.vm[1].kind, PLAN_PIN);
	teardown(&f);
}

static void a_vm_that_is_spread_has_no_place_to_give(struct tap *tap_)
{
	struct fixture f;

	setup(&f);
	f.b->vcpu[3].node = 0;
	f.s->node[0].busy_permille += 950;
	run(&f, 5);
	CHECK(f.p.vm[0].kind != PLAN_SWAP && f.p.vm[1].kind != PLAN_SWAP);
	teardown(&f);
}

TAP_MAIN(TEST(two_vms_change_places), TEST(neither_goes_while_one_cools_down),
	TEST(nobody_is_made_to_go), TEST(one_does_not_pay_for_the_other),
	TEST(unequal_demands_must_not_tip_the_scales), TEST(with_room_nobody_needs_a_partner),
	TEST(a_vm_that_is_spread_has_no_place_to_give))
