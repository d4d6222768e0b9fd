#include "db/history.h"

#include "db/sqlite.h"

#define HOURS_OF_DAY 24

/* Power, and counters of energy: what is kept for its energy. */
#define OF_ENERGY "(SELECT id FROM series WHERE quantity IN ('power', 'energy_counter'))"
#define OF_OTHERS "(SELECT id FROM series WHERE quantity NOT IN ('power', 'energy_counter'))"

/* --- marks ------------------------------------------------------------------------------------ */

enum rc db_mark_get(
	struct db_conn *c, const char *name, int64_t fallback, int64_t *value, struct err *err) {
	auto_stmt struct stmt *st = stmt_get(c, "SELECT value FROM mark WHERE name = $1");
	bool row;
	stmt_text(st, 1, name);
	const enum rc rc = stmt_next(st, &row, err);
	if (rc == RC_OK)
		*value = row ? col_int(st, 0) : fallback;
	return rc;
}

enum rc db_mark_set(struct db_conn *c, const char *name, int64_t value, struct err *err) {
	auto_stmt struct stmt *st = stmt_get(c,
		"INSERT INTO mark (name, value) VALUES ($1, $2)"
		" ON CONFLICT (name) DO UPDATE SET value = excluded.value");
	stmt_text(st, 1, name);
	stmt_int(st, 2, value);
	return stmt_run(st, NULL, err);
}

/* --- rows of bytes ---------------------------------------------------------------------------- */

static enum rc read_bytes(struct stmt *st, struct buf *out, struct err *err) {
	bool row;
	size_t len;
	buf_reset(out);
	const enum rc rc = stmt_next(st, &row, err);
	if (rc != RC_OK || !row)
		return rc;
	const void *bytes = col_blob(st, 0, &len);
	buf_add(out, bytes, len);
	return buf_status(out, err);
}

/* Columns key, bytes. */
static enum rc visit_rows(struct stmt *st, db_history_visit *visit, void *arg, struct err *err) {
	enum rc rc;
	bool row;
	while ((rc = stmt_next(st, &row, err)) == RC_OK && row) {
		size_t len;
		const void *bytes = col_blob(st, 1, &len);
		rc = visit(arg, col_int(st, 0), bytes, len, err);
		if (rc != RC_OK)
			break;
	}
	return rc;
}

/* --- chunks ----------------------------------------------------------------------------------- */

enum rc db_chunk_get(
	struct db_conn *c, int64_t hour, int64_t series_id, struct buf *out, struct err *err) {
	auto_stmt struct stmt *st =
		stmt_get(c, "SELECT samples FROM chunk WHERE hour = $1 AND series_id = $2");
	stmt_int(st, 1, hour);
	stmt_int(st, 2, series_id);
	return read_bytes(st, out, err);
}

static int64_t day_of(int64_t hour) {
	return hour / HOURS_OF_DAY - (hour % HOURS_OF_DAY < 0);
}

static enum rc mark_stale(struct db_conn *c, int64_t hour, int64_t series_id, struct err *err) {
	auto_stmt struct stmt *h =
		stmt_get(c, "INSERT INTO stale_hour (hour) VALUES ($1) ON CONFLICT DO NOTHING");
	auto_stmt struct stmt *d = stmt_get(
		c, "INSERT INTO stale_day (series_id, day) VALUES ($1, $2) ON CONFLICT DO NOTHING");
	stmt_int(h, 1, hour);
	const enum rc rc = stmt_run(h, NULL, err);
	if (rc != RC_OK)
		return rc;
	stmt_int(d, 1, series_id);
	stmt_int(d, 2, day_of(hour));
	return stmt_run(d, NULL, err);
}

enum rc db_chunk_put(struct db_conn *c, int64_t hour, int64_t series_id, const void *bytes,
	size_t len, struct err *err) {
	auto_stmt struct stmt *st = stmt_get(c,
		"INSERT INTO chunk (hour, series_id, samples) VALUES ($1, $2, $3)"
		" ON CONFLICT (hour, series_id) DO UPDATE SET samples = excluded.samples");
	stmt_int(st, 1, hour);
	stmt_int(st, 2, series_id);
	stmt_blob(st, 3, bytes, len);
	const enum rc rc = stmt_run(st, NULL, err);
	return rc == RC_OK ? mark_stale(c, hour, series_id, err) : rc;
}

