#include "core/bench/result.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/jsonw.h"
#include "base/parse.h"

#define HELD_UP_MS 200 /* worth a word */

static double scale_of(const struct result *r) {
	return r->job->drives[0].scale;
}

/* --- throughput and latency ------------------------------------------------------------------- */

static const char *const direction_names[FIO_DIRECTIONS] = {
	[FIO_READ] = "read", [FIO_WRITE] = "write"};

static bool is_gone(const struct result *r, unsigned drive) {
	return r->job->exited.gone >> drive & 1;
}

static void write_latency(
	struct jsonw *w, const struct histogram *h, double scale, const char *none) {
	struct run_latency l;
	histogram_latency(h, scale, &l);
	jsonw_object(w, "latency_us");
	jsonw_double(w, "mean", l.mean_us);
	jsonw_double(w, "p50", l.p50_us);
	jsonw_double(w, "p95", l.p95_us);
	jsonw_double(w, "p99", l.p99_us);
	jsonw_double(w, "p99_9", l.p99_9_us);
	jsonw_double(w, "max", l.max_us);
	if (l.count == 0)
		jsonw_str(w, "reason", none);
	jsonw_object_end(w);
}

/* What the rates come to in the window. */
static int64_t amount(const struct result *r, double rate) {
	const double shared_s = (double)(r->shared.to_ms - r->shared.from_ms) / 1000;
	return llround(fmin(rate * shared_s, 9e18));
}

static void write_direction(struct jsonw *w, const char *key, const struct result *r,
	const struct fio_rates *rates, const struct histogram *latency, const char *none) {
	const double scale = scale_of(r);
	jsonw_object(w, key);
	jsonw_double(w, "iops", rates->iops * scale);
	jsonw_double(w, "bytes_per_s", rates->bytes_per_s * scale);
	jsonw_int(w, "bytes", amount(r, rates->bytes_per_s * scale));
	jsonw_int(w, "ios", amount(r, rates->iops * scale));
	write_latency(w, latency, scale, none);
	jsonw_object_end(w);
}

static const char no_operations[] = "there were no such operations";
static const struct histogram no_latency;

/* Of a drive that went away fio counts the empty reads that it takes for good ones. */
static const struct histogram *latency_of(const struct result *r, unsigned drive, int direction) {
	return r->report && !is_gone(r, drive) ? &r->report->drives[drive].sums[direction].latency
					       : &no_latency;
}

static struct fio_rates total_rates(const struct result *r, int direction) {
	struct fio_rates total = {0, 0};
	for (unsigned i = 0; i < r->job->drive_count; i++) {
		total.iops += r->rates[i][direction].iops;
		total.bytes_per_s += r->rates[i][direction].bytes_per_s;
	}
	return total;
}

static void write_total_direction(struct jsonw *w, const struct result *r, int direction) {
	auto_free struct histogram *latency = calloc(1, sizeof(*latency));
	if (!latency) {
		w->out->failed = RC_NOMEM;
		return;
	}
	for (unsigned i = 0; i < r->job->drive_count; i++)
		histogram_merge(latency, latency_of(r, i, direction));
	struct fio_rates rates = total_rates(r, direction);
	write_direction(w, direction_names[direction], r, &rates, latency, no_operations);
}

static void write_total(struct jsonw *w, const struct result *r) {
	jsonw_object(w, "total");
	for (int d = 0; d < FIO_DIRECTIONS; d++)
		write_total_direction(w, r, d);
	jsonw_object_end(w);
}

static void write_drive(struct jsonw *w, const struct result *r, unsigned i) {
	const struct drive *d = &r->job->drives[i].drive;
	jsonw_object(w, NULL);
	jsonw_str(w, "drive", d->id);
	jsonw_str(w, "model", d->model);
	jsonw_str(w, "serial", d->serial);
	if (r->report) {
		jsonw_milli(w, "runtime_s", r->report->drives[i].runtime_ms);
		jsonw_int(w, "error", r->report->drives[i].error);
	}
	jsonw_time(w, "gone_at", is_gone(r, i) ? r->job->exited.gone_ms : NONE);
	for (int k = 0; k < FIO_DIRECTIONS; k++)
		write_direction(w, direction_names[k], r, &r->rates[i][k], latency_of(r, i, k),
			is_gone(r, i) ? "the drive went away" : no_operations);
	jsonw_object_end(w);
}

