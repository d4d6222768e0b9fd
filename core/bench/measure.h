/* The host's watts during a run, from the history of its meter. */
#ifndef DRIVEWATT_CORE_BENCH_MEASURE_H
#define DRIVEWATT_CORE_BENCH_MEASURE_H

#include "core/bench/bench_impl.h"
#include "core/bench/fio_logs.h"
#include "core/bench/watts.h"

struct measure {
	struct run_power power;
	struct watts_mean mean;
	struct watts_meter meter;
	struct baseline baselines[BASELINE_KIND_COUNT_];
	struct watts_difference above[BASELINE_KIND_COUNT_];
	int baseline;                   /* enum baseline_kind of the one in power, -1 none */
	char drive_reason[96];          /* why power.drive_w is unknown */
	size_t reading_count;           /* over the whole run */
	struct watts_reading *readings; /* owned */
};

/* Figures are of shared, readings are of whole. A missing meter is no error: reasons say so. */
void measure_run(struct bench *b, const struct run_job *j, const struct fio_window *shared,
	const struct fio_window *whole, struct measure *out);
void measure_release(struct measure *m);

#endif
