/*
 * A meter as servers have them: it follows the true watts with a lag, adds noise, and shows
 * multiples of its quantum. Pure but for its own state; one thread.
 */
#ifndef DRIVEWATT_CORE_SIM_METER_H
#define DRIVEWATT_CORE_SIM_METER_H

#include "core/sim/model.h"

struct sim_meter {
	struct sim_meter_model model;
	double lagged_w;
	uint64_t random; /* state of the generator, never 0 */
};

/* Settled at settled_w. The same seed gives the same noise. */
void sim_meter_init(
	struct sim_meter *m, const struct sim_meter_model *model, double settled_w, uint64_t seed);
/* dt_s of a mean of true_w pass. */
void sim_meter_advance(struct sim_meter *m, double true_w, double dt_s);
/* What it shows now. */
int64_t sim_meter_read_mw(struct sim_meter *m);

/* First-order approach to target over dt_s; at once where the time constant is 0. */
double sim_approach(double value, double target, double time_constant_s, double dt_s);

#endif