static void write_drives(struct jsonw *w, const struct result *r) {
	jsonw_array(w, "drives");
	for (unsigned i = 0; i < r->job->drive_count; i++)
		write_drive(w, r, i);
	jsonw_array_end(w);
}

/* --- power ------------------------------------------------------------------------------------ */

/* Why a figure about the power above the baseline is missing: NULL when it is not. */
static const char *above_reason(const struct measure *m) {
	if (m->power.reason[0])
		return m->power.reason;
	return m->baseline < 0 ? "no baseline of the host is known" : NULL;
}

static const char *uncertainty_reason(const struct measure *m) {
	const char *reason = above_reason(m);
	if (reason || isfinite(m->power.uncertainty_w))
		return reason;
	return "the meter's resolution is unknown: it has not shown enough distinct readings yet";
}

static const char *resolution_reason(const struct measure *m) {
	return isfinite(m->power.resolution_w)
		? NULL
		: "the meter has not shown enough distinct readings yet";
}

static const char *bound_reason(const struct measure *m) {
	const char *reason = above_reason(m);
	return reason ? reason : resolution_reason(m);
}

static void write_system(struct jsonw *w, const struct run_power *p) {
	if (p->reason[0]) {
		jsonw_null(w, "system_w");
		return;
	}
	jsonw_object(w, "system_w");
	jsonw_double(w, "mean", p->system_mean_w);
	jsonw_double(w, "min", p->system_min_w);
	jsonw_double(w, "max", p->system_max_w);
	jsonw_uint(w, "samples", p->samples);
	jsonw_object_end(w);
}

static void write_base(struct jsonw *w, const char *key, const struct measure *m, int kind) {
	const struct baseline *b = &m->baselines[kind];
	const struct watts_difference *d = &m->above[kind];
	jsonw_object(w, key);
	jsonw_str(w, "kind", baseline_kind_name((enum baseline_kind)kind));
	jsonw_str(w, "source", baseline_source_name((enum baseline_source)b->source));
	jsonw_milli(w, "w", b->power_mw);
	jsonw_time(w, "at", b->at_ms);
	if (!key) {
		jsonw_double(w, "above_baseline_w", d->above_w);
		jsonw_double(w, "per_drive_w", d->per_drive_w);
		jsonw_double(w, "uncertainty_w", d->uncertainty_w);
		jsonw_double(w, "bound_w", d->bound_w);
	}
	jsonw_object_end(w);
}

static void write_bases(struct jsonw *w, const struct measure *m) {
	if (m->baseline < 0)
		jsonw_null(w, "baseline");
	else
		write_base(w, "baseline", m, m->baseline);
	jsonw_array(w, "baselines");
	for (int kind = 0; kind < BASELINE_KIND_COUNT_; kind++) {
		if (m->baselines[kind].known)
			write_base(w, NULL, m, kind);
	}
	jsonw_array_end(w);
}

/* Every null has its reason under the same name; `reason` is the first of them. */
static void write_power(struct jsonw *w, const struct measure *m) {
	const struct run_power *p = &m->power;
	const char *above = above_reason(m);
	const struct {
		const char *name;
		double v;
		const char *reason;
	} figures[] = {
		{"above_baseline_w", p->above_baseline_w, above},
		{"per_drive_w", p->per_drive_w, above},
		{"uncertainty_w", p->uncertainty_w, uncertainty_reason(m)},
		{"bound_w", p->bound_w, bound_reason(m)},
		{"resolution_w", p->resolution_w, resolution_reason(m)},
		{"drive_w", p->drive_w, m->drive_reason[0] ? m->drive_reason : NULL},
	};
	const char *first = p->reason[0] ? p->reason : NULL;

	jsonw_object(w, "power");
	write_system(w, p);
	write_bases(w, m);
	for (size_t i = 0; i < array_len(figures); i++)
		jsonw_double(w, figures[i].name, figures[i].v);
	jsonw_str(w, "quality", p->source[0] ? quality_name((enum quality)p->quality) : NULL);
	jsonw_str(w, "source", p->source[0] ? p->source : NULL);
	jsonw_object(w, "reasons");
	if (first)
		jsonw_str(w, "system_w", first);
	if (m->baseline < 0)
		jsonw_str(w, "baseline", "no baseline of the host is known");
	for (size_t i = 0; i < array_len(figures); i++) {
		if (isfinite(figures[i].v))
			continue;
		first = first ? first : figures[i].reason;
		jsonw_str(w, figures[i].name, figures[i].reason);
	}
	jsonw_object_end(w);
	jsonw_str(w, "reason", first);
	jsonw_object_end(w);
}

