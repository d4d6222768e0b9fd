/*
 * The simulated host's side: reads the meter and hands the readings on, and says the baselines
 * that the model knows.
 */
#ifndef DRIVEWATT_CORE_SIM_HOST_H
#define DRIVEWATT_CORE_SIM_HOST_H

#include "core/energy.h"
#include "core/hosts.h"
#include "core/sim/pace.h"

struct sim_host;

struct sim_host_parts {
	const struct sim_model *model; /* copied */
	unsigned drives;
	uint64_t seed; /* of the meter's noise */
	struct sim_pace *pace;
	struct energy *energy; /* NULL: nobody demands */
	struct hosts *hosts;
	struct timers *timers;
};

struct sim_host *sim_host_new(const struct sim_host_parts *parts, struct err *err);
void sim_host_free(struct sim_host *h);

#endif
