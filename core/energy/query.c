/* Histories of one series: each day from the coarsest tier that serves its steps. */
#include <math.h>

#include "core/energy/impl.h"
#include "core/energy/zone.h"
#include "db/history.h"

#define AUTO_POINTS 500
#define STALE_MAX 64

/* --- steps --- */

static int64_t points_of(int64_t from_ms, int64_t to_ms, int64_t step_ms) {
	return (floor_to(to_ms - 1, step_ms) - floor_to(from_ms, step_ms)) / step_ms + 1;
}

static int64_t auto_step(int64_t from_ms, int64_t to_ms) {
	static const int64_t steps_ms[] = {
		1000, 5000, 10000, 30000, 60000, 300000, 900000, 3600000, 21600000};
	for (size_t i = 0; i < array_len(steps_ms); i++) {
		if (points_of(from_ms, to_ms, steps_ms[i]) <= AUTO_POINTS)
			return steps_ms[i];
	}
	return DAY_MS;
}

/* How the span is divided. */
struct ruler {
	int64_t from_ms, to_ms, step_ms;
	bool aligned;            /* steps begin at multiples of step_ms */
	const struct zone *days; /* NULL unless the steps are days */
};

/* Where the step that begins at at_ms ends. */
static int64_t step_end(const struct ruler *r, int64_t at_ms) {
	int64_t end_ms = r->days ? zone_next_day_ms(r->days, at_ms)
		: r->aligned     ? floor_to(at_ms, r->step_ms) + r->step_ms
				 : at_ms + r->step_ms;
	return end_ms < r->to_ms ? end_ms : r->to_ms;
}

/* Also bounds the walk over days: a day has 23 hours at least, but for zones that skipped one. */
static enum rc check_range(const struct ruler *r, struct err *err) {
	if (r->from_ms >= r->to_ms)
		return err_field(err, RC_INVALID, "to", "must be after from");
	if (r->step_ms <= 0)
		return err_field(err, RC_INVALID, "step", "must be over 0");
	if ((r->to_ms - 1 - r->from_ms) / r->step_ms >= ENERGY_MAX_POINTS)
		return err_field(err, RC_INVALID, "step", "would give more than %d points",
			ENERGY_MAX_POINTS);
	return RC_OK;
}

static enum rc make_steps(
	const struct ruler *r, struct integral **out, size_t *count, struct err *err) {
	size_t max = (size_t)((r->to_ms - r->from_ms) / r->step_ms) + 3, n = 0;
	/* A zone may have skipped days, and shortened others by an hour. */
	max += r->days ? max / 8 : 0;
	struct integral *steps = calloc(max, sizeof(*steps));
	if (!steps)
		return err_set(err, RC_NOMEM, "no memory for a history");
	*out = steps;
	for (int64_t at_ms = r->from_ms; at_ms < r->to_ms; at_ms = step_end(r, at_ms)) {
		if (n == max || n == ENERGY_MAX_POINTS)
			return err_field(err, RC_INVALID, "step", "would give more than %d points",
				ENERGY_MAX_POINTS);
		steps[n++] =
			(struct integral){.at_ms = at_ms, .min_milli = NONE, .max_milli = NONE};
	}
	*count = n;
	return RC_OK;
}

/* --- a history being made --- */

struct making {
	struct energy *e;
	struct series series;
	int64_t from_ms, to_ms;
	struct integral *steps;
	size_t count;
	size_t at;         /* the step that was added to last */
	int64_t finest_ms; /* tier that all steps begin in line with; 0: none */
	int64_t kept_ms;   /* older samples are gone */
	int64_t worst_ms;  /* the coarsest that was used out of line */
	struct hour_reader hours;
	struct stale_day stale[STALE_MAX];
	int stale_count;
	struct integral *room; /* for the steps of an hour */
	size_t room_count;
	struct aggregates month[TIER_COUNT];
	int64_t month_number[TIER_COUNT]; /* that is in it */
};

