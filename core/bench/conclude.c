/* From what fio and the meter left behind to a verdict and its documents. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/parse.h"
#include "core/bench/result.h"
#include "core/bench/run_impl.h"

#define STDERR_MAX 65536

static void write_documents(struct run_job *j, const struct result *r, struct run_end *end) {
	struct err err;
	result_write(r, &end->result);
	result_series_write(r, &end->series);
	if (buf_status(&end->result, &err)) {
		log_err(LOG_LEVEL_ERROR, BENCH_SUBSYSTEM, j->id, &err);
		buf_release(&end->result);
	}
	if (buf_status(&end->series, &err)) {
		log_err(LOG_LEVEL_ERROR, BENCH_SUBSYSTEM, j->id, &err);
		buf_release(&end->series);
	}
}

static void finish_result(struct bench *b, struct run_job *j, struct result *r,
	const struct fio_window *whole, struct run_end *end) {
	environment_read(&r->environment);
	measure_run(b, j, &r->shared, whole, &r->measure);
	write_documents(j, r, end);
}

static void release_result(struct result *r) {
	measure_release(&r->measure);
	fio_series_release(&r->series);
}

static void rates_from_jobs(struct result *r, const struct fio_report *report) {
	int64_t shortest_ms = INT64_MAX;
	for (unsigned i = 0; i < report->drive_count; i++) {
		const struct fio_drive *d = &report->drives[i];
		shortest_ms = d->runtime_ms < shortest_ms ? d->runtime_ms : shortest_ms;
		for (int k = 0; k < FIO_DIRECTIONS; k++)
			r->rates[i][k] =
				(struct fio_rates){d->sums[k].iops, d->sums[k].bytes_per_s};
	}
	int64_t to_ms = report->at_ms == NONE ? clock_wall_ms() : report->at_ms;
	r->source = RESULT_FROM_JOBS;
	r->shared = (struct fio_window){to_ms - shortest_ms, to_ms};
}

/* When its time is over, or we end it, fio begins nothing new but waits for what it has begun,
 * which takes long where queues are deep and drives slow. That is not the load asked for, nor is
 * what it does when a drive is gone. */
static void leave_out_rest(struct result *r, const struct fio_window *whole) {
	int64_t over_ms = whole->from_ms + (int64_t)r->job->spec.runtime_s * 1000;
	if (r->job->stopped_ms != NONE && r->job->stopped_ms < over_ms)
		over_ms = r->job->stopped_ms;
	if (r->job->exited.gone && r->job->exited.gone_ms < over_ms)
		over_ms = r->job->exited.gone_ms;
	if (over_ms > r->shared.from_ms && over_ms < r->shared.to_ms)
		r->shared.to_ms = over_ms;
}

/* The window and rates by the logs where they are whole; returns the time to show. */
static struct fio_window take_rates(struct result *r, const struct fio_report *report) {
	const struct workload *w = &r->job->spec.workload;
	struct fio_logs logs = {.dir_fd = r->job->dir_fd,
		.drives = r->job->drive_count,
		.jobs_per_drive = w->jobs,
		.block_bytes = w->block_bytes,
		.counted = report->drives};
	struct fio_window whole;
	struct err err;
	enum rc rc = fio_logs_window(&logs, &r->shared, &whole, &err);
	if (!rc)
		leave_out_rest(r, &whole);
	if (!rc)
		rc = fio_logs_rates(&logs, &r->shared, &whole, r->rates, &r->series, &err);
	r->source = RESULT_FROM_LOGS;
	r->held_up_ms = logs.held_up_ms;
	if (!rc)
		return whole;
	log_err(LOG_LEVEL_WARNING, BENCH_SUBSYSTEM, "per-second logs", &err);
	rates_from_jobs(r, report);
	return r->shared;
}

static bool has_io(const struct fio_report *r) {
	int64_t ios = 0;
	for (unsigned i = 0; i < r->drive_count; i++)
		ios += r->drives[i].sums[FIO_READ].ios + r->drives[i].sums[FIO_WRITE].ios;
	return ios > 0;
}

static void make_result(struct bench *b, struct run_job *j, const struct fio_report *report,
	const struct fio_exit *x, struct run_end *end) {
	struct fio_rates rates[RUN_MAX_DRIVES][FIO_DIRECTIONS] = {0};
	struct result r = {.job = j,
		.report = report,
		.exit = *x,
		.partial = end->state != RUN_COMPLETED,
		.late = metric_get(METRIC_SIM_LATE) - j->late_before,
		.rates = rates};
	struct fio_window whole = take_rates(&r, report);
	finish_result(b, j, &r, &whole, end);
	release_result(&r);
}

static void fail(struct run_end *end, const char *what, const struct err *err) {
	end->state = RUN_FAILED;
	snprintf(end->reason, sizeof(end->reason), "%s: %.200s", what, err->msg);
}

