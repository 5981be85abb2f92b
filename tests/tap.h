/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The smallest TAP writer that serves: one test program per module, one TEST() per behaviour.
 * A failed CHECK prints where and what, marks the test failed and goes on; REQUIRE leaves the test.
 */
#pragma once

#undef NDEBUG
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct tap {
	const char *name;
	unsigned failures; /* of the test that runs now */
};

struct tap_test {
	const char *name;
	void (*fn)(struct tap *tap_);
};

#define TEST(fn)        \
	{               \
#fn, fn \
	}
#define CHECK(cond)                                                                           \
	do {                                                                                  \
		if (!(cond)) {                                                                \
			tap_->failures++;                                                     \
			printf("# %s:%d: %s: not true: %s\n", __FILE__, __LINE__, tap_->name, \
				#cond);                                                       \
		}                                                                             \
	} while (0)
#define REQUIRE(cond)                                                                         \
	do {                                                                                  \
		if (!(cond)) {                                                                \
			tap_->failures++;                                                     \
			printf("# %s:%d: %s: not true: %s\n", __FILE__, __LINE__, tap_->name, \
				#cond);                                                       \
			return;                                                               \
		}                                                                             \
	} while (0)
#define CHECK_INT(got, want)                                                               \
	do {                                                                               \
		long long got_ = (long long)(got), want_ = (long long)(want);              \
		if (got_ != want_) {                                                       \
			tap_->failures++;                                                  \
			printf("# %s:%d: %s: %s is %lld, want %lld\n", __FILE__, __LINE__, \
				tap_->name, #got, got_, want_);                            \
		}                                                                          \
	} while (0)
#define CHECK_STR(got, want)                                                               \
	do {                                                                               \
		const char *got_ = (got), *want_ = (want);                                 \
		if (!got_ || strcmp(got_, want_) != 0) {                                   \
			tap_->failures++;                                                  \
			printf("# %s:%d: %s: %s is '%s', want '%s'\n", __FILE__, __LINE__, \
				tap_->name, #got, got_ ? got_ : "(null)", want_);          \
		}                                                                          \
	} while (0)

static inline int tap_run(const struct tap_test *tests, size_t n)
{
	unsigned failed = 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("1..%zu\n", n);
	for (size_t i = 0; i < n; i++) {
		struct tap tap = {.name = tests[i].name};

		tests[i].fn(&tap);
		printf("%s %zu - %s\n", tap.failures ? "not ok" : "ok", i + 1, tests[i].name);
		failed += tap.failures ? 1 : 0;
	}
	return failed ? 1 : 0;
}
#define TAP_MAIN(...)                                                       \
	int main(void)                                                      \
	{                                                                   \
		static const struct tap_test tests_[] = {__VA_ARGS__};      \
		return tap_run(tests_, sizeof(tests_) / sizeof(tests_[0])); \
	}
