/* The simulated meter: lag, noise, quantum. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "core/sim/meter.h"

static const struct sim_meter_model exact = {.quantum_w = 0, .lag_s = 0, .noise_w = 0};
static const struct sim_meter_model lagging = {.lag_s = 2};
static const struct sim_meter_model noisy = {.noise_w = 4};
static const struct sim_meter_model coarse = {.quantum_w = 33};
static const struct sim_meter_model as_published = {.quantum_w = 33, .lag_s = 1, .noise_w = 4};

static void assert_near(double value, double wanted, double within) {
	if (fabs(value - wanted) > within)
		fail_msg("%g is not %g within %g", value, wanted, within);
}

static void without_faults_it_shows_the_truth(void **state) {
	(void)state;
	struct sim_meter m;
	sim_meter_init(&m, &exact, 100, 1);
	assert_int_equal(sim_meter_read_mw(&m), 100000);
	sim_meter_advance(&m, 123.4, 0.1);
	assert_int_equal(sim_meter_read_mw(&m), 123400);
}

static void a_step_is_followed_with_the_lag(void **state) {
	(void)state;
	struct sim_meter m;
	sim_meter_init(&m, &lagging, 600, 1);
	sim_meter_advance(&m, 1000, 2);
	assert_near((double)sim_meter_read_mw(&m) / 1000, 1000 - 400 * exp(-1), 0.01);
	for (int i = 0; i < 4; i++)
		sim_meter_advance(&m, 1000, 0.5);
	assert_near((double)sim_meter_read_mw(&m) / 1000, 1000 - 400 * exp(-2), 0.01);
	sim_meter_advance(&m, 1000, 100);
	assert_near((double)sim_meter_read_mw(&m) / 1000, 1000, 0.01);
}

static void readings_are_multiples_of_the_quantum(void **state) {
	(void)state;
	struct sim_meter m;
	sim_meter_init(&m, &coarse, 500, 1);
	for (int w = 1; w < 2000; w += 7) {
		sim_meter_advance(&m, w, 1);
		const int64_t mw = sim_meter_read_mw(&m);
		assert_int_equal(mw % 33000, 0);
		assert_true(llabs(mw - w * 1000) <= 16500);
	}
}

static void noise_has_the_stated_width_and_no_bias(void **state) {
	(void)state;
	enum { N = 20000 };
	struct sim_meter m;
	double sum = 0, squares = 0;
	sim_meter_init(&m, &noisy, 500, 42);
	for (int i = 0; i < N; i++) {
		const double d = (double)sim_meter_read_mw(&m) / 1000 - 500;
		sum += d;
		squares += d * d;
	}
	assert_near(sum / N, 0, 0.15);
	assert_near(sqrt(squares / N), 4, 0.15);
}

static void the_seed_decides_the_noise(void **state) {
	(void)state;
	struct sim_meter a, b, c;
	int same = 0;
	sim_meter_init(&a, &noisy, 500, 7);
	sim_meter_init(&b, &noisy, 500, 7);
	sim_meter_init(&c, &noisy, 500, 8);
	for (int i = 0; i < 100; i++) {
		const int64_t mw = sim_meter_read_mw(&a);
		assert_int_equal(mw, sim_meter_read_mw(&b));
		same += mw == sim_meter_read_mw(&c);
	}
	assert_true(same < 10);
	sim_meter_init(&a, &noisy, 500, 0);
	assert_int_not_equal(sim_meter_read_mw(&a), sim_meter_read_mw(&a));
}

static void it_never_shows_less_than_nothing(void **state) {
	(void)state;
	struct sim_meter m;
	sim_meter_init(&m, &noisy, 0, 3);
	for (int i = 0; i < 100; i++)
		assert_true(sim_meter_read_mw(&m) >= 0);
}

/* The published figures are multiples of 33 W, so the meter mostly shows just them. */
static void the_published_figures_are_what_it_mostly_shows(void **state) {
	(void)state;
	static const int watts[] = {462, 594, 726, 759, 825, 858, 1089};
	for (size_t i = 0; i < sizeof(watts) / sizeof(watts[0]); i++) {
		struct sim_meter m;
		int hits = 0;
		sim_meter_init(&m, &as_published, watts[i], 5);
		for (int n = 0; n < 200; n++)
			hits += sim_meter_read_mw(&m) == watts[i] * 1000;
		assert_true(hits > 190);
	}
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_faults_it_shows_the_truth),
		cmocka_unit_test(a_step_is_followed_with_the_lag),
		cmocka_unit_test(readings_are_multiples_of_the_quantum),
		cmocka_unit_test(noise_has_the_stated_width_and_no_bias),
		cmocka_unit_test(the_seed_decides_the_noise),
		cmocka_unit_test(it_never_shows_less_than_nothing),
		cmocka_unit_test(the_published_figures_are_what_it_mostly_shows),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
