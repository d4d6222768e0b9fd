/* Aggregates of quarters and hours, made from chunks: of all series for each stretch, and of each
 * series for each month. */
#include "base/log.h"
#include "core/energy/impl.h"
#include "db/history.h"

#define HOURS_AT_ONCE 64 /* of which one that is over is looked for */
#define DAYS_AT_ONCE 32  /* of a transaction */
#define HOURS_OF_DAY 24
#define BUCKET_MAX_BYTES (4u << 20)
#define ROLL_MS 60000

const int64_t tiers_ms[TIER_COUNT] = {QUARTER_MS, HOUR_MS};

/* --- one hour of one series --- */

struct hour {
	struct aggregate quarters[QUARTERS_OF_HOUR];
	struct aggregate whole;
};

/* What making aggregates needs again and again. */
struct workshop {
	struct energy *e;
	struct db_conn *c;
	struct buf bytes;
	struct readings samples;
	struct aggregates minutes;
};

static bool workshop_init(struct workshop *w, struct energy *e) {
	*w = (struct workshop){.e = e};
	buf_init(&w->bytes, BUCKET_MAX_BYTES);
	return aggregates_init(&w->minutes, MINUTES_OF_HOUR);
}

static void workshop_release(struct workshop *w) {
	buf_release(&w->bytes);
	readings_release(&w->samples);
	aggregates_release(&w->minutes);
}

static bool read_minutes(struct workshop *w, const struct chunk *chunk) {
	if (chunk_has_minutes(chunk))
		return chunk_read_minutes(chunk, &w->minutes);
	w->samples.count = 0;
	if (!chunk_read(chunk, &w->samples))
		return false;
	chunk_minutes(&w->samples, chunk->begin_ms, &chunk->how, &w->minutes);
	return true;
}

/* False, and told, when the chunk is damaged: then the hour is empty. */
static bool read_hour(struct workshop *w, int64_t series_id, int quantity, int64_t begin_ms,
	const void *bytes, size_t len, struct hour *out) {
	struct joining how = energy_joining(w->e, quantity);
	struct chunk chunk;
	*out = (struct hour){0};
	if (!chunk_open(&chunk, bytes, len, begin_ms, &how) || !read_minutes(w, &chunk)) {
		log_warning("energy", "an hour of series %lld is damaged", (long long)series_id);
		return false;
	}
	for (size_t i = 0; i < w->minutes.count; i++) {
		struct aggregate minute = aggregates_get(&w->minutes, i);
		aggregate_join(
			&out->quarters[minute.key * QUARTERS_OF_HOUR / MINUTES_OF_HOUR], &minute);
		aggregate_join(&out->whole, &minute);
	}
	return true;
}

/* --- buckets --- */

#define TABLES (QUARTERS_OF_HOUR + 1) /* the last one is of the hour */

struct hour_buckets {
	struct workshop shop;
	int64_t begin_ms;
	struct aggregates tables[QUANTITY_COUNT_][TABLES];
};

static bool add_to_table(struct aggregates *table, struct aggregate *a, int64_t series_id) {
	a->key = series_id;
	if (aggregate_is_empty(a))
		return true;
	if (!aggregates_grow(table))
		return false;
	aggregates_add(table, a);
	return true;
}

static enum rc add_chunk(
	void *arg, int64_t series_id, const void *bytes, size_t len, struct err *err) {
	struct hour_buckets *b = arg;
	struct hour hour;
	int quantity = catalogue_quantity(&b->shop.e->catalogue, series_id);
	if (quantity < 0 ||
		!read_hour(&b->shop, series_id, quantity, b->begin_ms, bytes, len, &hour))
		return RC_OK;
	struct aggregates *tables = b->tables[quantity];
	bool added = add_to_table(&tables[QUARTERS_OF_HOUR], &hour.whole, series_id);
	for (int i = 0; added && i < QUARTERS_OF_HOUR; i++)
		added = add_to_table(&tables[i], &hour.quarters[i], series_id);
	return added ? RC_OK : err_set(err, RC_NOMEM, "no memory for aggregates");
}

static enum rc put_table(struct hour_buckets *b, enum quantity q, int i, struct err *err) {
	const struct aggregates *table = &b->tables[q][i];
	bool whole = i == QUARTERS_OF_HOUR;
	struct buf *bytes = &b->shop.bytes;
	if (!table->count)
		return RC_OK;
	buf_reset(bytes);
	aggregates_put(bytes, table);
	enum rc rc = buf_status(bytes, err);
	return rc
		? rc
		: db_bucket_put(b->shop.c, whole ? HOUR_MS : QUARTER_MS, q,
			  b->begin_ms + (whole ? 0 : i * QUARTER_MS), bytes->data, bytes->len, err);
}

