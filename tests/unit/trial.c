/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "policy/trial.h"

#include "tests/builder.h"
#include "tests/tap.h"

static const struct settings set = SETTINGS_DEFAULT;
#define SECOND UINT64_C(1000000000)

static void history_clearp(struct history *h)
{
	history_clear(h);
}

static void it_is_judged_when_time_and_windows_have_gone_by(struct tap *tap_)
{
	struct snap_vm vm = {.windows = 10, .data = DATA_OK};
	struct trial t = {.promised = -1};

	trial_begin(&t, &vm, 200, 800, 100 * SECOND);
	vm.windows = 13;
	CHECK(!trial_judge(&t, &set, &vm, 800, 160 * SECOND));
	vm.windows = 14;
	CHECK(!trial_judge(&t, &set, &vm, 800, 160 * SECOND - 1));
	vm.data = DATA_STALE;
	CHECK(!trial_judge(&t, &set, &vm, 800, 160 * SECOND));
	vm.data = DATA_OK;
	CHECK(trial_judge(&t, &set, &vm, 500, 160 * SECOND)); /* half of it is enough */
	CHECK(t.kept);
	CHECK_INT(trial_bar(&t), 1);
	CHECK(!trial_judge(&t, &set, &vm, 0, 260 * SECOND)); /* once */
}

static void memory_on_its_way_postpones_it(struct tap *tap_)
{
	struct snap_vm vm = {.windows = 10, .data = DATA_OK};
	struct trial t = {.promised = -1};

	trial_begin(&t, &vm, 200, 800, 100 * SECOND);
	vm.windows = 20;
	trial_wait(&t, &vm, 200 * SECOND);
	CHECK(!trial_judge(&t, &set, &vm, 800, 210 * SECOND));
	vm.windows = 24;
	CHECK(trial_judge(&t, &set, &vm, 499, 260 * SECOND));
	CHECK(!t.kept);
	CHECK_INT(t.achieved, 499);
}

static void the_bar_doubles_up_to_a_limit_and_comes_down(struct tap *tap_)
{
	struct snap_vm vm = {.data = DATA_OK};
	struct trial t = {.promised = -1};

	for (unsigned i = 1; i <= 8; i++) {
		trial_begin(&t, &vm, 200, 800, 0);
		vm.windows += 4;
		CHECK(trial_judge(&t, &set, &vm, 100, 60 * SECOND));
		CHECK_INT(trial_bar(&t), 1u << MIN2(i, TRIAL_BAR_MAX));
	}
	CHECK_INT(t.broken_all, 8);
	trial_begin(&t, &vm, 200, 800, 0);
	vm.windows += 4;
	CHECK(trial_judge(&t, &set, &vm, 800, 60 * SECOND));
	CHECK_INT(trial_bar(&t), 1u << (TRIAL_BAR_MAX - 1));
}

static void what_was_decided_by_pages_is_not_judged(struct tap *tap_)
{
	struct snap_vm vm = {.data = DATA_OK};
	struct trial t = {.promised = -1};

	trial_begin(&t, &vm, -1, 800, 0);
	vm.windows = 100;
	CHECK(!trial_judge(&t, &set, &vm, 100, 100 * SECOND));
}

/* A host that answers each move with faults from elsewhere. One window is one decision. */
struct walk {
	struct snapshot *s;
	struct snap_vm *vm;
	struct history h;
	unsigned moves, max_in_a_cooldown;
	uint64_t moved_ns;
};

static void step(struct walk *w, const uint64_t *faults)
{
	_cleanup_(decide_space_clear) struct decide_space space = {0};
	_cleanup_plan_ struct plan p = {0};

	w->s->seq++;
	w->s->time_ns += 10 * SECOND;
	w->vm->windows++;
	build_faults(w->s, w->vm, FAULT_SHARED, faults);
	if (decide(w->s, &set, &w->h, &space, &p) < 0)
		abort();
	if (!p.n_due)
		return;
	if (w->moved_ns && w->s->time_ns - w->moved_ns < set.cooldown_ns)
		w->max_in_a_cooldown++;
	decide_commit(&w->h, w->s, 0, &p.vm[0], w->s->time_ns);
	history_get(&w->h, w->vm)->moving = false;
	for (unsigned k = 0; k < w->vm->n_vcpus; k++)
		w->vm->vcpu[k].node = p.vm[0].target;
	w->moved_ns = w->s->time_ns;
	w->moves++;
}

static void D50_two_equally_good_nodes(struct tap *tap_)
{
	static const uint64_t even[2][2] = {{520, 480}, {480, 520}};
	/* always better where it is not */
	static const uint64_t elsewhere[2][2] = {{400, 600}, {600, 400}};
	struct walk w = {.s = build_two(1)};
	unsigned after_an_hour;

	w.vm = build_vm(w.s, 0, "vm1", 2, 4 * GIB, (int[]){0}, 1);
	build_memory(w.s, w.vm, (uint64_t[]){2 * GIB, 2 * GIB});
	w.vm->memory_fixed = true;
	for (unsigned i = 0; i < 3600; i++) /* ten hours */
		step(&w, even[i % 2]);
	CHECK_INT(w.moves, 0);
	/* at most one move per cooldown, and none any more when enough promises were broken */
	for (unsigned i = 0; i < 360; i++)
		step(&w, elsewhere[w.vm->vcpu[0].node]);
	after_an_hour = w.moves;
	for (unsigned i = 0; i < 3240; i++)
		step(&w, elsewhere[w.vm->vcpu[0].node]);
	CHECK(after_an_hour > 0 && after_an_hour <= 4);
	CHECK_INT(w.h.vm[0].trial.broken_all, after_an_hour);
	CHECK_INT(w.max_in_a_cooldown, 0);
	CHECK_INT(w.moves, after_an_hour); /* it has learnt */
	history_clear(&w.h);
	snapshot_free(w.s);
}

static void a_higher_bar_asks_for_more(struct tap *tap_)
{
	_cleanup_snapshot_ struct snapshot *s = build_two(1);
	_cleanup_(history_clearp) struct history h = {0};
	_cleanup_plan_ struct plan p = {0};
	struct snap_vm *vm = build_vm(s, 0, "vm1", 2, 4 * GIB, (int[]){0}, 1);

	build_faults(s, vm, FAULT_SHARED, (uint64_t[]){450, 550});
	build_memory(s, vm, (uint64_t[]){1843 * MIB, 2253 * MIB});
	vm->memory_fixed = true;
	history_get(&h, vm)->trial.broken = 2; /* 120 instead of 30; there are 100 to gain */
	build_decide(s, &set, &h, 3, &p);
	CHECK_INT(p.vm[0].kind, PLAN_HOLD);
	plan_clear(&p);
	history_get(&h, vm)->trial.broken = 1;
	build_decide(s, &set, &h, 3, &p);
	CHECK_INT(p.vm[0].kind, PLAN_PIN);
}

TAP_MAIN(TEST(it_is_judged_when_time_and_windows_have_gone_by),
	TEST(memory_on_its_way_postpones_it), TEST(the_bar_doubles_up_to_a_limit_and_comes_down),
	TEST(what_was_decided_by_pages_is_not_judged), TEST(D50_two_equally_good_nodes),
	TEST(a_higher_bar_asks_for_more))
