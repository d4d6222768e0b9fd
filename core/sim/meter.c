#include "core/sim/meter.h"

#include <math.h>

double sim_approach(double value, double target, double time_constant_s, double dt_s) {
	if (time_constant_s <= 0)
		return target;
	return target + (value - target) * exp(-dt_s / time_constant_s);
}

void sim_meter_init(
	struct sim_meter *m, const struct sim_meter_model *model, double settled_w, uint64_t seed) {
	*m = (struct sim_meter){.model = *model, .lagged_w = settled_w, .random = seed ? seed : 1};
}

void sim_meter_advance(struct sim_meter *m, double true_w, double dt_s) {
	m->lagged_w = sim_approach(m->lagged_w, true_w, m->model.lag_s, dt_s);
}

/* xorshift64*; in (0, 1]. */
static double uniform(struct sim_meter *m) {
	m->random ^= m->random >> 12;
	m->random ^= m->random << 25;
	m->random ^= m->random >> 27;
	const uint64_t v = m->random * UINT64_C(0x2545f4914f6cdd1d);
	return ((double)(v >> 11) + 1) / 0x1p53;
}

/* Standard normal, by Box and Muller. */
static double normal(struct sim_meter *m) {
	const double radius = sqrt(-2 * log(uniform(m)));
	return radius * cos(2 * M_PI * uniform(m));
}

int64_t sim_meter_read_mw(struct sim_meter *m) {
	double w = m->lagged_w + m->model.noise_w * normal(m);
	if (m->model.quantum_w > 0)
		w = round(w / m->model.quantum_w) * m->model.quantum_w;
	return llround(fmax(w, 0) * 1000);
}
