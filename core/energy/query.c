#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/parse.h"
#include "core/energy/impl.h"
#include "core/energy/integrate.h"
#include "core/energy/zone.h"
#include "db/samples.h"

#define DAY_MS INT64_C(86400000)
#define AUTO_POINTS 500

/* --- stored and pending samples as one --- */

struct walk {
	energy_walk_fn *visit;
	void *arg;
	const struct sample *pending; /* of this series, in order */
	size_t pending_count, stored; /* how many of them came from the store too */
	char boot_id[40];             /* of the sample visited last */
	bool stopped;
};

static bool show(struct walk *w, const struct sample *s, const char *boot_id) {
	bool same_boot = strcmp(w->boot_id, boot_id) == 0;
	if (!same_boot)
		str_copy(w->boot_id, sizeof(w->boot_id), boot_id);
	w->stopped = !w->visit(w->arg, s, same_boot);
	return !w->stopped;
}

static bool is_same(const struct sample *a, const struct sample *b) {
	return a->at_ms == b->at_ms && a->at_mono_ns == b->at_mono_ns &&
		a->value_milli == b->value_milli;
}

/* Samples are stored in their order, so those that were stored since the queue was copied are the
 * copy's first ones. */
static bool show_stored(void *arg, const struct sample *s, const char *boot_id) {
	struct walk *w = arg;
	if (w->stored < w->pending_count && is_same(s, &w->pending[w->stored]))
		w->stored++;
	return show(w, s, boot_id);
}

static enum rc copy_pending(struct energy *e, int64_t series_id, int64_t from_ms, int64_t to_ms,
	struct sample **out, size_t *count, struct err *err) {
	struct pending *p = &e->pending;
	size_t n = 0;
	pthread_mutex_lock(&p->lock);
	struct sample *copy = malloc((p->count + 1) * sizeof(*copy));
	for (size_t i = 0; copy && i < p->count; i++) {
		const struct sample *s = &p->samples[i];
		if (s->series_id == series_id && s->at_ms >= from_ms && s->at_ms < to_ms)
			copy[n++] = *s;
	}
	pthread_mutex_unlock(&p->lock);
	*out = copy;
	*count = n;
	return copy ? RC_OK : err_set(err, RC_NOMEM, "no memory for samples");
}

enum rc energy_walk(struct energy *e, int64_t series_id, int64_t from_ms, int64_t to_ms,
	energy_walk_fn *visit, void *arg, struct err *err) {
	struct walk w = {.visit = visit, .arg = arg};
	auto_free struct sample *pending = NULL;
	struct db_conn *c;
	/* The queue first: what is stored in between is then seen twice, not never. */
	enum rc rc = copy_pending(e, series_id, from_ms, to_ms, &pending, &w.pending_count, err);
	w.pending = pending;
	if (!rc)
		rc = db_read_begin(e->db, &c, err);
	if (rc)
		return rc;
	rc = db_tick_each(c, series_id, from_ms, to_ms, show_stored, &w, err);
	db_read_end(c);
	for (size_t i = w.stored; !rc && !w.stopped && i < w.pending_count; i++)
		show(&w, &w.pending[i], clock_boot_id());
	return rc;
}

struct raw {
	bool (*visit)(void *arg, const struct sample *s);
	void *arg;
};

static bool show_raw(void *arg, const struct sample *s, bool same_boot unused_arg) {
	const struct raw *r = arg;
	return r->visit(r->arg, s);
}

enum rc energy_raw(struct energy *e, int64_t series_id, int64_t from_ms, int64_t to_ms,
	bool (*visit)(void *arg, const struct sample *s), void *arg, struct err *err) {
	struct raw r = {visit, arg};
	return energy_walk(e, series_id, from_ms, to_ms, show_raw, &r, err);
}

/* --- steps --- */

static int64_t auto_step(int64_t span_ms) {
	static const int64_t steps_ms[] = {
		1000, 5000, 10000, 30000, 60000, 300000, 900000, 3600000, 21600000};
	for (size_t i = 0; i < array_len(steps_ms); i++) {
		if (span_ms <= steps_ms[i] * AUTO_POINTS)
			return steps_ms[i];
	}
	return DAY_MS;
}

/* Where the step that begins at at_ms ends. */
static int64_t step_end(const struct energy_history *h, const struct zone *days, int64_t at_ms) {
	int64_t end_ms = days ? zone_next_day_ms(days, at_ms) : at_ms + h->step_ms;
	return end_ms < h->to_ms ? end_ms : h->to_ms;
}