/* What the helper has seen explains an end better than fio does. */
static void judge(const struct run_job *j, const struct fio_report *report,
	const struct fio_exit *x, struct run_end *end) {
	const uint64_t gone = j->exited.gone;
	const unsigned more = gone ? (unsigned)__builtin_popcountll(gone) - 1 : 0;
	const struct drive *first = gone ? &j->drives[__builtin_ctzll(gone)].drive : NULL;
	end->state =
		fio_verdict(report, x, j->spec.workload.jobs, end->reason, sizeof(end->reason));
	if (gone || j->exited.abandoned)
		end->state = RUN_FAILED;
	if (gone && more)
		snprintf(end->reason, sizeof(end->reason),
			"drive %s (serial %s) and %u more went away", first->id, first->serial,
			more);
	else if (gone)
		snprintf(end->reason, sizeof(end->reason), "drive %s (serial %s) went away",
			first->id, first->serial);
	else if (j->exited.abandoned)
		str_copy(end->reason, sizeof(end->reason),
			"fio does not end: it waits in the kernel for a drive");
}

/* Reads what fio left in its directory and judges it. */
static enum rc read_report(
	struct run_job *j, struct buf *text, struct fio_report *out, struct err *err) {
	struct buf messages;
	enum rc rc = fio_read(j->dir_fd, PRIV_RUN_OUTPUT, text, err);
	if (rc && rc != RC_NOT_FOUND)
		return rc;
	rc = fio_report_parse(text, j->spec.drives, j->drive_count, out, err);
	if (rc)
		return rc;
	buf_init(&messages, STDERR_MAX);
	if (fio_read(j->dir_fd, PRIV_RUN_STDERR, &messages, NULL) == RC_OK)
		fio_report_add_messages(out, buf_str(&messages));
	buf_release(&messages);
	return RC_OK;
}

void run_conclude(struct bench *b, struct run_job *j, struct run_end *end) {
	struct fio_exit x = {j->exited.exit_code, j->exited.signal, j->exited.asked};
	struct fio_report report = {0};
	struct buf text;
	struct err err;
	buf_init(&text, DB_RUN_FIO_MAX);
	if (read_report(j, &text, &report, &err)) {
		fail(end, "fio's output", &err);
	} else {
		judge(j, &report, &x, end);
		if (report.has_document && has_io(&report))
			make_result(b, j, &report, &x, end);
		if (report.has_document)
			buf_add(&end->fio, text.data + report.document_at, report.document_len);
	}
	fio_report_release(&report);
	buf_release(&text);
}

/* --- doing nothing ---------------------------------------------------------------------------- */

struct coverage {
	const struct run_job *job;
	bool whole;
};

static bool look_at(void *arg, const struct drive *d, const char *labels unused_arg) {
	struct coverage *c = arg;
	bool found = d->state == DRIVE_GONE || d->kind == DRIVE_FILE;
	for (unsigned i = 0; i < c->job->drive_count && !found; i++)
		found = strcmp(c->job->drives[i].drive.id, d->id) == 0;
	c->whole = found;
	return c->whole;
}

static bool covers_host(struct bench *b, const struct run_job *j) {
	struct coverage c = {j, true};
	drives_each(b->drives, "", look_at, &c);
	return c.whole;
}

static bool was_alone(struct bench *b, const struct run_job *j) {
	pthread_mutex_lock(&b->lock);
	bool alone = j->alone;
	pthread_mutex_unlock(&b->lock);
	return alone;
}

/* An idle run of all drives, with no other run beside it, has measured what later runs are to be
 * compared with. */
static void keep_baseline(struct bench *b, const struct run_job *j, const struct measure *m) {
	if (m->power.reason[0] || !was_alone(b, j) || !covers_host(b, j))
		return;
	const struct baseline base = {
		.known = true,
		.source = m->power.quality == QUALITY_SIMULATED ? BASELINE_SIMULATED
								: BASELINE_MEASURED,
		.power_mw = llround(m->mean.mean_w * 1000),
		.uncertainty_mw =
			isfinite(m->mean.standard_w) ? llround(m->mean.standard_w * 2000) : NONE,
		.at_ms = clock_wall_ms(),
	};
	struct err err;
	if (hosts_set_baseline(
		    b->hosts, &actor_system, b->host_id, BASELINE_IDLE_WITH_DRIVES, &base, &err))
		log_err(LOG_LEVEL_WARNING, BENCH_SUBSYSTEM, "keeping the baseline", &err);
}

enum rc run_conclude_idle(struct bench *b, struct run_job *j, const struct fio_window *window,
	struct run_end *end, struct err *err) {
	if (window->to_ms <= window->from_ms)
		return RC_OK;
	struct fio_rates none[RUN_MAX_DRIVES][FIO_DIRECTIONS] = {0};
	struct result r = {.job = j,
		.partial = end->state != RUN_COMPLETED,
		.source = RESULT_FROM_CLOCK,
		.shared = *window,
		.rates = none};
	enum rc rc = fio_series_init(&r.series, window, FIO_LOG_PERIOD_MS, err);
	if (rc)
		return rc;
	finish_result(b, j, &r, window, end);
	if (!r.partial)
		keep_baseline(b, j, &r.measure);
	release_result(&r);
	return RC_OK;
}
