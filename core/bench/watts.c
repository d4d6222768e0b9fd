#include "core/bench/watts.h"

#include <math.h>

#define SQRT_12 3.4641016151377544

int64_t watts_begin_ms(const struct watts_meter *m, int64_t from_ms, int64_t to_ms) {
	int64_t fifth = (to_ms - from_ms) / 5;
	if (m->lag_ms != NONE)
		return from_ms;
	return from_ms + (fifth < WATTS_LAG_MS ? fifth : WATTS_LAG_MS);
}

static double watts(int64_t mw) {
	return (double)mw / 1000;
}

static double quantum_standard_w(const struct watts_meter *m) {
	return m->step_mw == NONE ? NAN : watts(m->step_mw) / SQRT_12;
}

static double mean_w(const struct watts_reading *r, size_t n) {
	double sum = 0;
	for (size_t i = 0; i < n; i++)
		sum += watts(r[i].mw);
	return sum / (double)n;
}

static double duration_s(const struct watts_reading *r, size_t n) {
	return (double)(r[n - 1].at_ms - r[0].at_ms) / 1000;
}

/* --- a lag that is known ------------------------------------------------------------------------
 */

static double integral_j(const struct watts_reading *r, size_t n) {
	double sum = 0;
	for (size_t i = 1; i < n; i++)
		sum += (watts(r[i - 1].mw) + watts(r[i].mw)) / 2 *
			(double)(r[i].at_ms - r[i - 1].at_ms) / 1000;
	return sum;
}

/* Of one reading, by the differences from each to the next: a slow change does not count. */
static double noise_w(const struct watts_reading *r, size_t n) {
	double squares = 0;
	for (size_t i = 1; i < n; i++)
		squares += pow(watts(r[i].mw - r[i - 1].mw), 2);
	return sqrt(squares / 2 / (double)(n - 1));
}

/* The first and the last reading count by themselves in what is added for the lag. */
static void take_lagged(struct watts_mean *m, const struct watts_reading *r, size_t n,
	const struct watts_meter *meter) {
	double t_s = duration_s(r, n), lag_s = (double)meter->lag_ms / 1000;
	double ends = 2 * pow(lag_s / t_s, 2);
	m->mean_w = (integral_j(r, n) + lag_s * watts(r[n - 1].mw - r[0].mw)) / t_s;
	m->standard_w = hypot(noise_w(r, n) * sqrt(1 / (double)n + ends),
		quantum_standard_w(meter) * sqrt(1 + ends));
}

/* --- a lag that is not --------------------------------------------------------------------------
 */

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

static double scatter_w(const struct watts_reading *r, size_t n, double mean) {
	double squares = 0;
	for (size_t i = 0; i < n; i++)
		squares += pow(watts(r[i].mw) - mean, 2);
	if (squares <= 0)
		return 0;
	return sqrt(squares / (double)(n - 1) / independent_count(r, n, mean, squares));
}

static double drift_w(const struct watts_reading *r, size_t n) {
	return fabs(mean_w(r + n - n / 2, n / 2) - mean_w(r, n / 2)) / 2;
}

static void take_plain(struct watts_mean *m, const struct watts_reading *r, size_t n,
	const struct watts_meter *meter) {
	m->mean_w = mean_w(r, n);
	m->standard_w =
		hypot(hypot(scatter_w(r, n, m->mean_w), drift_w(r, n)), quantum_standard_w(meter));
}

/* --- figures ------------------------------------------------------------------------------------
 */

struct watts_mean watts_mean_of(
	const struct watts_reading *r, size_t n, const struct watts_meter *meter) {
	struct watts_mean m = {(uint32_t)n, NAN, NAN, NAN, NAN};
	if (n < RUN_MIN_FRESH_READINGS || r[n - 1].at_ms <= r[0].at_ms)
		return m;
	m.min_w = m.max_w = watts(r[0].mw);
	for (size_t i = 1; i < n; i++) {
		m.min_w = fmin(m.min_w, watts(r[i].mw));
		m.max_w = fmax(m.max_w, watts(r[i].mw));
	}
	if (meter->lag_ms == NONE)
		take_plain(&m, r, n, meter);
	else
		take_lagged(&m, r, n, meter);
	return m;
}

struct watts_difference watts_above(const struct watts_mean *load, const struct baseline *base,
	const struct watts_meter *meter, unsigned drives) {
	if (!base->known || !isfinite(load->mean_w))
		return (struct watts_difference){NAN, NAN, NAN, NAN};
	double base_standard_w = base->uncertainty_mw == NONE ? quantum_standard_w(meter)
							      : watts(base->uncertainty_mw) / 2;
	double above_w = load->mean_w - watts(base->power_mw);
	return (struct watts_difference){
		.above_w = above_w,
		.per_drive_w = above_w / drives,
		.uncertainty_w = 2 * hypot(load->standard_w, base_standard_w),
		.bound_w = meter->resolution_mw == NONE ? NAN : watts(meter->resolution_mw),
	};
}