static enum rc make_buckets(struct hour_buckets *b, struct err *err) {
	struct db_conn *c = b->shop.c;
	enum rc rc = db_chunk_each(c, b->begin_ms / HOUR_MS, add_chunk, b, err);
	for (enum quantity q = 0; q < QUANTITY_COUNT_; q++) {
		for (int i = 0; i < TABLES && !rc; i++)
			rc = put_table(b, q, i, err);
	}
	return rc ? rc : db_stale_hour_done(c, b->begin_ms / HOUR_MS, err);
}

static enum rc finish(struct db_conn *c, enum rc rc, struct err *err) {
	if (!rc)
		return db_write_commit(c, err);
	db_write_abort(c);
	return rc;
}

static enum rc rebuild_hour(struct energy *e, int64_t begin_ms, struct err *err) {
	struct hour_buckets *b = calloc(1, sizeof(*b));
	enum rc rc = RC_NOMEM;
	if (b && workshop_init(&b->shop, e)) {
		b->begin_ms = begin_ms;
		rc = db_write_begin(e->db, &b->shop.c, err);
		if (!rc)
			rc = finish(b->shop.c, make_buckets(b, err), err);
		workshop_release(&b->shop);
	} else {
		err_set(err, rc, "no memory for aggregates");
	}
	for (size_t i = 0; b && i < QUANTITY_COUNT_ * TABLES; i++)
		aggregates_release(&b->tables[i / TABLES][i % TABLES]);
	free(b);
	return rc;
}

enum rc tiers_hour(struct energy *e, int64_t newest_ms, bool *done, struct err *err) {
	int64_t hours[HOURS_AT_ONCE];
	int count = 0;
	struct db_conn *c;
	enum rc rc = db_read_begin(e->db, &c, err);
	if (rc)
		return rc;
	rc = db_stale_hours(c, HOURS_AT_ONCE, hours, &count, err);
	db_read_end(c);
	*done = false;
	for (int i = 0; i < count && !rc && !*done; i++) {
		*done = span_is_past(e, newest_ms, hours[i] * HOUR_MS, HOUR_MS);
		if (*done)
			rc = rebuild_hour(e, hours[i] * HOUR_MS, err);
	}
	return rc;
}

/* --- months --- */

/* A day's aggregates of a series, keyed with their places in its month. */
struct day {
	struct aggregates tiers[TIER_COUNT];
	bool any;
};

static void add_hour(struct day *d, int64_t place, struct hour *hour) {
	for (int i = 0; i < QUARTERS_OF_HOUR; i++) {
		hour->quarters[i].key = place * QUARTERS_OF_HOUR + i;
		if (!aggregate_is_empty(&hour->quarters[i]))
			aggregates_add(&d->tiers[0], &hour->quarters[i]);
	}
	hour->whole.key = place;
	if (!aggregate_is_empty(&hour->whole))
		aggregates_add(&d->tiers[1], &hour->whole);
}

static enum rc read_day(
	struct workshop *w, const struct stale_day *day, struct day *out, struct err *err) {
	int quantity = catalogue_quantity(&w->e->catalogue, day->series_id);
	int64_t first = floor_to(day->day, MONTH_DAYS) * HOURS_OF_DAY;
	enum rc rc = RC_OK;
	out->any = false;
	for (size_t t = 0; t < TIER_COUNT; t++)
		out->tiers[t].count = 0;
	for (int64_t h = 0; h < HOURS_OF_DAY && quantity >= 0 && !rc; h++) {
		struct hour hour;
		int64_t number = day->day * HOURS_OF_DAY + h;
		rc = db_chunk_get(w->c, number, day->series_id, &w->bytes, err);
		if (rc || !w->bytes.len)
			continue;
		out->any = true;
		if (read_hour(w, day->series_id, quantity, number * HOUR_MS, w->bytes.data,
			    w->bytes.len, &hour))
			add_hour(out, number - first, &hour);
	}
	return rc;
}

static void add_keys(
	struct aggregates *out, const struct aggregates *from, int64_t from_key, int64_t to_key) {
	for (size_t i = 0; i < from->count; i++) {
		int64_t key = from->columns[AGGREGATE_KEY][i];
		struct aggregate one = aggregates_get(from, i);
		if (key >= from_key && key < to_key)
			aggregates_add(out, &one);
	}
}

