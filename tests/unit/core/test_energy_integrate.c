/* Energy between samples: gaps, lost polls, wall clock steps, boots, doubles. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <jansson.h>
#include <cmocka.h>

#include "base/compiler.h"
#include "core/bmc/redfish.h"
#include "core/energy/integrate.h"

#define MAX 8
#define LOST (-1)

struct vector {
	const char *name;
	size_t n;
	int64_t mono_s[MAX], wall_s[MAX]; /* wall_s all 0: as mono_s */
	int boot[MAX];
	int watts[MAX];
	double wh, covered_s, uncovered_s;
};

static const struct joining meter = {.max_gap_ms = 30000};

static const struct vector vectors[] = {
	{"plain", 4, {0, 10, 20, 30}, {0}, {0}, {100, 100, 200, 200}, 1.25, 30, 0},
	{"gap", 4, {0, 10, 3610, 3620}, {0}, {0}, {100, 100, 100, 100}, 0.5556, 20, 3600},
	{"one lost poll is bridged", 4, {0, 10, 20, 30}, {0}, {0}, {100, LOST, 100, 100}, 0.8333,
		30, 0},
	{"too many lost", 6, {0, 10, 20, 30, 40, 50}, {0}, {0}, {100, LOST, LOST, LOST, 100, 100},
		0.2778, 10, 40},
	{"zero is real", 3, {0, 10, 20}, {0}, {0}, {100, 0, 0}, 0.1389, 20, 0},
	{"wall clock back", 4, {0, 10, 20, 30}, {1000000000, 1000000010, 999996420, 999996430}, {0},
		{100, 100, 100, 100}, 0.8333, 30, 0},
	{"wall clock forward", 4, {0, 10, 20, 30}, {1000000000, 1000000010, 1031536020, 1031536030},
		{0}, {100, 100, 100, 100}, 0.8333, 30, 0},
	{"new boot", 4, {500, 510, 0, 10}, {1000, 1010, 1020, 1030}, {0, 0, 1, 1},
		{100, 100, 100, 100}, 0.8333, 30, 0},
	{"new boot, clock behind", 4, {500, 510, 0, 10}, {1000, 1010, 40, 50}, {0, 0, 1, 1},
		{100, 100, 100, 100}, 0.5556, 20, 0},
	{"double", 4, {0, 10, 10, 20}, {0}, {0}, {100, 100, 300, 300}, 1.1111, 20, 0},
	{"sentinel", 3, {0, 10, 20}, {0}, {0}, {100, 65535, 100}, 0.5556, 20, 0},
	{"single", 1, {0}, {0}, {0}, {100}, 0, 0, 0},
};

static int64_t read_watts(int watts) {
	json_t *v = watts == LOST ? json_null() : json_integer(watts);
	int64_t power_mw = redfish_watts(v);
	json_decref(v);
	return power_mw;
}

static int64_t wall_s(const struct vector *v, size_t i) {
	return v->wall_s[0] ? v->wall_s[i] : v->mono_s[i];
}

static void integrate(const struct vector *v, struct integrator *in) {
	for (size_t i = 0; i < v->n; i++) {
		const struct reading r = {.at_ms = wall_s(v, i) * 1000,
			.at_mono_ns = v->mono_s[i] * 1000000000,
			.value_milli = read_watts(v->watts[i]),
			.boot = v->boot[i]};
		if (r.value_milli != NONE)
			integrator_add(in, &r);
	}
}

static void vectors_hold(void **state unused_arg) {
	for (size_t i = 0; i < array_len(vectors); i++) {
		const struct vector *v = &vectors[i];
		struct integral steps[2] = {{.at_ms = 0}, {.at_ms = 1000000000005}};
		struct integrator in;
		integrator_init(&in, &meter, steps, 2, INT64_C(4000000000000));
		integrate(v, &in);
		double wh = (steps[0].milli_ms + steps[1].milli_ms) / 3.6e9;
		double covered_ms = steps[0].covered_ms + steps[1].covered_ms;
		if (fabs(wh - v->wh) > 0.00005)
			fail_msg("%s: %f Wh", v->name, wh);
		if (fabs(covered_ms - v->covered_s * 1000) > 0.001)
			fail_msg("%s: covered %f ms", v->name, covered_ms);
		if (fabs(in.uncovered_ms - v->uncovered_s * 1000) > 0.001)
			fail_msg("%s: uncovered %f ms", v->name, in.uncovered_ms);
	}
}