/* --- work per watt ------------------------------------------------------------------------------
 */

static void write_scope(struct jsonw *w, const char *scope, const struct fio_rates *work,
	double watts, const char *reason) {
	bool known = !reason && watts > 0;
	bool works = known && work->iops > 0 && work->bytes_per_s > 0;
	if (!reason && !known)
		reason = "the power is not above zero";
	else if (known && !works)
		reason = "there was no I/O";
	jsonw_object(w, scope);
	jsonw_double(w, "iops_per_w", works ? work->iops / watts : NAN);
	jsonw_double(w, "bytes_per_j", works ? work->bytes_per_s / watts : NAN);
	jsonw_double(w, "j_per_gb", works ? watts * 1e9 / work->bytes_per_s : NAN);
	jsonw_double(w, "j_per_io", works ? watts / work->iops : NAN);
	if (reason)
		jsonw_str(w, "reason", reason);
	jsonw_object_end(w);
}

/* A difference that its own uncertainty covers is no finding to divide by. */
static const char *above_efficiency_reason(const struct measure *m) {
	const char *reason = above_reason(m);
	if (reason)
		return reason;
	return m->power.above_baseline_w <= m->power.uncertainty_w
		? "the power above the baseline is within its uncertainty"
		: NULL;
}

static void write_efficiency(struct jsonw *w, const struct result *r) {
	const struct measure *m = &r->measure;
	struct fio_rates work = {0, 0};
	for (int d = 0; d < FIO_DIRECTIONS; d++) {
		struct fio_rates one = total_rates(r, d);
		work.iops += one.iops * scale_of(r);
		work.bytes_per_s += one.bytes_per_s * scale_of(r);
	}
	jsonw_object(w, "efficiency");
	write_scope(w, "system", &work, m->power.system_mean_w,
		m->power.reason[0] ? m->power.reason : NULL);
	write_scope(
		w, "above_baseline", &work, m->power.above_baseline_w, above_efficiency_reason(m));
	write_scope(
		w, "drive", &work, m->power.drive_w, m->drive_reason[0] ? m->drive_reason : NULL);
	jsonw_object_end(w);
}

/* --- circumstances ------------------------------------------------------------------------------
 */

static const char *const sources[] = {
	[RESULT_FROM_LOGS] = "logs", [RESULT_FROM_JOBS] = "jobs", [RESULT_FROM_CLOCK] = "clock"};

static void write_window(struct jsonw *w, const struct result *r) {
	jsonw_object(w, "window");
	jsonw_time(w, "from", r->shared.from_ms);
	jsonw_time(w, "to", r->shared.to_ms);
	jsonw_milli(w, "shared_s", r->shared.to_ms - r->shared.from_ms);
	jsonw_str(w, "source", sources[r->source]);
	jsonw_object_end(w);
}

static void write_known(struct jsonw *w, const char *key, const char *text) {
	jsonw_str(w, key, text[0] ? text : NULL);
}

static void write_environment(struct jsonw *w, const struct result *r) {
	bool simulated = r->job->drives[0].drive.kind == DRIVE_SIMULATED;
	jsonw_object(w, "environment");
	write_known(w, "cpu", r->environment.cpu);
	write_known(w, "kernel", r->environment.kernel);
	write_known(w, "governor", r->environment.governor);
	jsonw_null(w, "bios_profile");
	write_known(w, "fio", r->report ? r->report->version : "");
	write_known(w, "engine", !r->report ? "" : simulated ? "nbd" : "libaio");
	jsonw_array(w, "drives");
	for (unsigned i = 0; i < r->job->drive_count; i++) {
		const struct drive *d = &r->job->drives[i].drive;
		jsonw_object(w, NULL);
		jsonw_str(w, "drive", d->id);
		write_known(w, "firmware", d->firmware);
		write_known(w, "transport", d->transport);
		write_known(w, "address", d->address);
		jsonw_null(w, "pcie_link");
		jsonw_object_end(w);
	}
	jsonw_array_end(w);
	jsonw_object(w, "reasons");
	jsonw_str(w, "bios_profile", "the firmware's settings are not read");
	jsonw_str(w, "pcie_link", "the link is not read");
	if (!r->environment.governor[0])
		jsonw_str(w, "governor", "the kernel shows no frequency governor");
	jsonw_object_end(w);
	jsonw_object_end(w);
}