static int64_t step_end_ms(const struct making *m, size_t i) {
	return i + 1 < m->count ? m->steps[i + 1].at_ms : m->to_ms;
}

static size_t find_step(struct making *m, int64_t at_ms) {
	size_t low = 0, high = m->count;
	if (m->steps[m->at].at_ms <= at_ms) {
		if (at_ms < step_end_ms(m, m->at))
			return m->at;
		low = m->at;
	}
	while (high - low > 1) {
		size_t mid = (low + high) / 2;
		if (m->steps[mid].at_ms <= at_ms)
			low = mid;
		else
			high = mid;
	}
	m->at = low;
	return low;
}

static void add_extremes(struct integral *to, int64_t min_milli, int64_t max_milli) {
	if (min_milli == NONE)
		return;
	if (to->min_milli == NONE || min_milli < to->min_milli)
		to->min_milli = min_milli;
	if (to->max_milli == NONE || max_milli > to->max_milli)
		to->max_milli = max_milli;
}

/* A share of an aggregate; its samples go where it begins. */
static void add_share(struct integral *to, const struct aggregate *a, double share, bool first) {
	to->milli_ms += (double)a->integral * 1000 * share;
	to->covered_ms += (double)a->covered_ms * share;
	to->count += first ? a->count : 0;
	to->sum_milli += first ? a->sum_milli : 0;
	add_extremes(to, a->min_milli, a->max_milli);
}

/* Lays an aggregate onto the steps, evenly where it lies in several or partly beside the span. */
static void add_aggregate(
	struct making *m, const struct aggregate *a, int64_t begin_ms, int64_t width_ms) {
	int64_t from_ms = begin_ms > m->from_ms ? begin_ms : m->from_ms;
	int64_t end_ms = begin_ms + width_ms < m->to_ms ? begin_ms + width_ms : m->to_ms;
	bool whole = true;
	if (from_ms >= end_ms)
		return;
	for (size_t i = find_step(m, from_ms); i < m->count && m->steps[i].at_ms < end_ms; i++) {
		int64_t low_ms = m->steps[i].at_ms > from_ms ? m->steps[i].at_ms : from_ms;
		int64_t high_ms = step_end_ms(m, i) < end_ms ? step_end_ms(m, i) : end_ms;
		whole = high_ms - low_ms == width_ms;
		add_share(&m->steps[i], a, (double)(high_ms - low_ms) / (double)width_ms,
			low_ms == from_ms);
	}
	if (!whole && width_ms > m->worst_ms)
		m->worst_ms = width_ms;
}

/* --- from samples --- */

static bool make_room(struct making *m, size_t count) {
	if (count <= m->room_count)
		return true;
	free(m->room);
	m->room = calloc(count, sizeof(m->room[0]));
	m->room_count = m->room ? count : 0;
	return m->room;
}

/* The hour's samples alone tell its energy, so it has steps of its own, added to those of all. */
static enum rc add_samples(struct making *m, int64_t from_ms, int64_t to_ms, struct err *err) {
	const struct hour_reader *r = &m->hours;
	struct integrator in;
	size_t first = find_step(m, from_ms), n = 0;
	while (first + n < m->count && m->steps[first + n].at_ms < to_ms)
		n++;
	if (!make_room(m, n))
		return err_set(err, RC_NOMEM, "no memory for a history");
	for (size_t i = 0; i < n; i++)
		m->room[i].at_ms = m->steps[first + i].at_ms;
	m->room[0].at_ms = from_ms;
	integrator_init(&in, &r->chunk.how, m->room, n, to_ms);
	for (size_t i = 0; i < r->samples.count; i++)
		integrator_add(&in, &r->samples.all[i]);
	for (size_t i = 0; i < n; i++) {
		struct integral *to = &m->steps[first + i];
		to->milli_ms += m->room[i].milli_ms;
		to->covered_ms += m->room[i].covered_ms;
		to->count += m->room[i].count;
		to->sum_milli += m->room[i].sum_milli;
		add_extremes(to, m->room[i].min_milli, m->room[i].max_milli);
	}
	return RC_OK;
}