/* 100 W rising to 300 W from 5 s to 15 s, laid onto steps that begin at 0, 8 and 10 s, to 12 s. */
static void spreads_over_steps(void **state unused_arg) {
	struct integral steps[] = {{.at_ms = 0}, {.at_ms = 8000}, {.at_ms = 10000}};
	struct integrator in;
	integrator_init(&in, &meter, steps, 3, 12000);
	integrator_add(&in, &(struct reading){.at_ms = 5000, .value_milli = 100000});
	integrator_add(&in,
		&(struct reading){
			.at_ms = 15000, .at_mono_ns = 10000000000, .value_milli = 300000});
	static const double watts[] = {130, 180, 220}, seconds[] = {3, 2, 2};
	for (size_t i = 0; i < 3; i++) {
		assert_true(fabs(steps[i].covered_ms - seconds[i] * 1000) < 1e-6);
		assert_true(fabs(steps[i].milli_ms - watts[i] * seconds[i] * 1e6) < 1);
	}
	assert_int_equal(steps[0].min_milli, 100000);
	assert_int_equal(steps[0].max_milli, 100000);
	assert_int_equal(steps[1].min_milli, NONE);
	/* The sample at 15 s lies outside. */
	assert_int_equal(steps[2].max_milli, NONE);
}

/* The wall clock's milliseconds and the monotonic nanoseconds round apart. */
static void neighbours_do_not_overlap(void **state unused_arg) {
	struct integral steps[] = {{.at_ms = 0}, {.at_ms = 60000}};
	struct integrator in;
	integrator_init(&in, &meter, steps, 2, 120000);
	for (int64_t i = 0; i <= 12; i++)
		integrator_add(&in,
			&(struct reading){.at_ms = i * 10000,
				.at_mono_ns = i * 10000400000,
				.value_milli = 1000});
	assert_true(fabs(steps[0].covered_ms - 60000) < 1e-6);
	assert_true(fabs(steps[1].covered_ms - 60000) < 1e-6);
	/* The energy is what the monotonic clock says. */
	assert_true(fabs(steps[0].milli_ms - 1000 * 60002.4) < 1e-3);
}

/* Counters in kWh: what a thousandth of it is in µJ. */
#define WH 3.6e9

struct counter {
	const char *name;
	size_t n;
	int64_t wh[MAX];
	double rise_wh;
	int64_t resets;
};

static void counters_rise(void **state unused_arg) {
	static const struct counter counters[] = {
		{"monotone", 3, {1000, 4600, 8200}, 7200, 0},
		{"reset to zero", 4, {9000, 9900, 300, 1200}, 2100, 1},
		{"coarse", 3, {12300, 12300, 12400}, 100, 0},
		{"far down", 2, {262144000, 5000000}, 5000000, 1},
		{"single", 1, {500}, 0, 0},
	};
	static const struct joining how = {.max_gap_ms = 3600000, .per_milli = WH};
	for (size_t i = 0; i < array_len(counters); i++) {
		const struct counter *c = &counters[i];
		struct integral step = {.at_ms = 0};
		struct integrator in;
		integrator_init(&in, &how, &step, 1, 86400000);
		for (size_t k = 0; k < c->n; k++)
			integrator_add(&in,
				&(struct reading){.at_ms = (int64_t)k * 60000,
					.at_mono_ns = (int64_t)k * 60000000000,
					.value_milli = c->wh[k]});
		if (fabs(step.milli_ms / WH - c->rise_wh) > 1e-6 || in.resets != c->resets)
			fail_msg("%s: %f Wh, %d resets", c->name, step.milli_ms / WH,
				(int)in.resets);
		assert_true(fabs(step.covered_ms - (double)(c->n - 1) * 60000) < 1e-6);
	}
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counters_rise),
		cmocka_unit_test(vectors_hold),
		cmocka_unit_test(spreads_over_steps),
		cmocka_unit_test(neighbours_do_not_overlap),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
