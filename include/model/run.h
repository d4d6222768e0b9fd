/* A benchmark run: what was asked, where it is, what it gave. */
#ifndef DRIVEWATT_MODEL_RUN_H
#define DRIVEWATT_MODEL_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include "model/drive.h"
#include "model/workload.h"

#define RUN_ID_SIZE 37
#define RUN_MAX_DRIVES 64
#define RUN_MAX_WARNINGS 16

enum run_state {
	RUN_QUEUED,
	RUN_PREPARING, /* interlock, lease, power states, settling */
	RUN_RUNNING,
	RUN_COMPLETED,
	RUN_FAILED,
	RUN_CANCELLED,
	RUN_INTERRUPTED, /* the daemon ended while it ran */
	RUN_STATE_COUNT_
};
const char *run_state_name(enum run_state s);
bool run_state_from_name(const char *name, enum run_state *out);
bool run_state_is_final(enum run_state s);
/* The one table of allowed moves. */
bool run_state_may_move(enum run_state from, enum run_state to);

struct run_spec {
	uint16_t drive_count;
	char drives[RUN_MAX_DRIVES][DRIVE_ID_SIZE];
	struct workload workload;
	int8_t power_state;       /* -1: as the drives are */
	uint32_t runtime_s;       /* 1 … 86400 */
	uint32_t ramp_s;          /* 0 … 3600 */
	uint64_t max_write_bytes; /* per drive; 0 no limit of the caller's own */
	bool override_signature;  /* write although a signature was found */
	uint16_t confirm_count;   /* serials confirmed for destruction */
	char confirm_destructive[RUN_MAX_DRIVES][21];
	uint16_t confirm_in_use_count;
	char confirm_in_use[RUN_MAX_DRIVES][21];
	char labels[512]; /* a JSON object of strings, "" none */
};

/* The row of a list, and what progress shows. The result is JSON that core/bench made. */
struct run {
	char id[RUN_ID_SIZE];
	enum run_state state;
	char owner[CLAIM_OWNER_SIZE];
	int64_t created_ms, started_ms, ended_ms;    /* NONE until then */
	double progress;                             /* 0–1 */
	int64_t read_bytes_per_s, write_bytes_per_s; /* live; NONE when unknown */
	char reason[256]; /* why failed, cancelled or interrupted; "" else */
	bool unrecorded;  /* over, but in memory alone: the store could not take it yet */
	struct run_spec spec;
};

/* Of a latency histogram. Microseconds as doubles, as in run_power. */
struct run_latency {
	int64_t count;
	double mean_us, p50_us, p95_us, p99_us, p99_9_us, max_us; /* NaN when count is 0 */
};

/* Watts as doubles, NaN unknown: an exception to milliwatts and NONE, since these are statistics of
 * readings, with fractions of a milliwatt, that go through further arithmetic. */
struct run_power {
	double system_mean_w, system_min_w, system_max_w; /* NaN unknown */
	uint32_t samples;                                 /* fresh readings inside the window */
	char reason[96];                                  /* why unknown; "" when known */
	uint8_t quality;                                  /* enum quality of the readings */
	char source[32];
	char baseline_kind[24];   /* "idle_with_drives", "no_drives", "" none */
	char baseline_source[16]; /* "measured", "declared", "simulated" */
	double baseline_w;        /* NaN none */
	int64_t baseline_ms;
	double above_baseline_w, per_drive_w;
	double uncertainty_w; /* of above_baseline_w, k = 2 */
	double bound_w;       /* hard bound from the meter's resolution */
	double resolution_w;  /* NaN: fewer than 8 distinct readings */
	double drive_w;       /* sum of the drives' own meters; NaN */
};

/* JSON texts kept beside a run. */
enum run_document { RUN_DOCUMENT_RESULT, RUN_DOCUMENT_SERIES, RUN_DOCUMENT_FIO };

#define RUN_MIN_FRESH_READINGS 8

#endif
