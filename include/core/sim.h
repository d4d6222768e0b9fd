/*
 * The simulator, never unasked: drives that are NBD exports on UNIX sockets inside the daemon,
 * whose service time follows their live power state and a shared switch; and a host meter that
 * computes watts from the bytes really served, then adds lag, noise and its quantum.
 */
#ifndef DRIVEWATT_CORE_SIM_H
#define DRIVEWATT_CORE_SIM_H

#include "core/drive.h"
#include "core/energy.h"

#define SIM_MAX_DRIVES 256

struct hosts;
struct sim;

struct sim_config {
	unsigned drives;         /* 1 … SIM_MAX_DRIVES */
	const char *model;       /* name of a built-in model, "" the first */
	const char *model_file;  /* JSON file with one model, instead; NULL */
	unsigned scale;          /* 0: the model's own */
	const char *instance_id; /* serials derive from it */
	const char *socket_dir; /* made if need be, mode 0711; <drive name>.sock in it, for root and
				   us */
};

/* Serves at once, all drives in power state 0. hosts NULL: no meter and no baselines; energy NULL:
 * no demands. A baseline of the local host that is not a simulated one stays. config is copied, the
 * rest borrowed until sim_free. */
struct sim *sim_new(const struct sim_config *config, struct energy *energy, struct hosts *hosts,
	struct timers *timers, struct err *err);
/* Commands that wait are answered with RC_UNAVAILABLE, clients are cut off. NULL is fine. */
void sim_free(struct sim *s);
/* Valid until sim_free. */
struct drive_source sim_source(struct sim *s);
/* Real bytes × scale = simulated bytes; real times ÷ scale = simulated times. */
unsigned sim_scale(const struct sim *s);
/* Names of the built-in models, for --help and errors; NULL at the end. */
const char *sim_model_name(unsigned index);

#endif