static bool is_multiple(int64_t ms, int64_t of_ms) {
	return ms % of_ms == 0;
}

static enum rc add_hour(struct making *m, int64_t begin_ms, struct err *err) {
	int64_t from_ms = begin_ms > m->from_ms ? begin_ms : m->from_ms;
	int64_t to_ms = begin_ms + HOUR_MS < m->to_ms ? begin_ms + HOUR_MS : m->to_ms;
	bool minutes =
		m->finest_ms && is_multiple(from_ms, MINUTE_MS) && is_multiple(to_ms, MINUTE_MS);
	enum hour_found found;
	enum rc rc = hour_reader_get(&m->hours, begin_ms, minutes, &found, err);
	if (rc || found == HOUR_EMPTY)
		return rc;
	if (found == HOUR_SAMPLES && !minutes)
		return add_samples(m, from_ms, to_ms, err);
	/* By whole minutes wherever they will do, so that parts add up to exactly the whole. */
	if (found == HOUR_SAMPLES)
		chunk_minutes(&m->hours.samples, begin_ms, &m->hours.chunk.how, &m->hours.minutes);
	for (size_t i = 0; i < m->hours.minutes.count; i++) {
		struct aggregate a = aggregates_get(&m->hours.minutes, i);
		add_aggregate(m, &a, begin_ms + a.key * MINUTE_MS, MINUTE_MS);
	}
	return RC_OK;
}

static enum rc add_hours(struct making *m, int64_t from_ms, int64_t to_ms, struct err *err) {
	enum rc rc = RC_OK;
	for (int64_t at_ms = floor_to(from_ms, HOUR_MS); at_ms < to_ms && !rc; at_ms += HOUR_MS)
		rc = add_hour(m, at_ms, err);
	return rc;
}

/* --- from months --- */

static enum rc read_month(struct making *m, size_t tier, int64_t number, struct err *err) {
	struct buf *bytes = &m->hours.bytes;
	struct aggregates *month = &m->month[tier];
	size_t max = (size_t)(MONTH_DAYS * DAY_MS / tiers_ms[tier]);
	if (m->month_number[tier] == number)
		return RC_OK;
	month->count = 0;
	m->month_number[tier] = number;
	enum rc rc = db_month_get(m->hours.c, tiers_ms[tier], number, m->series.id, bytes, err);
	if (rc || !bytes->len)
		return rc;
	struct column_reader in = column_reader(bytes->data, bytes->len);
	if (!aggregates_read(&in, AGGREGATE_ALL, max, (int64_t)max, month))
		return err_set(err, RC_CORRUPT, "a month of series %lld is damaged",
			(long long)m->series.id);
	return RC_OK;
}

