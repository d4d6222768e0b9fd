/*
 * fio's per-second logs of bandwidth: lines "epoch ms, KiB/s, direction, …", a file a job. A line
 * stands at the end of its interval and holds the mean rate over it; an interval without I/O has
 * no line; the ramp time has none, and the last interval often has none either. A long gap before a
 * line is time without I/O, or the whole of it an interval of a fio that was held up: the first,
 * where the second would come to more bytes than fio has counted. All operations are
 * of one size: that gives IOPS more finely than fio's log of them, which cuts to whole numbers.
 */
#ifndef DRIVEWATT_CORE_BENCH_FIO_LOGS_H
#define DRIVEWATT_CORE_BENCH_FIO_LOGS_H

#include <stdint.h>

#include "base/rc.h"
#include "core/bench/fio_json.h"

#define FIO_LOG_PERIOD_MS 1000 /* or a multiple, in very long runs */
#define FIO_SERIES_MAX_POINTS 14400

struct fio_logs {
	int dir_fd; /* borrowed */
	unsigned drives, jobs_per_drive;
	uint32_t block_bytes;
	const struct fio_drive *counted; /* borrowed: by drive; NULL unknown */
	int64_t period_ms;               /* found by fio_logs_window, as are: */
	bool pauses[RUN_MAX_DRIVES];     /* long gaps are time without I/O */
	int64_t held_up_ms;              /* the most by which a line came late */
};

/* The time that all jobs share: from the latest begin of a first interval to the earliest end of
 * a last one. */
struct fio_window {
	int64_t from_ms, to_ms;
};

struct fio_rates {
	double iops, bytes_per_s;
};

struct fio_point {
	struct fio_rates rates[FIO_DIRECTIONS];
};

/* All drives together, second by second, or in longer steps where a run was long. */
struct fio_series {
	int64_t from_ms, step_ms;
	size_t count;
	struct fio_point *points; /* owned */
};

/* RC_NOT_FOUND when a log is missing or has no line, RC_INVALID when the jobs share no time. */
enum rc must_check fio_logs_window(struct fio_logs *logs, struct fio_window *shared,
	struct fio_window *whole, struct err *err);
/* Each drive's mean rates over shared, drives × FIO_DIRECTIONS of them, and the series over
 * whole. */
enum rc must_check fio_logs_rates(const struct fio_logs *logs, const struct fio_window *shared,
	const struct fio_window *whole, struct fio_rates (*rates)[FIO_DIRECTIONS],
	struct fio_series *series, struct err *err);
/* Points without I/O over whole. */
enum rc must_check fio_series_init(
	struct fio_series *s, const struct fio_window *whole, int64_t period_ms, struct err *err);
void fio_series_release(struct fio_series *s);

#endif
