/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "policy/fold.h"
#include "tests/builder.h"
#include "tests/tap.h"

static const struct settings set = SETTINGS_DEFAULT;

static struct fault_reading reading(uint64_t seq, uint64_t total, uint64_t *value)
{
	return (struct fault_reading){.state = READING_OK,
		.has_stats = true,
		.decayed = true,
		.scan_seq = seq,
		.total_faults = total,
		.value = value};
}

static void windows_fold_and_the_kernels_decay_is_undone(struct tap *tap_)
{
	_cleanup_snapshot_ struct snapshot *a = build_two(1), *b = build_two(1);
	struct snap_vm *x = build_vm(a, 0, "vm1", 1, GIB, (int[]){0}, 1);
	struct snap_vm *y = build_vm(b, 0, "vm1", 1, GIB, (int[]){0}, 1);
	uint64_t first[4] = {0, 1000, 0, 0}, second[4] = {0, 1500, 0, 0};
	struct fault_reading r = reading(5, 1000, first);

	CHECK(fold_vcpu(2, NULL, &r, &x->vcpu[0]));
	CHECK_INT(x->vcpu[0].faults[1], 1000);
	r = reading(6, 1500, second); /* 1000 halved, and 1000 new ones */
	CHECK(fold_vcpu(2, &x->vcpu[0], &r, &y->vcpu[0]));
	CHECK_INT(y->vcpu[0].faults[1], 1500);
}

static void nothing_new_keeps_the_vector(struct tap *tap_)
{
	_cleanup_snapshot_ struct snapshot *a = build_two(1), *b = build_two(1);
	struct snap_vm *x = build_vm(a, 0, "vm1", 1, GIB, (int[]){0}, 1);
	struct snap_vm *y = build_vm(b, 0, "vm1", 1, GIB, (int[]){0}, 1);
	uint64_t value[4] = {0, 700, 0, 300};
	struct fault_reading r = reading(5, 1000, value);

	fold_vcpu(2, NULL, &r, &x->vcpu[0]);
	CHECK(!fold_vcpu(2, &x->vcpu[0], &r, &y->vcpu[0]));
	CHECK_INT(y->vcpu[0].faults[1], 700);
	CHECK_INT(y->vcpu[0].faults[3], 300);
	/* nor does a thread that may not be read lose what is known of it */
	r.state = READING_NO_PERMISSION;
	CHECK(!fold_vcpu(2, &x->vcpu[0], &r, &y->vcpu[0]));
	CHECK_INT(y->vcpu[0].faults[1], 700);
}

static void pages_carry_their_faults_along(struct tap *tap_)
{
	_cleanup_snapshot_ struct snapshot *a = build_two(1), *b = build_two(1);
	struct snap_vm *x = build_vm(a, 0, "vm1", 1, GIB, (int[]){0}, 1);
	struct snap_vm *y = build_vm(b, 0, "vm1", 1, GIB, (int[]){0}, 1);

	build_memory(a, x, (uint64_t[]){800 * MIB, 200 * MIB});
	build_memory(b, y, (uint64_t[]){200 * MIB, 800 * MIB});
	build_faults(b, y, FAULT_SHARED, (uint64_t[]){1000, 100});
	fold_moved_memory(2, x, y);
	CHECK_INT(y->vcpu[0].faults[0], 250);
	CHECK_INT(y->vcpu[0].faults[2], 850);
	/* memory that the guest gave back takes nothing along */
	build_memory(b, y, (uint64_t[]){100 * MIB, 200 * MIB});
	build_faults(b, y, FAULT_SHARED, (uint64_t[]){1000, 100});
	fold_moved_memory(2, x, y);
	CHECK_INT(y->vcpu[0].faults[0], 1000);
}

static void data_states(struct tap *tap_)
{
	_cleanup_snapshot_ struct snapshot *s = build_two(2);
	struct snap_vm *vm = build_vm(s, 0, "vm1", 1, GIB, (int[]){0}, 1);
	struct snap_vm *prev = build_vm(s, 1, "before", 1, GIB, (int[]){0}, 1);

	fold_data_state(&set, s, NULL, true, false, vm);
	CHECK_INT(vm->data, DATA_WARMING_UP);
	prev->windows = 1;
	fold_data_state(&set, s, prev, true, false, vm);
	CHECK_INT(vm->data, DATA_OK);
	CHECK_INT(vm->data_age_ns, 0);
	prev->windows = 5;
	prev->data_age_ns = set.stale_ns - 1;
	s->window_ns = UINT64_C(10000000000);
	fold_data_state(&set, s, prev, false, false, vm);
	CHECK_INT(vm->data, DATA_STALE);
	idset_clear(&vm->allowed_mems);
	idset_add(&vm->allowed_mems, 1);
	fold_data_state(&set, s, prev, false, false, vm);
	CHECK_INT(vm->data, DATA_NO_SCAN);
	fold_data_state(&set, s, prev, false, true, vm);
	CHECK_INT(vm->data, DATA_NO_PERMISSION);
	/* never a fault: the scanner does not come */
	prev->windows = 0;
	prev->data_age_ns = set.silent_ns;
	fold_data_state(&set, s, prev, false, false, vm);
	CHECK_INT(vm->data, DATA_NO_SCAN);
	s->balancing = 0;
	fold_data_state(&set, s, prev, false, false, vm);
	CHECK_INT(vm->data, DATA_BALANCING_OFF);
	vm->memory_hugetlb = true;
	fold_data_state(&set, s, prev, false, false, vm);
	CHECK_INT(vm->data, DATA_HUGETLB);
}

TAP_MAIN(TEST(windows_fold_and_the_kernels_decay_is_undone), TEST(nothing_new_keeps_the_vector),
	TEST(pages_carry_their_faults_along), TEST(data_states))
