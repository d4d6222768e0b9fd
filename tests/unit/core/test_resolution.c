#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/compiler.h"
#include "core/bmc/resolution.h"
#include "model/quality.h"

static void finds_the_step(void **state unused_arg) {
	static const struct {
		int64_t step_mw;
		size_t n;
		int64_t values_mw[8];
	} meters[] = {
		{33000, 8, {330000, 363000, 396000, 297000, 429000, 462000, 264000, 495000}},
		{1000, 8, {317000, 319000, 322000, 325000, 330000, 334000, 341000, 350000}},
		{500, 8, {214500, 212500, 215000, 213000, 216500, 218000, 220500, 211000}},
		/* 25/64 W, rounded to milliwatts: no common divisor by the book. */
		{391, 8, {117188, 117578, 118359, 118750, 119922, 120313, 121094, 123438}},
		/* On an offset. */
		{33000, 8, {101500, 134500, 167500, 200500, 266500, 299500, 332500, 365500}},
		/* Neighbours two and three steps apart. */
		{8000, 8, {0, 16000, 40000, 56000, 80000, 96000, 120000, 136000}},
		{1, 8, {1001, 2003, 3010, 4021, 5037, 6058, 7083, 8117}},
		{1, 1, {5}},
	};
	for (size_t i = 0; i < array_len(meters); i++)
		assert_int_equal(
			resolution_step(meters[i].values_mw, meters[i].n), meters[i].step_mw);
}

static void waits_for_eight_distinct(void **state unused_arg) {
	struct resolution r;
	resolution_init(&r);
	for (int i = 0; i < 7; i++) {
		assert_int_equal(resolution_learn(&r, 330000 + i * 33000), NONE);
		assert_int_equal(resolution_learn(&r, 330000), NONE);
	}
	assert_int_equal(resolution_learn(&r, 330000 + 7 * 33000), 33000);
	assert_int_equal(resolution_learn(&r, 330000), 33000);
}

static void the_smallest_difference_is_known_at_once(void **state unused_arg) {
	struct resolution r;
	resolution_init(&r);
	resolution_learn(&r, 330000);
	resolution_learn(&r, 330000);
	assert_int_equal(r.difference_mw, NONE);
	resolution_learn(&r, 429000);
	assert_int_equal(r.difference_mw, 99000);
	resolution_learn(&r, 363000);
	assert_int_equal(r.difference_mw, 33000);
	resolution_learn(&r, 264000);
	assert_int_equal(r.difference_mw, 33000);
}

static void goes_on_learning(void **state unused_arg) {
	struct resolution r;
	resolution_init(&r);
	for (int i = 0; i < 8; i++)
		resolution_learn(&r, i * 2000);
	assert_int_equal(r.step_mw, 2000);
	assert_int_equal(resolution_learn(&r, 5000), 1000);
	/* The meter was replaced: what it said before is forgotten in time. */
	for (int i = 1; i <= RESOLUTION_KEPT; i++)
		resolution_learn(&r, i * 33000);
	assert_int_equal(r.step_mw, 33000);
	assert_int_equal(r.count, RESOLUTION_KEPT);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_the_step),
		cmocka_unit_test(waits_for_eight_distinct),
		cmocka_unit_test(the_smallest_difference_is_known_at_once),
		cmocka_unit_test(goes_on_learning),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
