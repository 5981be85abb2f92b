/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "controller/act/pins.h"
#include "tests/builder.h"
#include "tests/tap.h"

struct fixture {
	struct snapshot *s;
	struct snap_vm *vm;
	struct virt_vm v;
	struct idset affinity[2], online, node1;
	struct pins pins;
	char why[SNAPSHOT_TEXT_MAX];
};

static void setup(struct fixture *f)
{
	memset(f, 0, sizeof(*f));
	f->s = build_two(1);
	f->vm = build_vm(f->s, 0, "vm1", 2, 4 * GIB, (int[]){0}, 1);
	memcpy(f->v.uuid, f->vm->uuid, sizeof(f->v.uuid));
	f->v.max_vcpus = f->v.n_pins = 2;
	f->v.pin = calloc(2, sizeof(*f->v.pin));
	for (unsigned c = 0; c < 8; c++)
		idset_add(&f->online, c);
	f->node1 = f->s->topology.node[1].cpus;
	f->v.pin[0] = f->v.pin[1] = f->affinity[0] = f->affinity[1] = f->online;
}

static void teardown(struct fixture *f)
{
	snapshot_free(f->s);
	free(f->v.pin);
	pins_clear(&f->pins);
}

static enum pins_verdict check(struct fixture *f, uint64_t libvirt_ns, uint64_t proc_ns)
{
	return pins_check(
		&f->pins, f->vm, &f->v, libvirt_ns, f->affinity, proc_ns, &f->online, f->why);
}

static void ask_both(struct fixture *f)
{
	pins_ask(&f->pins, f->vm, 0, &f->v.pin[0], &f->node1);
	pins_ask(&f->pins, f->vm, 1, &f->v.pin[1], &f->node1);
	f->pins.vm[0].settled_ns = 100;
}

static void nobody_has_pinned(struct tap *tap_)
{
	struct fixture f;

	setup(&f);
	CHECK_INT(check(&f, 1, 1), PINS_FREE);
	teardown(&f);
}

static void the_operators_pin_is_seen(struct tap *tap_)
{
	struct fixture f;

	setup(&f);
	f.v.pin[1] = f.node1;
	CHECK_INT(check(&f, 1, 1), PINS_FOREIGN);
	CHECK_STR(f.why, "the operator, through libvirt, pinned vCPU 1 to CPUs 4-7");
	teardown(&f);
}

static void an_affinity_from_outside_is_seen(struct tap *tap_)
{
	struct fixture f;

	setup(&f);
	f.affinity[0] = f.node1;
	CHECK_INT(check(&f, 1, 1), PINS_FOREIGN);
	CHECK(strstr(f.why, "confined to CPUs 4-7") != NULL);
	teardown(&f);
}

static void our_pin_is_ours_and_the_original_is_kept(struct tap *tap_)
{
	struct fixture f;

	setup(&f);
	ask_both(&f);
	f.v.pin[0] = f.v.pin[1] = f.affinity[0] = f.affinity[1] = f.node1;
	CHECK_INT(check(&f, 200, 200), PINS_OURS);
	CHECK(idset_equal(&f.pins.vm[0].vcpu[0].original, &f.online));
	/* asked for again: the original stays that of the first time */
	pins_ask(&f.pins, f.vm, 0, &f.v.pin[0], &f.node1);
	CHECK(idset_equal(&f.pins.vm[0].vcpu[0].original, &f.online));
	teardown(&f);
}

static void readings_from_before_our_call_say_nothing(struct tap *tap_)
{
	struct fixture f;

	setup(&f);
	ask_both(&f);
	CHECK_INT(check(&f, 50, 50), PINS_UNKNOWN);
	f.pins.vm[0].pending = true;
	CHECK_INT(check(&f, 200, 200), PINS_UNKNOWN);
	teardown(&f);
}

static void the_mask_asked_for_is_not_the_one_in_force_D06(struct tap *tap_)
{
	struct fixture f;

	setup(&f);
	ask_both(&f);
	f.v.pin[0] = f.v.pin[1] = f.node1;
	CHECK_INT(check(&f, 200, 200), PINS_DRIFT);
	CHECK(strstr(f.why, "asked 4-7, effective 0-7") != NULL);
	teardown(&f);
}

