#include "core/bench/fio_logs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/param.h>

#include "model/quality.h"

#define LINE_SIZE 128
#define MAX_MS (INT64_C(1) << 52)

#define UNIT 1024 /* of a value: KiB/s */
#define COUNT_TOLERANCE 1.01

struct entry {
	int64_t from_ms, to_ms; /* the interval */
	double value;
	enum fio_direction direction;
};

/* Reads one log line by line and restores the intervals. */
struct reader {
	FILE *file;
	int64_t period_ms;
	bool pauses;
	int64_t last_ms[FIO_DIRECTIONS]; /* end of the interval before; NONE */
};

static enum rc reader_open(
	struct reader *r, const struct fio_logs *logs, unsigned job, struct err *err) {
	char name[32];
	snprintf(name, sizeof(name), "bw_bw.%u.log", job + 1);
	*r = (struct reader){.period_ms = logs->period_ms,
		.pauses = logs->pauses[job / logs->jobs_per_drive],
		.last_ms = {NONE, NONE}};
	int fd = openat(logs->dir_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return err_errno(err, errno, name);
	r->file = fdopen(fd, "r");
	if (!r->file) {
		close(fd);
		return err_set(err, RC_NOMEM, "out of memory");
	}
	return RC_OK;
}

static void reader_close(struct reader *r) {
	if (r->file)
		fclose(r->file);
}

static bool parse_line(const char *line, struct entry *out) {
	char *end;
	out->to_ms = strtoll(line, &end, 10);
	if (end == line || *end != ',' || out->to_ms < FIO_LOG_PERIOD_MS || out->to_ms > MAX_MS)
		return false;
	const char *value = end + 1;
	out->value = strtod(value, &end);
	if (end == value || *end != ',' || !(out->value >= 0) || out->value > 1e15)
		return false;
	long direction = strtol(end + 1, NULL, 10);
	out->direction = (enum fio_direction)direction;
	return direction >= 0 && direction < FIO_DIRECTIONS;
}

/* An interval begins where the one before it ended, unless one without I/O must lie between. */
static int64_t interval_start(const struct reader *r, const struct entry *e) {
	int64_t last_ms = r->last_ms[e->direction];
	int64_t since = last_ms == NONE ? 0 : e->to_ms - last_ms;
	bool adjoins = since > 0 && (since <= r->period_ms * 3 / 2 || !r->pauses);
	return adjoins ? last_ms : e->to_ms - r->period_ms;
}

static bool reader_next(struct reader *r, struct entry *out) {
	char line[LINE_SIZE];
	while (fgets(line, sizeof(line), r->file)) {
		if (!parse_line(line, out))
			continue;
		out->from_ms = interval_start(r, out);
		r->last_ms[out->direction] = out->to_ms;
		return true;
	}
	return false;
}

/* --- the window ------------------------------------------------------------------------------ */

/* Ends of the first and last interval of a job, and the shortest time between two. */
struct span {
	int64_t first_ms, last_ms, gap_ms;
};

static enum rc log_span(
	const struct fio_logs *logs, unsigned job, struct span *out, struct err *err) {
	struct reader r;
	enum rc rc = reader_open(&r, logs, job, err);
	if (rc)
		return rc;
	*out = (struct span){INT64_MAX, INT64_MIN, INT64_MAX};
	int64_t before_ms[FIO_DIRECTIONS] = {INT64_MIN / 2, INT64_MIN / 2};
	struct entry e;
	while (reader_next(&r, &e)) {
		out->first_ms = MIN(out->first_ms, e.to_ms);
		out->last_ms = MAX(out->last_ms, e.to_ms);
		if (e.to_ms > before_ms[e.direction])
			out->gap_ms = MIN(out->gap_ms, e.to_ms - before_ms[e.direction]);
		before_ms[e.direction] = e.to_ms;
	}
	reader_close(&r);
	if (out->first_ms == INT64_MAX)
		return err_set(err, RC_NOT_FOUND, "job %u logged nothing", job + 1);
	return RC_OK;
}

/* Whole seconds, since the lines come a few milliseconds early or late. */
static int64_t period_of(int64_t gap_ms) {
	int64_t seconds = (gap_ms + FIO_LOG_PERIOD_MS / 2) / FIO_LOG_PERIOD_MS;
	return seconds >= 1 && seconds <= 3600 ? seconds * FIO_LOG_PERIOD_MS : FIO_LOG_PERIOD_MS;
}

/* What a job's log comes to, and by how much its latest line came late, when gaps are no pauses. */
struct sum {
	double bytes;
	int64_t late_ms;
};

static enum rc add_up(const struct fio_logs *logs, unsigned job, struct sum *sum, struct err *err) {
	struct reader r;
	enum rc rc = reader_open(&r, logs, job, err);
	if (rc)
		return rc;
	struct entry e;
	while (reader_next(&r, &e)) {
		int64_t length_ms = e.to_ms - e.from_ms;
		sum->bytes += e.value * UNIT * (double)length_ms / 1000;
		sum->late_ms = MAX(sum->late_ms, length_ms - logs->period_ms);
	}
	reader_close(&r);
	return RC_OK;
}

static double counted_bytes(const struct fio_logs *logs, unsigned drive) {
	const struct fio_sum *sums = logs->counted[drive].sums;
	return (double)sums[FIO_READ].bytes + (double)sums[FIO_WRITE].bytes;
}

static enum rc find_pauses(struct fio_logs *logs, struct err *err) {
	for (unsigned i = 0; i < logs->drives && logs->counted; i++) {
		struct sum sum = {0};
		for (unsigned k = 0; k < logs->jobs_per_drive; k++) {
			enum rc rc = add_up(logs, i * logs->jobs_per_drive + k, &sum, err);
			if (rc)
				return rc;
		}
		logs->pauses[i] = sum.bytes > COUNT_TOLERANCE * counted_bytes(logs, i);
		if (!logs->pauses[i])
			logs->held_up_ms = MAX(logs->held_up_ms, sum.late_ms);
	}
	return RC_OK;
}

enum rc fio_logs_window(struct fio_logs *logs, struct fio_window *shared, struct fio_window *whole,
	struct err *err) {
	struct span latest = {INT64_MIN, INT64_MAX, INT64_MAX};
	struct span widest = {INT64_MAX, INT64_MIN, INT64_MAX};
	for (unsigned job = 0; job < logs->drives * logs->jobs_per_drive; job++) {
		struct span s;
		enum rc rc = log_span(logs, job, &s, err);
		if (rc)
			return rc;
		latest.first_ms = MAX(latest.first_ms, s.first_ms);
		latest.last_ms = MIN(latest.last_ms, s.last_ms);
		latest.gap_ms = MIN(latest.gap_ms, s.gap_ms);
		widest.first_ms = MIN(widest.first_ms, s.first_ms);
		widest.last_ms = MAX(widest.last_ms, s.last_ms);
	}
	logs->period_ms = period_of(latest.gap_ms);
	logs->held_up_ms = 0;
	memset(logs->pauses, !logs->counted, sizeof(logs->pauses));
	enum rc rc = find_pauses(logs, err);
	if (rc)
		return rc;
	*shared = (struct fio_window){latest.first_ms - logs->period_ms, latest.last_ms};
	*whole = (struct fio_window){widest.first_ms - logs->period_ms, widest.last_ms};
	if (shared->from_ms >= shared->to_ms)
		return err_set(err, RC_INVALID, "the jobs share no full second");
	return RC_OK;
}

/* --- rates ----------------------------------------------------------------------------------- */

static double overlap_ms(const struct entry *e, int64_t from_ms, int64_t to_ms) {
	int64_t from = e->from_ms > from_ms ? e->from_ms : from_ms;
	int64_t to = e->to_ms < to_ms ? e->to_ms : to_ms;
	return to > from ? (double)(to - from) : 0;
}

static void add_rate(const struct fio_logs *logs, struct fio_rates *r, double bytes_per_s) {
	r->bytes_per_s += bytes_per_s;
	r->iops += bytes_per_s / logs->block_bytes;
}

static void add_to_series(
	const struct fio_logs *logs, struct fio_series *s, const struct entry *e) {
	int64_t first = (e->from_ms - s->from_ms) / s->step_ms;
	for (int64_t i = first < 0 ? 0 : first; i < (int64_t)s->count; i++) {
		int64_t from = s->from_ms + i * s->step_ms;
		if (from >= e->to_ms)
			break;
		add_rate(logs, &s->points[i].rates[e->direction],
			e->value * UNIT * overlap_ms(e, from, from + s->step_ms) /
				(double)s->step_ms);
	}
}

static enum rc add_log(const struct fio_logs *logs, unsigned job, const struct fio_window *shared,
	struct fio_rates *rates, struct fio_series *series, struct err *err) {
	struct reader r;
	enum rc rc = reader_open(&r, logs, job, err);
	if (rc)
		return rc;
	struct entry e;
	double length_ms = (double)(shared->to_ms - shared->from_ms);
	while (reader_next(&r, &e)) {
		add_rate(logs, &rates[e.direction],
			e.value * UNIT * overlap_ms(&e, shared->from_ms, shared->to_ms) /
				length_ms);
		add_to_series(logs, series, &e);
	}
	reader_close(&r);
	return RC_OK;
}

enum rc fio_series_init(
	struct fio_series *s, const struct fio_window *whole, int64_t period_ms, struct err *err) {
	/* The jobs end a few milliseconds apart: no step for that. */
	int64_t periods = MAX(1, (whole->to_ms - whole->from_ms + period_ms / 2) / period_ms);
	int64_t together = (periods + FIO_SERIES_MAX_POINTS - 1) / FIO_SERIES_MAX_POINTS;
	*s = (struct fio_series){.from_ms = whole->from_ms, .step_ms = together * period_ms};
	s->count = (size_t)((periods + together - 1) / together);
	s->points = calloc(s->count, sizeof(s->points[0]));
	return s->points ? RC_OK : err_set(err, RC_NOMEM, "out of memory");
}

enum rc fio_logs_rates(const struct fio_logs *logs, const struct fio_window *shared,
	const struct fio_window *whole, struct fio_rates (*rates)[FIO_DIRECTIONS],
	struct fio_series *series, struct err *err) {
	enum rc rc = fio_series_init(series, whole, logs->period_ms, err);
	memset(rates, 0, logs->drives * sizeof(rates[0]));
	for (unsigned job = 0; !rc && job < logs->drives * logs->jobs_per_drive; job++)
		rc = add_log(logs, job, shared, rates[job / logs->jobs_per_drive], series, err);
	if (rc)
		fio_series_release(series);
	return rc;
}

void fio_series_release(struct fio_series *s) {
	free(s->points);
	*s = (struct fio_series){0};
}