enum rc db_chunk_each(
	struct db_conn *c, int64_t hour, db_history_visit *visit, void *arg, struct err *err) {
	auto_stmt struct stmt *st = stmt_get(
		c, "SELECT series_id, samples FROM chunk WHERE hour = $1 ORDER BY series_id");
	stmt_int(st, 1, hour);
	return visit_rows(st, visit, arg, err);
}

enum rc db_chunk_hour(struct db_conn *c, int64_t from, int64_t *hour, struct err *err) {
	auto_stmt struct stmt *st =
		stmt_get(c, "SELECT hour FROM chunk WHERE hour >= $1 ORDER BY hour LIMIT 1");
	stmt_int(st, 1, from);
	const enum rc rc = stmt_one(st, "hour", err);
	if (rc == RC_OK)
		*hour = col_int(st, 0);
	return rc;
}

enum rc db_chunk_prune(struct db_conn *c, int64_t hour, bool of_energy, struct err *err) {
	auto_stmt struct stmt *st = of_energy
		? stmt_get(c, "DELETE FROM chunk WHERE hour = $1 AND series_id IN " OF_ENERGY)
		: stmt_get(c, "DELETE FROM chunk WHERE hour = $1 AND series_id IN " OF_OTHERS);
	stmt_int(st, 1, hour);
	return stmt_run(st, NULL, err);
}

/* --- buckets ---------------------------------------------------------------------------------- */

static void bind_bucket(struct stmt *st, int64_t tier_ms, enum quantity q, int64_t begin_ms) {
	stmt_int(st, 1, tier_ms);
	stmt_text(st, 2, quantity_name(q));
	stmt_int(st, 3, begin_ms);
}

enum rc db_bucket_put(struct db_conn *c, int64_t tier_ms, enum quantity q, int64_t begin_ms,
	const void *bytes, size_t len, struct err *err) {
	auto_stmt struct stmt *st = stmt_get(c,
		"INSERT INTO bucket (tier_ms, quantity, begin_ms, aggregates)"
		" VALUES ($1, $2, $3, $4) ON CONFLICT (tier_ms, quantity, begin_ms)"
		" DO UPDATE SET aggregates = excluded.aggregates");
	bind_bucket(st, tier_ms, q, begin_ms);
	stmt_blob(st, 4, bytes, len);
	return stmt_run(st, NULL, err);
}

enum rc db_bucket_each(struct db_conn *c, int64_t tier_ms, enum quantity q, int64_t from_ms,
	int64_t to_ms, db_history_visit *visit, void *arg, struct err *err) {
	auto_stmt struct stmt *st = stmt_get(c,
		"SELECT begin_ms, aggregates FROM bucket WHERE tier_ms = $1 AND quantity = $2"
		" AND begin_ms >= $3 AND begin_ms < $4 ORDER BY begin_ms");
	bind_bucket(st, tier_ms, q, from_ms);
	stmt_int(st, 4, to_ms);
	return visit_rows(st, visit, arg, err);
}

enum rc db_bucket_prune(struct db_conn *c, int64_t tier_ms, enum quantity q, int64_t before_ms,
	int limit, int *removed, struct err *err) {
	auto_stmt struct stmt *st = stmt_get(c,
		"DELETE FROM bucket WHERE tier_ms = $1 AND quantity = $2 AND begin_ms IN"
		" (SELECT begin_ms FROM bucket WHERE tier_ms = $1 AND quantity = $2"
		" AND begin_ms < $3 ORDER BY begin_ms LIMIT $4)");
	bind_bucket(st, tier_ms, q, before_ms);
	stmt_int(st, 4, limit);
	return stmt_run(st, removed, err);
}

/* --- months ----------------------------------------------------------------------------------- */

static void bind_month(struct stmt *st, int64_t tier_ms, int64_t month, int64_t series_id) {
	stmt_int(st, 1, tier_ms);
	stmt_int(st, 2, month);
	stmt_int(st, 3, series_id);
}

