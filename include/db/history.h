/*
 * Histories in samples.db: chunks of samples, the aggregates made from them, and what must be made
 * again. The bytes are the engine's; here they are kept and found. Hours, days and months are
 * counted from the epoch, a month has 32 days.
 */
#ifndef DRIVEWATT_DB_HISTORY_H
#define DRIVEWATT_DB_HISTORY_H

#include "base/buf.h"
#include "db/db.h"
#include "model/sample.h"

/* Named numbers: how far something has come. fallback where there is none. */
enum rc must_check db_mark_get(
	struct db_conn *c, const char *name, int64_t fallback, int64_t *value, struct err *err);
enum rc must_check db_mark_set(struct db_conn *c, const char *name, int64_t value, struct err *err);

/* Bytes of a row, in place of what out held; empty where there is no row. */
enum rc must_check db_chunk_get(
	struct db_conn *c, int64_t hour, int64_t series_id, struct buf *out, struct err *err);
/* Makes or replaces it; its hour and its series' day are stale then. */
enum rc must_check db_chunk_put(struct db_conn *c, int64_t hour, int64_t series_id,
	const void *bytes, size_t len, struct err *err);
/* Bytes are borrowed for the call; what the visitor returns ends it, RC_OK goes on. */
typedef enum rc db_history_visit(
	void *arg, int64_t key, const void *bytes, size_t len, struct err *err);
/* All of an hour, by series id. */
enum rc must_check db_chunk_each(
	struct db_conn *c, int64_t hour, db_history_visit *visit, void *arg, struct err *err);
/* The first hour from `from` on that has chunks; RC_NOT_FOUND. */
enum rc must_check db_chunk_hour(struct db_conn *c, int64_t from, int64_t *hour, struct err *err);
/* Those of the hour whose series are of power and energy, or those that are not. */
enum rc must_check db_chunk_prune(struct db_conn *c, int64_t hour, bool of_energy, struct err *err);

enum rc must_check db_bucket_put(struct db_conn *c, int64_t tier_ms, enum quantity q,
	int64_t begin_ms, const void *bytes, size_t len, struct err *err);
/* Those with from_ms <= begin < to_ms in their order, which is the key. */
enum rc must_check db_bucket_each(struct db_conn *c, int64_t tier_ms, enum quantity q,
	int64_t from_ms, int64_t to_ms, db_history_visit *visit, void *arg, struct err *err);
enum rc must_check db_bucket_prune(struct db_conn *c, int64_t tier_ms, enum quantity q,
	int64_t before_ms, int limit, int *removed, struct err *err);

enum rc must_check db_month_get(struct db_conn *c, int64_t tier_ms, int64_t month,
	int64_t series_id, struct buf *out, struct err *err);
enum rc must_check db_month_put(struct db_conn *c, int64_t tier_ms, int64_t month,
	int64_t series_id, const void *bytes, size_t len, struct err *err);
/* Months before this one, of series of power and energy or of those that are not. */
enum rc must_check db_month_prune(struct db_conn *c, int64_t tier_ms, int64_t before_month,
	bool of_energy, int limit, int *removed, struct err *err);

/* Visits hours in their order: the key. */
enum rc must_check db_stale_hours(
	struct db_conn *c, int limit, int64_t *hours, int *count, struct err *err);
enum rc must_check db_stale_hour_done(struct db_conn *c, int64_t hour, struct err *err);

struct stale_day {
	int64_t series_id, day;
};
/* Days of one series; or of all, series_id 0, outside of [from_day, to_day). */
enum rc must_check db_stale_days(struct db_conn *c, int64_t series_id, int64_t from_day,
	int64_t to_day, int limit, struct stale_day *days, int *count, struct err *err);
enum rc must_check db_stale_day_done(
	struct db_conn *c, const struct stale_day *day, struct err *err);

#endif
