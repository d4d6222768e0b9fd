#include "core/bench/measure.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/parse.h"

#define READINGS_MAX 500000 /* a day at the fastest period that is asked for */

struct collector {
	struct watts_reading *all;
	size_t count, capacity;
};

static bool grow(struct collector *c) {
	size_t capacity = c->capacity ? c->capacity * 2 : 256;
	struct watts_reading *all = realloc(c->all, capacity * sizeof(*all));
	if (!all)
		return false;
	c->all = all;
	c->capacity = capacity;
	return true;
}

static bool collect(void *arg, const struct sample *s) {
	struct collector *c = arg;
	if (c->count && s->at_ms == c->all[c->count - 1].at_ms)
		return true; /* the same reading again is not a fresh one */
	if (c->count == READINGS_MAX || (c->count == c->capacity && !grow(c)))
		return false;
	c->all[c->count++] = (struct watts_reading){s->at_ms, s->value_milli};
	return true;
}

static enum rc read_series(struct bench *b, const char *object, const struct fio_window *w,
	struct series *series, struct collector *out) {
	enum rc rc = energy_find(b->energy, b->host_id, object, QUANTITY_POWER, series, NULL);
	return rc ? rc
		  : energy_raw(b->energy, series->id, w->from_ms, w->to_ms + 1, collect, out, NULL);
}

static double drive_mean_w(struct bench *b, const char *drive_id, const struct fio_window *w) {
	struct collector c = {0};
	struct series series;
	double sum = 0;
	enum rc rc = read_series(b, drive_id, w, &series, &c);
	for (size_t i = 0; !rc && i < c.count; i++)
		sum += (double)c.all[i].mw / 1000;
	double mean = !rc && c.count ? sum / (double)c.count : NAN;
	free(c.all);
	return mean;
}

static void measure_drives(
	struct bench *b, const struct run_job *j, const struct fio_window *w, struct measure *out) {
	double sum = 0;
	for (unsigned i = 0; i < j->drive_count && isfinite(sum); i++)
		sum += drive_mean_w(b, j->drives[i].drive.id, w);
	out->power.drive_w = sum;
	if (!isfinite(sum))
		str_copy(out->drive_reason, sizeof(out->drive_reason),
			"not every drive has a meter of its own");
}

/* Of the readings in the shared window. */
static void take_mean(struct measure *m, const struct fio_window *w) {
	int64_t begin_ms = watts_begin_ms(&m->meter, w->from_ms, w->to_ms);
	size_t first = 0, end;
	while (first < m->reading_count && m->readings[first].at_ms < begin_ms)
		first++;
	for (end = first; end < m->reading_count && m->readings[end].at_ms <= w->to_ms;)
		end++;
	m->mean = watts_mean_of(m->readings + first, end - first, &m->meter);
	m->power.samples = m->mean.count;
	m->power.system_mean_w = m->mean.mean_w;
	m->power.system_min_w = m->mean.min_w;
	m->power.system_max_w = m->mean.max_w;
	if (m->mean.count < RUN_MIN_FRESH_READINGS && !m->power.reason[0])
		snprintf(m->power.reason, sizeof(m->power.reason),
			"the meter gave %u fresh readings, %d are needed", m->mean.count,
			RUN_MIN_FRESH_READINGS);
}

static void take_baseline(struct measure *m, enum baseline_kind kind) {
	const struct baseline *base = &m->baselines[kind];
	const struct watts_difference *d = &m->above[kind];
	m->baseline = (int)kind;
	str_copy(m->power.baseline_kind, sizeof(m->power.baseline_kind), baseline_kind_name(kind));
	str_copy(m->power.baseline_source, sizeof(m->power.baseline_source),
		baseline_source_name((enum baseline_source)base->source));
	m->power.baseline_w = (double)base->power_mw / 1000;
	m->power.baseline_ms = base->at_ms;
	m->power.above_baseline_w = d->above_w;
	m->power.per_drive_w = d->per_drive_w;
	m->power.uncertainty_w = d->uncertainty_w;
	m->power.bound_w = d->bound_w;
}

static void measure_init(struct measure *m) {
	*m = (struct measure){.meter = {NONE, NONE, NONE}, .baseline = -1};
	m->power = (struct run_power){.baseline_w = NAN,
		.baseline_ms = NONE,
		.above_baseline_w = NAN,
		.per_drive_w = NAN,
		.uncertainty_w = NAN,
		.bound_w = NAN,
		.resolution_w = NAN,
		.drive_w = NAN};
}

static void take_host(struct bench *b, struct measure *m) {
	struct host host;
	struct host_power power;
	if (hosts_get(b->hosts, b->host_id, &host, &power, NULL))
		return;
	memcpy(m->baselines, host.baselines, sizeof(m->baselines));
	m->meter = (struct watts_meter){power.resolution_mw, power.step_mw, power.lag_ms};
	if (power.resolution_mw != NONE)
		m->power.resolution_w = (double)power.resolution_mw / 1000;
}

static void take_readings(struct bench *b, const struct fio_window *w, struct measure *m) {
	struct collector c = {0};
	struct series series;
	enum rc rc = read_series(b, "host", w, &series, &c);
	m->readings = c.all;
	m->reading_count = c.count;
	if (rc == RC_NOT_FOUND)
		str_copy(m->power.reason, sizeof(m->power.reason), "the host has no power meter");
	else if (rc)
		str_copy(m->power.reason, sizeof(m->power.reason),
			"the meter's history could not be read");
	if (rc)
		return;
	m->power.quality = series.key.quality;
	str_copy(m->power.source, sizeof(m->power.source), series.source);
}

void measure_run(struct bench *b, const struct run_job *j, const struct fio_window *shared,
	const struct fio_window *whole, struct measure *out) {
	measure_init(out);
	take_host(b, out);
	take_readings(b, whole, out);
	take_mean(out, shared);
	measure_drives(b, j, shared, out);
	for (int kind = BASELINE_KIND_COUNT_ - 1; kind >= 0; kind--) {
		out->above[kind] =
			watts_above(&out->mean, &out->baselines[kind], &out->meter, j->drive_count);
		/* The idle server with its drives is preferred, and the first of the kinds. */
		if (out->baselines[kind].known)
			take_baseline(out, (enum baseline_kind)kind);
	}
}

void measure_release(struct measure *m) {
	free(m->readings);
	m->readings = NULL;
	m->reading_count = 0;
}
