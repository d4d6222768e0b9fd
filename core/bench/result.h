/* The result of a run and its per-second series, as JSON. */
#ifndef DRIVEWATT_CORE_BENCH_RESULT_H
#define DRIVEWATT_CORE_BENCH_RESULT_H

#include "core/bench/environment.h"
#include "core/bench/measure.h"

/* Where the time and the rates come from. */
enum result_source {
	RESULT_FROM_LOGS,  /* fio's per-second logs */
	RESULT_FROM_JOBS,  /* the sum of what the jobs say, each over its own time */
	RESULT_FROM_CLOCK, /* an idle run */
};

struct result {
	const struct run_job *job;
	const struct fio_report *report; /* NULL for an idle run */
	struct fio_exit exit;
	bool partial;
	int64_t late;       /* answers of simulated drives that came later than their model says */
	int64_t held_up_ms; /* the longest that fio was */
	enum result_source source;
	struct fio_window shared;
	struct fio_rates (*rates)[FIO_DIRECTIONS]; /* of each drive, real ones: unscaled */
	struct fio_series series;                  /* likewise; no points but from logs */
	struct measure measure;
	struct environment environment;
};

/* Both fill out, whose status tells whether it was large enough. */
void result_write(const struct result *r, struct buf *out);
void result_series_write(const struct result *r, struct buf *out);

#endif
