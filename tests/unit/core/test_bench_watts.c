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

static const struct watts_meter coarse = {QUANTUM_MW, QUANTUM_MW, NONE};
static const struct watts_meter unknown = {NONE, NONE, NONE};

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
		struct watts_mean m = watts_mean_of(r, N, &coarse);
		struct watts_difference bare = watts_above(&m, &no_drives, &coarse, DRIVES);
		struct watts_difference full = watts_above(&m, &idle, &coarse, DRIVES);
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
		struct watts_mean m = watts_mean_of(r, n, &coarse);
		assert_true(near(m.standard_w, 33 / sqrt(12), 1e-9));
		struct watts_difference d = watts_above(&m, &idle, &coarse, DRIVES);
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
	struct watts_mean m = watts_mean_of(r, RUN_MIN_FRESH_READINGS - 1, &coarse);
	assert_int_equal(m.count, RUN_MIN_FRESH_READINGS - 1);
	assert_true(isnan(m.mean_w) && isnan(m.standard_w));
	assert_true(isnan(watts_above(&m, &idle, &coarse, DRIVES).above_w));
	m = watts_mean_of(r, RUN_MIN_FRESH_READINGS, &coarse);
	assert_true(m.mean_w == 858 && m.min_w == 858 && m.max_w == 858);
}

static void without_a_baseline_there_is_no_difference(void **state) {
	(void)state;
	struct watts_reading r[N];
	fill(r, N, 858000);
	struct watts_mean m = watts_mean_of(r, N, &coarse);
	const struct baseline none = {.known = false};
	struct watts_difference d = watts_above(&m, &none, &coarse, DRIVES);
	assert_true(isnan(d.above_w) && isnan(d.per_drive_w) && isnan(d.uncertainty_w) &&
		isnan(d.bound_w));
}

static void before_the_resolution_is_known_the_smallest_difference_stands_in(void **state) {
	(void)state;
	struct watts_reading r[N];
	fill(r, N, 100000);
	struct watts_mean m = watts_mean_of(r, N, &unknown);
	assert_true(near(m.mean_w, 100, 1e-9) && isnan(m.standard_w));
	assert_true(isnan(watts_above(&m, &idle, &unknown, DRIVES).uncertainty_w));
	for (size_t i = 0; i < N; i++)
		r[i].mw += i % 2 ? 1000 : -1000;
	const struct watts_meter meter = {NONE, 2000, NONE};
	m = watts_mean_of(r, N, &meter);
	/* s² = 10/9 W², independent from one to the next; the halves differ by 0.4 W */
	double standard_w = hypot(hypot(sqrt(10.0 / 9 / N), 0.2), 2 / sqrt(12));
	assert_true(near(m.standard_w, standard_w, 1e-9));
	assert_true(near(m.mean_w, 100, 1e-9) && m.min_w == 99 && m.max_w == 101);
	struct watts_difference d = watts_above(&m, &idle, &meter, DRIVES);
	assert_true(near(d.uncertainty_w, 2 * hypot(standard_w, 2 / sqrt(12)), 1e-9));
	assert_true(isnan(d.bound_w));
}

/* Readings that drift slowly are worth fewer than they are. */
static void dependent_readings_count_for_less(void **state) {
	(void)state;
	const struct watts_meter meter = {1, 1, NONE};
	struct watts_reading slow[100], fast[100];
	for (size_t i = 0; i < 100; i++) {
		slow[i] = (struct watts_reading){(int64_t)i, i / 25 % 2 ? 99000 : 101000};
		fast[i] = (struct watts_reading){(int64_t)i, i % 2 ? 99000 : 101000};
	}
	double fast_w = watts_mean_of(fast, 100, &meter).standard_w;
	double slow_w = watts_mean_of(slow, 100, &meter).standard_w;
	assert_true(near(fast_w, 0.1, 0.001));
	assert_true(slow_w > 4 * fast_w);
}

static void a_drift_makes_unsure(void **state) {
	(void)state;
	const struct watts_meter meter = {1, 1, NONE};
	struct watts_reading r[100];
	for (size_t i = 0; i < 100; i++)
		r[i] = (struct watts_reading){(int64_t)i, i < 50 ? 99000 : 101000};
	assert_true(watts_mean_of(r, 100, &meter).standard_w >= 1);
}

/* --- a lag that is known --- */

