/*
 * The simulated drives as targets of the registry: one thread carries out their admin commands,
 * each drive's one after another, at the time at which a drive would be done.
 */
#ifndef DRIVEWATT_CORE_SIM_TARGET_H
#define DRIVEWATT_CORE_SIM_TARGET_H

#include "core/drive.h"
#include "core/sim/pace.h"

/* The registry sends no more to a drive at once. */
#define SIM_TARGET_COMMANDS (2 * DRIVE_MAX_COMMANDS)

struct sim_target;

struct sim_target_config {
	const struct sim_model *model; /* copied */
	unsigned drives;
	unsigned scale;
	const char *instance_id; /* serials derive from it; borrowed during the call */
};

struct sim_target *sim_target_new(
	const struct sim_target_config *config, struct sim_pace *pace, struct err *err);
/* Answers what is still waiting with RC_UNAVAILABLE. NULL is fine. */
void sim_target_free(struct sim_target *t);
struct drive_source sim_target_source(struct sim_target *t);

/* A number that text always gives, for serials and seeds (FNV-1a). */
uint64_t sim_hash(const char *text, uint64_t basis);
#define SIM_HASH_BASIS UINT64_C(0xcbf29ce484222325)

#endif
