/* Power figures against a published measurement of 24 drives in one server, whose meter showed
 * multiples of 33 W. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdlib.h>
#include <cmocka.h>

#include "core/bench/watts.h"

#define QUANTUM_MW 33000
#define DRIVES 24
#define N 10

static void fill(struct watts_reading *r, size_t n, int64_t mw) {
	for (size_t i = 0; i < n; i++)
		r[i] = (struct watts_reading){1000 * (int64_t)i, mw};
}

static bool near(double a, double b, double within) {
	return fabs(a - b) <= within;
}

static const struct baseline no_drives = {
	.known = true, .source = BASELINE_DECLARED, .power_mw = 462000, .uncertainty_mw = NONE};
static const struct baseline idle = {
	.known = true, .source = BASELINE_DECLARED, .power_mw = 594000, .uncertainty_mw = NONE};

static const struct {
	int64_t system_w;
	double gb_per_s; /* 0: nothing was moved */
	double above_no_drives_w, per_drive_w, above_idle_w, j_per_gb_idle;
} rows[] = {
	{594, 0, 132, 5.5, 0, 0},
	{858, 109, 396, 16.5, 264, 2.42},
	{858, 105, 396, 16.5, 264, 2.51},
	{759, 79.8, 297, 12.375, 165, 2.07},
	{1089, 82.5, 627, 26.125, 495, 6.0},
	{825, 34.4, 363, 15.125, 231, 6.7},
	{726, 17.3, 264, 11, 132, 7.6},
};

static void published_figures_come_out(void **state) {
	(void)state;
	for (size_t i = 0; i < array_len(rows); i++) {
		struct watts_reading r[N];
		fill(r, N, rows[i].system_w * 1000);
		struct watts_mean m = watts_mean_of(r, N, QUANTUM_MW);
		struct watts_difference bare = watts_above(&m, &no_drives, QUANTUM_MW, DRIVES);
		struct watts_difference full = watts_above(&m, &idle, QUANTUM_MW, DRIVES);
		assert_true(near(bare.above_w, rows[i].above_no_drives_w, 1e-9));
		assert_true(near(bare.per_drive_w, rows[i].per_drive_w, 1e-9));
		assert_true(near(full.above_w, rows[i].above_idle_w, 1e-9));
		if (rows[i].gb_per_s > 0)
			assert_true(
				near(full.above_w / rows[i].gb_per_s, rows[i].j_per_gb_idle, 0.05));
	}
}

static void a_standing_meter_is_as_unsure_as_one_reading(void **state) {
	(void)state;
	for (size_t n = RUN_MIN_FRESH_READINGS; n <= 512; n *= 4) {
		struct watts_reading *r = calloc(n, sizeof(*r));
		fill(r, n, 858000);
		struct watts_mean m = watts_mean_of(r, n, QUANTUM_MW);
		assert_true(near(m.standard_w, 33 / sqrt(12), 1e-9));
		struct watts_difference d = watts_above(&m, &idle, QUANTUM_MW, DRIVES);
		assert_true(near(d.bound_w, 33, 1e-9));
		assert_true(near(d.bound_w / DRIVES, 1.375, 1e-9));
		assert_true(near(d.uncertainty_w / 2 / DRIVES, 0.56, 0.005));
		assert_true(near(d.uncertainty_w / DRIVES, 1.12, 0.005));
		free(r);
	}
}

static void eight_readings_are_needed(void **state) {
	(void)state;
	struct watts_reading r[N];
	fill(r, N, 858000);
	struct watts_mean m = watts_mean_of(r, RUN_MIN_FRESH_READINGS - 1, QUANTUM_MW);
	assert_int_equal(m.count, RUN_MIN_FRESH_READINGS - 1);
	assert_true(isnan(m.mean_w) && isnan(m.standard_w));
	assert_true(isnan(watts_above(&m, &idle, QUANTUM_MW, DRIVES).above_w));
	m = watts_mean_of(r, RUN_MIN_FRESH_READINGS, QUANTUM_MW);
	assert_true(m.mean_w == 858 && m.min_w == 858 && m.max_w == 858);
}

static void without_a_baseline_there_is_no_difference(void **state) {
	(void)state;
	struct watts_reading r[N];
	fill(r, N, 858000);
	struct watts_mean m = watts_mean_of(r, N, QUANTUM_MW);
	const struct baseline none = {.known = false};
	struct watts_difference d = watts_above(&m, &none, QUANTUM_MW, DRIVES);
	assert_true(isnan(d.above_w) && isnan(d.per_drive_w) && isnan(d.uncertainty_w) &&
		isnan(d.bound_w));
}

static void an_unknown_resolution_leaves_the_scatter(void **state) {
	(void)state;
	struct watts_reading r[N];
	fill(r, N, 100000);
	assert_true(isnan(watts_mean_of(r, N, NONE).standard_w));
	for (size_t i = 0; i < N; i++)
		r[i].mw += i % 2 ? 1000 : -1000;
	struct watts_mean m = watts_mean_of(r, N, NONE);
	/* s² = 10/9 W², independent from one to the next */
	assert_true(near(m.standard_w, sqrt(10.0 / 9 / N), 1e-9));
	assert_true(near(m.mean_w, 100, 1e-9) && m.min_w == 99 && m.max_w == 101);
	assert_true(isnan(watts_above(&m, &idle, NONE, DRIVES).bound_w));
	assert_true(watts_mean_of(r, N, QUANTUM_MW).standard_w > 33 / sqrt(12));
}

/* Readings that drift slowly are worth fewer than they are. */
static void dependent_readings_count_for_less(void **state) {
	(void)state;
	struct watts_reading slow[100], fast[100];
	for (size_t i = 0; i < 100; i++) {
		slow[i] = (struct watts_reading){(int64_t)i, i < 50 ? 99000 : 101000};
		fast[i] = (struct watts_reading){(int64_t)i, i % 2 ? 99000 : 101000};
	}
	double fast_w = watts_mean_of(fast, 100, NONE).standard_w;
	double slow_w = watts_mean_of(slow, 100, NONE).standard_w;
	assert_true(near(fast_w, 0.1, 0.001));
	assert_true(slow_w > 7 * fast_w);
}

static void a_measured_baseline_brings_its_own_uncertainty(void **state) {
	(void)state;
	struct watts_reading r[N];
	fill(r, N, 100000);
	const struct baseline base = {.known = true, .power_mw = 90000, .uncertainty_mw = 6000};
	struct watts_mean m = watts_mean_of(r, N, 1000);
	struct watts_difference d = watts_above(&m, &base, 1000, 1);
	assert_true(near(d.uncertainty_w, 2 * hypot(3, 1 / sqrt(12)), 1e-9));
}

static void the_begin_of_the_window_is_left_out(void **state) {
	(void)state;
	assert_int_equal(watts_begin_ms(1000, 61000), 1000 + WATTS_LAG_MS);
	assert_int_equal(watts_begin_ms(1000, 6000), 2000);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(published_figures_come_out),
		cmocka_unit_test(a_standing_meter_is_as_unsure_as_one_reading),
		cmocka_unit_test(eight_readings_are_needed),
		cmocka_unit_test(without_a_baseline_there_is_no_difference),
		cmocka_unit_test(an_unknown_resolution_leaves_the_scatter),
		cmocka_unit_test(dependent_readings_count_for_less),
		cmocka_unit_test(a_measured_baseline_brings_its_own_uncertainty),
		cmocka_unit_test(the_begin_of_the_window_is_left_out),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
