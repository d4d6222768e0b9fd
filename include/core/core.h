/*
 * The domain, whole: what the server composes and both faces stand on. Everything hangs from
 * struct core; its members are made in the order in which they stand and ended in the reverse.
 * The parts know each other by their own constructors' arguments, never through struct core.
 */
#ifndef DRIVEWATT_CORE_CORE_H
#define DRIVEWATT_CORE_CORE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/rc.h"
#include "model/host.h"
#include "model/store.h"

struct accounts;
struct bench;
struct db;
struct drives;
struct energy;
struct events;
struct hosts;
struct httpc;
struct meters;
struct once;
struct pool;
struct power;
struct privc;
struct remote;
struct remote_config;
struct retention;
struct sim;
struct tasks;
struct timers;

#define CORE_SIM_DIR "sim"             /* below data_dir: the sockets of simulated drives */
#define CORE_REMOTE_DIR "remote-write" /* below data_dir: what remote write has yet to send */

struct core_config {
	const char *data_dir; /* made with mode 0700 if need be */
	bool observe_only;
	bool allow_destructive;
	bool allow_in_use;
	int priv_socket;                 /* taken over; -1: no helper (no local drives, no fio) */
	unsigned simulate;               /* drives to make up: 0 … SIM_MAX_DRIVES; 0 none */
	const char *simulate_model;      /* NULL or "": the first */
	const char *simulate_model_file; /* NULL: the built-in models */
	unsigned simulate_scale;         /* 0: the model's own */
	const char *secret_key_file;     /* made if need be */
	/* Ranges and defaults of what follows are those of the configuration's keys. */
	int64_t rescan_ms, reconcile_ms, health_ms; /* periods; 0 never by itself */
	int64_t meter_ms;                           /* period of BMC readings, over 0 */
	int64_t drive_timeout_ms; /* how long a request waits for a drive, over 0 */
	unsigned max_runs;        /* at once: 0 … BENCH_MAX_RUNS */
	unsigned max_queued_runs;
	unsigned login_failures; /* wrong passwords of one address before it must wait; 0: never */
	int64_t settle_ms;       /* between a state change and the load, 0 … */
	/* Where samples go besides; NULL nowhere. dir and instance are filled in. Read during
	 * core_new, its texts later too. */
	const struct remote_config *remote;
	int64_t event_days, audit_days, run_days, task_days; /* 0: kept for ever; these too: */
	int64_t sample_days, quarter_days, hour_days, other_days;
};

struct core {
	struct core_config config;
	char host_id[HOST_ID_SIZE]; /* this instance's UUID */
	int64_t started_mono_ns;
	struct db *control, *samples;
	struct timers *timers;
	struct pool *jobs; /* completions and periodic work that may touch the store */
	struct httpc *httpc;
	struct events *events;
	struct accounts *accounts;
	struct energy *energy;
	struct remote *remote; /* NULL unless asked for */
	struct once *once;
	struct hosts *hosts;
	struct privc *privc;   /* NULL without a helper */
	struct meters *meters; /* NULL without a helper, or with simulated drives */
	struct sim *sim;       /* NULL unless asked for */
	struct tasks *tasks;
	struct drives *drives;
	struct power *power;
	struct bench *bench;
	struct retention *retention; /* once started */
};

/* Opens the stores and makes all parts; nothing runs on drives yet. config is copied, its texts
 * must live as long as core. NULL: nothing is left behind. */
struct core *core_new(const struct core_config *config, struct err *err);
/* Finds the drives, brings them to their effective states, marks interrupted runs, starts
 * polling. Returns before a slow drive has answered; waits for the first scan, at most 30 s. Once,
 * in the thread of core_new; when it fails only core_free may follow. */
enum rc must_check core_start(struct core *core, struct err *err);
/* Stops runs, drives and producers, flushes and closes; who still waits is answered. NULL is fine.
 * False when that takes longer than deadline_ms (-1: waits for ever): then something is stuck, what
 * core has is still in use, and the process must end by _exit(). The store survives that as it
 * survives a kill. From one thread, once; nobody may call into core any more. */
bool must_check core_free(struct core *core, int64_t deadline_ms);

/* How the stores fare; does not wait for a writer. Any thread, as the next one. */
void core_store_status(struct core *core, struct db_status *control, struct db_status *samples);
/* What can be done with the stores. Blocks on reading them. */
void core_store_states(struct core *core, enum store_state *control, enum store_state *samples);
/* What is left for them in the file system; NONE unknown. */
int64_t core_free_bytes(const struct core *core);

#endif