static void write_own_warnings(struct jsonw *w, const struct result *r) {
	if (r->source == RESULT_FROM_JOBS)
		jsonw_str(
			w, NULL, "per-second logs are missing: rates are the jobs' own, added up");
	if (!r->report)
		return;
	if (r->job->exited.gone)
		jsonw_str(w, NULL,
			"a drive went away: the rates are those of the time in which all were "
			"there, without the latency of those that went");
	if (r->late > 0)
		jsonw_strf(w, NULL,
			"the simulator could not keep up: %lld answers were late, so that figures "
			"may show this machine rather than the model",
			(long long)r->late);
	if (r->held_up_ms >= HELD_UP_MS)
		jsonw_strf(w, NULL,
			"fio was held up by this machine, for %.1f s at the most: what was done "
			"meanwhile counts later",
			(double)r->held_up_ms / 1000);
	if (r->report->histograms_cut)
		jsonw_str(w, NULL, "too many latency bins: the percentiles leave some out");
	if (r->report->message_count > RUN_MAX_WARNINGS)
		jsonw_strf(w, NULL, "%u more messages of fio",
			r->report->message_count - RUN_MAX_WARNINGS);
}

static void write_fio(struct jsonw *w, const struct result *r) {
	jsonw_object(w, "fio");
	write_known(w, "version", r->report ? r->report->version : "");
	if (r->report)
		jsonw_int(w, "exit_code", r->exit.code);
	else
		jsonw_null(w, "exit_code");
	jsonw_array(w, "warnings");
	for (unsigned i = 0; r->report && i < r->report->message_count && i < RUN_MAX_WARNINGS; i++)
		jsonw_str(w, NULL, r->report->messages[i]);
	write_own_warnings(w, r);
	jsonw_array_end(w);
	if (!r->report)
		jsonw_str(w, "reason", "an idle run needs no fio");
	jsonw_object_end(w);
}

void result_write(const struct result *r, struct buf *out) {
	struct jsonw w;
	jsonw_init(&w, out);
	jsonw_object(&w, NULL);
	jsonw_bool(&w, "simulated", r->job->drives[0].drive.kind == DRIVE_SIMULATED);
	jsonw_uint(&w, "scale", r->job->drives[0].scale);
	jsonw_bool(&w, "partial", r->partial);
	write_window(&w, r);
	write_total(&w, r);
	write_drives(&w, r);
	write_power(&w, &r->measure);
	write_efficiency(&w, r);
	write_environment(&w, r);
	write_fio(&w, r);
	jsonw_object_end(&w);
}

/* --- the series ---------------------------------------------------------------------------------
 */

/* The mean of the readings within a step; *next goes forward with the steps. */
static double step_watts(const struct measure *m, int64_t from_ms, int64_t to_ms, size_t *next) {
	double sum = 0;
	unsigned n = 0;
	for (; *next < m->reading_count && m->readings[*next].at_ms < to_ms; (*next)++) {
		if (m->readings[*next].at_ms < from_ms)
			continue;
		sum += (double)m->readings[*next].mw / 1000;
		n++;
	}
	return n ? sum / n : NAN;
}

void result_series_write(const struct result *r, struct buf *out) {
	const struct fio_series *s = &r->series;
	double scale = scale_of(r);
	size_t reading = 0;
	struct jsonw w;
	jsonw_init(&w, out);
	jsonw_object(&w, NULL);
	jsonw_milli(&w, "step_s", s->step_ms);
	jsonw_array(&w, "points");
	for (size_t i = 0; i < s->count; i++) {
		int64_t at_ms = s->from_ms + (int64_t)i * s->step_ms;
		const struct fio_rates *rates = s->points[i].rates;
		jsonw_object(&w, NULL);
		jsonw_time(&w, "at", at_ms);
		jsonw_double(&w, "read_bytes_per_s", rates[FIO_READ].bytes_per_s * scale);
		jsonw_double(&w, "write_bytes_per_s", rates[FIO_WRITE].bytes_per_s * scale);
		jsonw_double(&w, "read_iops", rates[FIO_READ].iops * scale);
		jsonw_double(&w, "write_iops", rates[FIO_WRITE].iops * scale);
		jsonw_double(&w, "power_w",
			step_watts(&r->measure, at_ms, at_ms + s->step_ms, &reading));
		jsonw_object_end(&w);
	}
	jsonw_array_end(&w);
	jsonw_object_end(&w);
}