static enum rc read_month(struct workshop *w, const struct stale_day *day, int64_t tier_ms,
	struct aggregates *out, struct err *err) {
	const int64_t keys = MONTH_DAYS * DAY_MS / tier_ms;
	struct column_reader in;
	int64_t month = floor_to(day->day, MONTH_DAYS) / MONTH_DAYS;
	enum rc rc = db_month_get(w->c, tier_ms, month, day->series_id, &w->bytes, err);
	if (rc || !w->bytes.len)
		return rc;
	in = column_reader(w->bytes.data, w->bytes.len);
	if (aggregates_read(&in, AGGREGATE_ALL, (size_t)keys, keys, out))
		return RC_OK;
	out->count = 0;
	log_warning(
		"energy", "a damaged month of series %lld was replaced", (long long)day->series_id);
	return RC_OK;
}

/* Puts the day in place of what the month had of it. */
static enum rc put_month(struct workshop *w, const struct stale_day *day, int64_t tier_ms,
	const struct aggregates *month, const struct aggregates *of_day, struct err *err) {
	struct aggregates all;
	int64_t begin = floor_to(day->day, MONTH_DAYS), keys = DAY_MS / tier_ms;
	int64_t from = (day->day - begin) * keys;
	if (!aggregates_init(&all, month->count + of_day->count))
		return err_set(err, RC_NOMEM, "no memory for aggregates");
	add_keys(&all, month, 0, from);
	add_keys(&all, of_day, from, from + keys);
	add_keys(&all, month, from + keys, INT64_MAX);
	buf_reset(&w->bytes);
	aggregates_put(&w->bytes, &all);
	aggregates_release(&all);
	enum rc rc = buf_status(&w->bytes, err);
	return rc ? rc
		  : db_month_put(w->c, tier_ms, begin / MONTH_DAYS, day->series_id, w->bytes.data,
			    w->bytes.len, err);
}

static enum rc roll_day(
	struct workshop *w, const struct stale_day *day, struct day *room, struct err *err) {
	enum rc rc = read_day(w, day, room, err);
	for (size_t t = 0; t < TIER_COUNT && room->any && !rc; t++) {
		struct aggregates month = {0};
		rc = read_month(w, day, tiers_ms[t], &month, err);
		if (!rc)
			rc = put_month(w, day, tiers_ms[t], &month, &room->tiers[t], err);
		aggregates_release(&month);
	}
	return rc ? rc : db_stale_day_done(w->c, day, err);
}

static enum rc roll_days(
	struct energy *e, const struct stale_day *days, int count, struct err *err) {
	struct workshop shop;
	struct day room = {0};
	bool ready = workshop_init(&shop, e);
	for (size_t t = 0; t < TIER_COUNT && ready; t++)
		ready = aggregates_init(&room.tiers[t], (size_t)(DAY_MS / tiers_ms[t]));
	enum rc rc = ready ? db_write_begin(e->db, &shop.c, err)
			   : err_set(err, RC_NOMEM, "no memory for aggregates");
	if (!rc) {
		for (int i = 0; i < count && !rc; i++)
			rc = roll_day(&shop, &days[i], &room, err);
		rc = finish(shop.c, rc, err);
	}
	for (size_t t = 0; t < TIER_COUNT; t++)
		aggregates_release(&room.tiers[t]);
	workshop_release(&shop);
	return rc;
}

enum rc tiers_days(struct energy *e, int64_t newest_ms, bool *more, struct err *err) {
	struct stale_day days[DAYS_AT_ONCE];
	int count = 0;
	struct db_conn *c;
	/* What is forced may be today by a clock that stands still. */
	bool forced = e->forced_ms > newest_ms;
	int64_t today = floor_to(newest_ms - energy_grace_ms(e), DAY_MS) / DAY_MS;
	*more = false;
	if (!forced && newest_ms < e->rolled_ms + ROLL_MS && newest_ms > e->rolled_ms - ROLL_MS)
		return RC_OK;
	enum rc rc = db_read_begin(e->db, &c, err);
	if (rc)
		return rc;
	rc = db_stale_days(
		c, 0, today, forced ? today : today + 1, DAYS_AT_ONCE, days, &count, err);
	db_read_end(c);
	if (!rc && count)
		rc = roll_days(e, days, count, err);
	*more = !rc && count == DAYS_AT_ONCE;
	if (!rc && !*more)
		e->rolled_ms = newest_ms;
	return rc;
}