/* Also bounds the walk over days: a day has 23 hours at least, but for zones that skipped one. */
static enum rc check_range(const struct energy_history *h, struct err *err) {
	if (h->from_ms >= h->to_ms)
		return err_field(err, RC_INVALID, "to", "must be after from");
	if (h->step_ms <= 0)
		return err_field(err, RC_INVALID, "step", "must be over 0");
	if ((h->to_ms - 1 - h->from_ms) / h->step_ms >= ENERGY_MAX_POINTS)
		return err_field(err, RC_INVALID, "step", "would give more than %d points",
			ENERGY_MAX_POINTS);
	return RC_OK;
}

static enum rc make_steps(const struct energy_history *h, const struct zone *days,
	struct integral **out, size_t *count, struct err *err) {
	struct integral *steps = calloc(ENERGY_MAX_POINTS, sizeof(*steps));
	if (!steps)
		return err_set(err, RC_NOMEM, "no memory for a history");
	*out = steps;
	size_t n = 0;
	for (int64_t at_ms = h->from_ms; at_ms < h->to_ms; at_ms = step_end(h, days, at_ms)) {
		if (n == ENERGY_MAX_POINTS)
			return err_field(err, RC_INVALID, "step", "would give more than %d points",
				ENERGY_MAX_POINTS);
		steps[n++].at_ms = at_ms;
	}
	*count = n;
	return RC_OK;
}

/* --- the history --- */

static bool add_sample(void *arg, const struct sample *s, bool same_boot) {
	integrator_add(arg, s, same_boot);
	return true;
}

static struct energy_point point_of(const struct integral *i, bool is_power) {
	struct energy_point p = {
		.at_ms = i->at_ms,
		.avg_milli = NONE,
		.min_milli = i->min_milli,
		.max_milli = i->max_milli,
		.energy_mj = is_power ? llround(i->milli_ms / 1000) : 0,
		.covered_ms = llround(i->covered_ms),
	};
	if (i->covered_ms > 0)
		p.avg_milli = llround(i->milli_ms / i->real_ms);
	return p;
}

static enum rc fill(
	struct energy_history *h, const struct integral *steps, size_t count, struct err *err) {
	h->points = calloc(count, sizeof(h->points[0]));
	if (!h->points)
		return err_set(err, RC_NOMEM, "no memory for a history");
	bool is_power = h->series.key.quantity == QUANTITY_POWER;
	double milli_ms = 0, covered_ms = 0;
	for (size_t i = 0; i < count; i++) {
		h->points[i] = point_of(&steps[i], is_power);
		milli_ms += steps[i].milli_ms;
		covered_ms += steps[i].covered_ms;
	}
	h->count = count;
	h->energy_mj = is_power ? llround(milli_ms / 1000) : 0;
	h->covered_ms = llround(covered_ms);
	h->expected_ms = h->to_ms - h->from_ms;
	return RC_OK;
}

static enum rc compute(
	struct energy *e, struct energy_history *h, const struct zone *days, struct err *err) {
	auto_free struct integral *steps = NULL;
	struct integrator in;
	size_t count = 0;
	enum rc rc = make_steps(h, days, &steps, &count, err);
	if (rc)
		return rc;
	int64_t gap_ms = e->config.max_gap_ms;
	integrator_init(&in, gap_ms, steps, count, h->to_ms);
	/* Samples beside the span share its first and last stretch. */
	rc = energy_walk(
		e, h->series.id, h->from_ms - gap_ms, h->to_ms + gap_ms, add_sample, &in, err);
	return rc ? rc : fill(h, steps, count, err);
}

enum rc energy_query(struct energy *e, int64_t series_id, int64_t from_ms, int64_t to_ms,
	int64_t step_ms, const char *tz, struct energy_history *out, struct err *err) {
	/* Beyond these years sums of milliseconds would overflow. */
	const int64_t year_10000_ms = INT64_C(253402300800000);
	*out = (struct energy_history){.from_ms = from_ms, .to_ms = to_ms, .step_ms = step_ms};
	if (from_ms < -year_10000_ms || to_ms > year_10000_ms)
		return err_field(err, RC_INVALID, "from", "is out of range");
	if (!step_ms)
		out->step_ms = auto_step(to_ms - from_ms);
	enum rc rc = check_range(out, err);
	if (!rc)
		rc = energy_get(e, series_id, &out->series, err);
	if (rc)
		return rc;
	struct zone *zone = zone_load(ZONE_DIR, tz, err);
	if (!zone)
		return tz ? RC_INVALID : RC_NOMEM;
	rc = compute(e, out, out->step_ms == DAY_MS ? zone : NULL, err);
	zone_free(zone);
	return rc;
}

void energy_history_release(struct energy_history *h) {
	free(h->points);
	*h = (struct energy_history){0};
}