static void a_pin_taken_over_is_foreign(struct tap *tap_)
{
	struct fixture f;

	setup(&f);
	ask_both(&f);
	f.v.pin[0] = f.node1;
	f.affinity[0] = f.affinity[1] = f.node1;
	idset_clear(&f.v.pin[1]);
	idset_add(&f.v.pin[1], 0);
	CHECK_INT(check(&f, 200, 200), PINS_FOREIGN);
	CHECK_STR(f.why, "somebody else pinned vCPU 1 to CPUs 0 (we had asked for 4-7)");
	teardown(&f);
}

static void entries_of_vms_that_are_gone_are_dropped(struct tap *tap_)
{
	struct fixture f;

	setup(&f);
	ask_both(&f);
	pins_drop_gone(&f.pins, f.s);
	CHECK_INT(f.pins.n_vms, 1);
	f.vm->start_ticks++; /* the same UUID and pid, another process */
	pins_drop_gone(&f.pins, f.s);
	CHECK_INT(f.pins.n_vms, 0);
	teardown(&f);
}

/* A QEMU without libvirt: only the masks in force say who pinned it. */
static void a_bare_qemu_is_judged_by_its_masks(struct tap *tap_)
{
	struct fixture f;

	setup(&f);
	f.v.manager = VIRT_QMP;
	free(f.v.pin);
	f.v.pin = NULL;
	f.v.n_pins = 0;
	CHECK_INT(check(&f, 0, 1), PINS_FREE);
	pins_ask(&f.pins, f.vm, 0, &f.online, &f.node1);
	pins_ask(&f.pins, f.vm, 1, &f.online, &f.node1);
	f.pins.vm[0].settled_ns = 100;
	f.affinity[0] = f.affinity[1] = f.node1;
	CHECK_INT(check(&f, 0, 200), PINS_OURS);
	f.affinity[1] = f.online; /* undone: ask again */
	CHECK_INT(check(&f, 0, 200), PINS_DRIFT);
	idset_clear(&f.affinity[1]);
	idset_add(&f.affinity[1], 0); /* somebody wants it elsewhere */
	CHECK_INT(check(&f, 0, 200), PINS_FOREIGN);
	CHECK_STR(f.why, "vCPU 1: asked 4-7, effective 0");
	teardown(&f);
}

static void an_unplugged_vcpu_has_no_pin_when_it_comes_back(struct tap *tap_)
{
	struct fixture f;

	setup(&f);
	ask_both(&f);
	f.vm->vcpu[1].tid = 0;
	f.pins.vm[0].pending = true; /* its result may still be noted there */
	pins_drop_gone(&f.pins, f.s);
	CHECK(pins_know(&f.pins.vm[0], 1));
	f.pins.vm[0].pending = false;
	pins_drop_gone(&f.pins, f.s);
	CHECK(pins_know(&f.pins.vm[0], 0) && !pins_know(&f.pins.vm[0], 1));
	f.vm->vcpu[1].tid = 4711;
	idset_clear(&f.v.pin[0]);
	f.v.pin[0] = f.affinity[0] = f.node1;
	CHECK_INT(check(&f, 200, 200), PINS_OURS);
	teardown(&f);
}

TAP_MAIN(TEST(nobody_has_pinned), TEST(the_operators_pin_is_seen),
	TEST(an_affinity_from_outside_is_seen), TEST(our_pin_is_ours_and_the_original_is_kept),
	TEST(readings_from_before_our_call_say_nothing),
	TEST(the_mask_asked_for_is_not_the_one_in_force_D06), TEST(a_pin_taken_over_is_foreign),
	TEST(entries_of_vms_that_are_gone_are_dropped), TEST(a_bare_qemu_is_judged_by_its_masks),
	TEST(an_unplugged_vcpu_has_no_pin_when_it_comes_back))
