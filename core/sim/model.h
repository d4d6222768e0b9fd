/*
 * A drive model and its host, as data: what core/sim/models/<name>.json or a user's own file
 * says. The physics is in doubles of SI units; milliwatts begin where figures leave the simulator.
 */
#ifndef DRIVEWATT_CORE_SIM_MODEL_H
#define DRIVEWATT_CORE_SIM_MODEL_H

#include <stdbool.h>

#include "model/power.h"

#define SIM_MODEL_MAX_BYTES 65536
#define SIM_MODEL_MAX_STATES 8

enum sim_direction { SIM_READ, SIM_WRITE, SIM_DIRECTIONS };

struct sim_service {
	double bytes_per_s;
	double iops;       /* ceiling for small blocks */
	double latency_us; /* of one request on an idle drive, beside its service time */
	double j_per_gb;   /* above idle; carries the host's share unless the drive has a meter */
};

struct sim_state {
	double max_w, idle_w;
	double active_w; /* NaN: not reported */
	double entry_latency_us, exit_latency_us;
	struct sim_service service[SIM_DIRECTIONS];
};

struct sim_thermal {
	double ambient_c, c_per_w, time_constant_s, warning_c, critical_c;
};

struct sim_meter_model {
	double quantum_w; /* 0: no rounding */
	double lag_s, noise_w, period_ms;
};

struct sim_host_model {
	double base_w;             /* without drives */
	double switch_bytes_per_s; /* shared by all drives; NaN: no limit */
	struct sim_meter_model meter;
};

struct sim_identity {
	char model[41], firmware[9];
	double vendor_id;
};

struct sim_model {
	char name[65];
	char source[2048]; /* where the figures come from */
	struct sim_identity identity;
	double capacity_bytes, lba_bytes;
	double scale; /* the nominal one: real bytes served × scale = simulated bytes */
	bool drive_meter;
	unsigned state_count;
	struct sim_state states[SIM_MODEL_MAX_STATES];
	struct sim_thermal thermal;
	struct sim_host_model host;
};

/* RC_INVALID names the field, RC_TOO_LARGE. */
enum rc must_check sim_model_parse(
	const char *json, size_t len, struct sim_model *out, struct err *err);
/* A built-in one, "" the first. RC_NOT_FOUND lists the names. */
enum rc must_check sim_model_builtin(const char *name, struct sim_model *out, struct err *err);
enum rc must_check sim_model_file(const char *path, struct sim_model *out, struct err *err);

/* As the drive's Identify would show it; ranks follow from the states' throughput and latency. */
void sim_model_power_table(const struct sim_model *m, struct power_table *out);
/* What the host draws with so many drives, all in one state, at these rates in all. */
double sim_model_system_w(const struct sim_model *m, unsigned drives, unsigned state,
	double read_bytes_per_s, double write_bytes_per_s);

#endif