/* The first place whose key is not under this one. */
static size_t find_key(const struct aggregates *a, int64_t key) {
	size_t low = 0, high = a->count;
	while (low < high) {
		size_t mid = (low + high) / 2;
		if (a->columns[AGGREGATE_KEY][mid] < key)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static enum rc add_from_month(struct making *m, size_t tier, int64_t day_ms, struct err *err) {
	int64_t month_ms = floor_to(day_ms, MONTH_DAYS * DAY_MS), width_ms = tiers_ms[tier];
	int64_t end_key = (day_ms - month_ms + DAY_MS) / width_ms;
	const struct aggregates *month = &m->month[tier];
	enum rc rc = read_month(m, tier, month_ms / (MONTH_DAYS * DAY_MS), err);
	size_t i = rc ? month->count : find_key(month, (day_ms - month_ms) / width_ms);
	for (; i < month->count && month->columns[AGGREGATE_KEY][i] < end_key; i++) {
		struct aggregate a = aggregates_get(month, i);
		add_aggregate(m, &a, month_ms + a.key * width_ms, width_ms);
	}
	return rc;
}

/* --- which --- */

static bool is_stale(const struct making *m, int64_t day) {
	for (int i = 0; i < m->stale_count; i++) {
		if (m->stale[i].day == day)
			return true;
	}
	/* Too many to tell: all may be. */
	return m->stale_count == STALE_MAX;
}

/* The span within the day must be in line with the tier, too. */
static bool serves(const struct making *m, int64_t tier_ms, int64_t from_ms, int64_t to_ms) {
	return m->finest_ms >= tier_ms && is_multiple(from_ms, tier_ms) &&
		is_multiple(to_ms, tier_ms);
}

/* Where the finer one is gone, the coarser one does. */
static enum rc add_from_months(struct making *m, size_t tier, int64_t day_ms, struct err *err) {
	enum rc rc = RC_OK;
	for (bool found = false; tier < TIER_COUNT && !found && !rc; tier++) {
		rc = add_from_month(m, tier, day_ms, err);
		found = m->month[tier].count > 0;
	}
	return rc;
}

static enum rc add_day(struct making *m, int64_t day_ms, struct err *err) {
	int64_t from_ms = day_ms > m->from_ms ? day_ms : m->from_ms;
	int64_t to_ms = day_ms + DAY_MS < m->to_ms ? day_ms + DAY_MS : m->to_ms;
	bool rolled = !is_stale(m, day_ms / DAY_MS) &&
		!hour_reader_has_open(&m->hours, day_ms, day_ms + DAY_MS);
	for (size_t n = TIER_COUNT; rolled && n > 0; n--) {
		if (serves(m, tiers_ms[n - 1], from_ms, to_ms))
			return add_from_months(m, n - 1, day_ms, err);
	}
	if (rolled && day_ms < m->kept_ms)
		return add_from_months(m, 0, day_ms, err);
	return add_hours(m, from_ms, to_ms, err);
}

static int64_t find_finest(const struct making *m) {
	static const int64_t widths_ms[] = {HOUR_MS, QUARTER_MS, MINUTE_MS};
	for (size_t w = 0; w < array_len(widths_ms); w++) {
		size_t i = 1;
		while (i < m->count && is_multiple(m->steps[i].at_ms, widths_ms[w]))
			i++;
		if (i >= m->count)
			return widths_ms[w];
	}
	return 0;
}

static enum rc look_around(struct making *m, struct err *err) {
	bool of_energy = quantity_is_energy(m->series.key.quantity);
	int64_t hour = INT64_MIN;
	enum rc rc = db_stale_days(m->hours.c, m->series.id, INT64_MAX, INT64_MAX, STALE_MAX,
		m->stale, &m->stale_count, err);
	if (!rc)
		rc = db_mark_get(m->hours.c, of_energy ? PRUNED_ENERGY : PRUNED_OTHERS, INT64_MIN,
			&hour, err);
	m->kept_ms = hour == INT64_MIN ? INT64_MIN : hour * HOUR_MS;
	return rc;
}

/* Beyond the range of the series there is nothing to look for. */
static enum rc add_days(struct making *m, struct err *err) {
	const struct series *s = &m->series;
	int64_t reach_ms = m->hours.how.max_gap_ms + HOUR_MS;
	int64_t from_ms = m->from_ms, to_ms = m->to_ms;
	enum rc rc = look_around(m, err);
	if (s->first_ms == NONE)
		return rc;
	from_ms = from_ms > s->first_ms - reach_ms ? from_ms : s->first_ms - reach_ms;
	to_ms = to_ms < s->last_ms + reach_ms ? to_ms : s->last_ms + reach_ms;
	for (int64_t at_ms = floor_to(from_ms, DAY_MS); at_ms < to_ms && !rc; at_ms += DAY_MS)
		rc = add_day(m, at_ms, err);
	return rc;
}

/* --- the whole --- */

static struct energy_point point_of(const struct integral *i, bool is_energy) {
	struct energy_point p = {
		.at_ms = i->at_ms,
		.avg_milli = NONE,
		.min_milli = i->min_milli,
		.max_milli = i->max_milli,
		.energy_mj = is_energy ? llround(i->milli_ms / 1000) : 0,
		.covered_ms = llround(i->covered_ms),
	};
	if (i->covered_ms > 0)
		p.avg_milli = llround(i->milli_ms / i->covered_ms);
	return p;
}

static enum rc fill(struct energy_history *h, const struct making *m, struct err *err) {
	bool is_energy = quantity_is_energy(m->series.key.quantity);
	double milli_ms = 0, covered_ms = 0;
	h->points = calloc(m->count, sizeof(h->points[0]));
	if (!h->points)
		return err_set(err, RC_NOMEM, "no memory for a history");
	for (size_t i = 0; i < m->count; i++) {
		h->points[i] = point_of(&m->steps[i], is_energy);
		milli_ms += m->steps[i].milli_ms;
		covered_ms += m->steps[i].covered_ms;
	}
	h->count = m->count;
	h->energy_mj = is_energy ? llround(milli_ms / 1000) : 0;
	h->covered_ms = llround(covered_ms);
	h->expected_ms = h->to_ms - h->from_ms;
	h->resolution_ms = m->worst_ms;
	return RC_OK;
}

static void making_release(struct making *m) {
	hour_reader_release(&m->hours);
	for (size_t t = 0; t < TIER_COUNT; t++)
		aggregates_release(&m->month[t]);
	free(m->room);
	free(m->steps);
	free(m);
}

static enum rc make(
	struct energy *e, const struct ruler *r, struct energy_history *out, struct err *err) {
	struct making *m = calloc(1, sizeof(*m));
	if (!m)
		return err_set(err, RC_NOMEM, "no memory for a history");
	m->e = e;
	m->series = out->series;
	m->from_ms = r->from_ms;
	m->to_ms = r->to_ms;
	m->month_number[0] = m->month_number[1] = INT64_MIN;
	enum rc rc = make_steps(r, &m->steps, &m->count, err);
	if (!rc) {
		m->finest_ms = find_finest(m);
		rc = hour_reader_init(&m->hours, e, &m->series, r->from_ms, r->to_ms, err);
	}
	if (!rc)
		rc = add_days(m, err);
	if (!rc)
		rc = fill(out, m, err);
	making_release(m);
	return rc;
}

enum rc energy_query(struct energy *e, int64_t series_id, int64_t from_ms, int64_t to_ms,
	int64_t step_ms, const char *tz, struct energy_history *out, struct err *err) {
	/* Beyond these years sums of milliseconds would overflow. */
	const int64_t year_10000_ms = INT64_C(253402300800000);
	struct ruler r = {.from_ms = from_ms, .to_ms = to_ms, .step_ms = step_ms};
	*out = (struct energy_history){0};
	if (from_ms < -year_10000_ms || to_ms > year_10000_ms)
		return err_field(err, RC_INVALID, "from", "is out of range");
	if (!step_ms && from_ms < to_ms) {
		r.step_ms = auto_step(from_ms, to_ms);
		r.aligned = true;
	}
	enum rc rc = check_range(&r, err);
	*out = (struct energy_history){.from_ms = from_ms, .to_ms = to_ms, .step_ms = r.step_ms};
	if (!rc)
		rc = energy_get(e, series_id, &out->series, err);
	if (rc)
		return rc;
	struct zone *zone = zone_load(ZONE_DIR, tz, err);
	if (!zone)
		return tz ? RC_INVALID : RC_NOMEM;
	r.days = r.step_ms == DAY_MS ? zone : NULL;
	rc = make(e, &r, out, err);
	zone_free(zone);
	return rc;
}

void energy_history_release(struct energy_history *h) {
	free(h->points);
	*h = (struct energy_history){0};
}
