#include "core/bench/watts.h"

#include <math.h>

#define SQRT_12 3.4641016151377544

int64_t watts_begin_ms(int64_t from_ms, int64_t to_ms) {
	int64_t fifth = (to_ms - from_ms) / 5;
	return from_ms + (fifth < WATTS_LAG_MS ? fifth : WATTS_LAG_MS);
}

static double watts(int64_t mw) {
	return (double)mw / 1000;
}

static double quantum_standard_w(int64_t resolution_mw) {
	return resolution_mw == NONE ? 0 : watts(resolution_mw) / SQRT_12;
}

/* Readings of a meter that averages depend on each other: with correlation c from one to the
 * next, n of them are worth n (1 - c) / (1 + c). */
static double independent_count(
	const struct watts_reading *r, size_t n, double mean, double squares) {
	double products = 0;
	for (size_t i = 1; i < n; i++)
		products += (watts(r[i - 1].mw) - mean) * (watts(r[i].mw) - mean);
	double c = fmax(0, products / squares);
	return fmax(1, (double)n * (1 - c) / (1 + c));
}

static double scatter_w(const struct watts_reading *r, size_t n, double mean, double squares) {
	if (squares <= 0)
		return 0;
	return sqrt(squares / (double)(n - 1) / independent_count(r, n, mean, squares));
}

struct watts_mean watts_mean_of(const struct watts_reading *r, size_t n, int64_t resolution_mw) {
	struct watts_mean m = {(uint32_t)n, NAN, NAN, NAN, NAN};
	if (n < RUN_MIN_FRESH_READINGS)
		return m;
	double sum = 0, squares = 0;
	m.min_w = m.max_w = watts(r[0].mw);
	for (size_t i = 0; i < n; i++) {
		sum += watts(r[i].mw);
		m.min_w = fmin(m.min_w, watts(r[i].mw));
		m.max_w = fmax(m.max_w, watts(r[i].mw));
	}
	m.mean_w = sum / (double)n;
	for (size_t i = 0; i < n; i++)
		squares += pow(watts(r[i].mw) - m.mean_w, 2);
	if (m.max_w > m.min_w || resolution_mw != NONE)
		m.standard_w = hypot(
			scatter_w(r, n, m.mean_w, squares), quantum_standard_w(resolution_mw));
	return m;
}

struct watts_difference watts_above(const struct watts_mean *load, const struct baseline *base,
	int64_t resolution_mw, unsigned drives) {
	if (!base->known || !isfinite(load->mean_w))
		return (struct watts_difference){NAN, NAN, NAN, NAN};
	double base_standard_w = base->uncertainty_mw == NONE ? quantum_standard_w(resolution_mw)
							      : watts(base->uncertainty_mw) / 2;
	double above_w = load->mean_w - watts(base->power_mw);
	return (struct watts_difference){
		.above_w = above_w,
		.per_drive_w = above_w / drives,
		.uncertainty_w = 2 * hypot(load->standard_w, base_standard_w),
		.bound_w = resolution_mw == NONE ? NAN : watts(resolution_mw),
	};
}