#define LAG_MS 2000
#define PERIOD_MS 100
#define LOAD_W 300.0

/* What a meter shows of a load that began at 0 above 100 W; with fast, alternating noise. */
static void follow_step(struct watts_reading *r, size_t n, int64_t from_ms, int64_t noise_mw) {
	for (size_t i = 0; i < n; i++) {
		int64_t at_ms = from_ms + PERIOD_MS * (int64_t)i;
		double w = LOAD_W - 200 * exp(-(double)at_ms / LAG_MS);
		r[i] = (struct watts_reading){
			at_ms, llround(w * 1000) + (i % 2 ? noise_mw : -noise_mw)};
	}
}

static void a_known_lag_is_made_good(void **state) {
	(void)state;
	const struct watts_meter meter = {1, 1, LAG_MS};
	struct watts_reading r[60];
	for (int64_t from_ms = 0; from_ms <= 4000; from_ms += 1000) {
		follow_step(r, 60, from_ms, 0);
		assert_true(near(watts_mean_of(r, 60, &meter).mean_w, LOAD_W, 0.05));
		assert_true(watts_mean_of(r, 60, &unknown).mean_w < LOAD_W - 5);
	}
	assert_int_equal(watts_begin_ms(&meter, 1000, 61000), 1000);
}

static void what_makes_a_lag_good_makes_less_sure(void **state) {
	(void)state;
	const struct watts_meter quick = {1, 1, 0}, slow = {1, 1, LAG_MS};
	struct watts_reading few[60], many[6000];
	follow_step(few, 60, 8000, 1000);
	struct watts_mean m = watts_mean_of(few, 60, &slow);
	assert_true(near(m.mean_w, LOAD_W, 2 * m.standard_w));
	/* Two ends of σ = √2 W, each with the weight 2 s / 5.9 s, beside the mean of 60. */
	assert_true(near(m.standard_w, sqrt(2.0 / 60 + 2 * 2 * pow(2 / 5.9, 2)), 0.05));
	follow_step(many, 6000, 60000, 1000);
	assert_true(watts_mean_of(many, 6000, &slow).standard_w <
		1.5 * watts_mean_of(many, 6000, &quick).standard_w);
}

static void a_coarse_meter_with_a_known_lag_stays_coarse(void **state) {
	(void)state;
	const struct watts_meter meter = {QUANTUM_MW, QUANTUM_MW, LAG_MS};
	struct watts_reading r[60];
	fill(r, 60, 858000);
	double standard_w = watts_mean_of(r, 60, &meter).standard_w;
	assert_true(standard_w >= 33 / sqrt(12) && standard_w < 34 / sqrt(12));
}

static void a_measured_baseline_brings_its_own_uncertainty(void **state) {
	(void)state;
	struct watts_reading r[N];
	fill(r, N, 100000);
	const struct baseline base = {.known = true, .power_mw = 90000, .uncertainty_mw = 6000};
	const struct watts_meter meter = {1000, 1000, NONE};
	struct watts_mean m = watts_mean_of(r, N, &meter);
	struct watts_difference d = watts_above(&m, &base, &meter, 1);
	assert_true(near(d.uncertainty_w, 2 * hypot(3, 1 / sqrt(12)), 1e-9));
}

static void the_begin_of_the_window_is_left_out(void **state) {
	(void)state;
	assert_int_equal(watts_begin_ms(&unknown, 1000, 61000), 1000 + WATTS_LAG_MS);
	assert_int_equal(watts_begin_ms(&unknown, 1000, 6000), 2000);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(published_figures_come_out),
		cmocka_unit_test(a_standing_meter_is_as_unsure_as_one_reading),
		cmocka_unit_test(eight_readings_are_needed),
		cmocka_unit_test(without_a_baseline_there_is_no_difference),
		cmocka_unit_test(before_the_resolution_is_known_the_smallest_difference_stands_in),
		cmocka_unit_test(dependent_readings_count_for_less),
		cmocka_unit_test(a_drift_makes_unsure),
		cmocka_unit_test(a_known_lag_is_made_good),
		cmocka_unit_test(what_makes_a_lag_good_makes_less_sure),
		cmocka_unit_test(a_coarse_meter_with_a_known_lag_stays_coarse),
		cmocka_unit_test(a_measured_baseline_brings_its_own_uncertainty),
		cmocka_unit_test(the_begin_of_the_window_is_left_out),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