enum rc db_month_get(struct db_conn *c, int64_t tier_ms, int64_t month, int64_t series_id,
	struct buf *out, struct err *err) {
	auto_stmt struct stmt *st = stmt_get(c,
		"SELECT aggregates FROM month"
		" WHERE tier_ms = $1 AND month = $2 AND series_id = $3");
	bind_month(st, tier_ms, month, series_id);
	return read_bytes(st, out, err);
}

enum rc db_month_put(struct db_conn *c, int64_t tier_ms, int64_t month, int64_t series_id,
	const void *bytes, size_t len, struct err *err) {
	auto_stmt struct stmt *st = stmt_get(c,
		"INSERT INTO month (tier_ms, month, series_id, aggregates)"
		" VALUES ($1, $2, $3, $4) ON CONFLICT (tier_ms, month, series_id)"
		" DO UPDATE SET aggregates = excluded.aggregates");
	bind_month(st, tier_ms, month, series_id);
	stmt_blob(st, 4, bytes, len);
	return stmt_run(st, NULL, err);
}

#define PRUNE_MONTHS \
	"DELETE FROM month WHERE tier_ms = $1 AND (month, series_id) IN" \
	" (SELECT month, series_id FROM month WHERE tier_ms = $1 AND month < $2 AND series_id IN "

enum rc db_month_prune(struct db_conn *c, int64_t tier_ms, int64_t before_month, bool of_energy,
	int limit, int *removed, struct err *err) {
	auto_stmt struct stmt *st = of_energy
		? stmt_get(c, PRUNE_MONTHS OF_ENERGY " ORDER BY month LIMIT $3)")
		: stmt_get(c, PRUNE_MONTHS OF_OTHERS " ORDER BY month LIMIT $3)");
	stmt_int(st, 1, tier_ms);
	stmt_int(st, 2, before_month);
	stmt_int(st, 3, limit);
	return stmt_run(st, removed, err);
}

/* --- what must be made again ------------------------------------------------------------------ */

enum rc db_stale_hours(struct db_conn *c, int limit, int64_t *hours, int *count, struct err *err) {
	auto_stmt struct stmt *st =
		stmt_get(c, "SELECT hour FROM stale_hour ORDER BY hour LIMIT $1");
	enum rc rc;
	bool row;
	*count = 0;
	stmt_int(st, 1, limit);
	while ((rc = stmt_next(st, &row, err)) == RC_OK && row)
		hours[(*count)++] = col_int(st, 0);
	return rc;
}

enum rc db_stale_hour_done(struct db_conn *c, int64_t hour, struct err *err) {
	auto_stmt struct stmt *st = stmt_get(c, "DELETE FROM stale_hour WHERE hour = $1");
	stmt_int(st, 1, hour);
	return stmt_run(st, NULL, err);
}

enum rc db_stale_days(struct db_conn *c, int64_t series_id, int64_t from_day, int64_t to_day,
	int limit, struct stale_day *days, int *count, struct err *err) {
	auto_stmt struct stmt *st = series_id
		? stmt_get(c,
			  "SELECT series_id, day FROM stale_day WHERE series_id = $1"
			  " AND (day < $2 OR day >= $3) LIMIT $4")
		: stmt_get(c,
			  "SELECT series_id, day FROM stale_day WHERE $1 = 0"
			  " AND (day < $2 OR day >= $3) LIMIT $4");
	enum rc rc;
	bool row;
	*count = 0;
	stmt_int(st, 1, series_id);
	stmt_int(st, 2, from_day);
	stmt_int(st, 3, to_day);
	stmt_int(st, 4, limit);
	while ((rc = stmt_next(st, &row, err)) == RC_OK && row)
		days[(*count)++] = (struct stale_day){col_int(st, 0), col_int(st, 1)};
	return rc;
}

enum rc db_stale_day_done(struct db_conn *c, const struct stale_day *day, struct err *err) {
	auto_stmt struct stmt *st =
		stmt_get(c, "DELETE FROM stale_day WHERE series_id = $1 AND day = $2");
	stmt_int(st, 1, day->series_id);
	stmt_int(st, 2, day->day);
	return stmt_run(st, NULL, err);
}
