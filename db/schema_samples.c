#include "db/migrate.h"

/*
 * The tick log holds what is in no chunk yet; it is read in order, at the start. Chunks are keyed
 * by hour first, so that an hour's end writes pages side by side. A bucket has the aggregates of
 * all series of a quantity in one stretch of time, a month those of one series in 32 days, in
 * stretches of tier_ms each. What is stale must be made again from chunks.
 */
static const char *const migrations[] = {
	/* 1 */
	"CREATE TABLE series (id INTEGER PRIMARY KEY AUTOINCREMENT, host_id TEXT NOT NULL,"
	"object TEXT NOT NULL, quantity TEXT NOT NULL, quality TEXT NOT NULL, source TEXT NOT NULL,"
	"used_ms INTEGER NOT NULL,"
	"UNIQUE (host_id, object, quantity, quality)) STRICT;"

	"CREATE TABLE tick (id INTEGER PRIMARY KEY, from_ms INTEGER NOT NULL,"
	"to_ms INTEGER NOT NULL, boot_id TEXT NOT NULL, samples BLOB NOT NULL) STRICT;"
	"CREATE INDEX tick_to ON tick (to_ms, from_ms);"
	"CREATE INDEX tick_span ON tick (to_ms - from_ms);",

	/* 2 */
	"DROP INDEX tick_to; DROP INDEX tick_span;"
	"ALTER TABLE series ADD COLUMN first_ms INTEGER;"
	"ALTER TABLE series ADD COLUMN last_ms INTEGER;"

	"CREATE TABLE boot (number INTEGER PRIMARY KEY,"
	"id TEXT NOT NULL UNIQUE) STRICT;"
	"CREATE TABLE mark (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT, WITHOUT ROWID;"

	"CREATE TABLE chunk (hour INTEGER NOT NULL, series_id INTEGER NOT NULL,"
	"samples BLOB NOT NULL, PRIMARY KEY (hour, series_id)) STRICT, WITHOUT ROWID;"
	"CREATE TABLE bucket (tier_ms INTEGER NOT NULL, quantity TEXT NOT NULL,"
	"begin_ms INTEGER NOT NULL, aggregates BLOB NOT NULL,"
	"PRIMARY KEY (tier_ms, quantity, begin_ms)) STRICT, WITHOUT ROWID;"
	"CREATE TABLE month (tier_ms INTEGER NOT NULL, month INTEGER NOT NULL,"
	"series_id INTEGER NOT NULL, aggregates BLOB NOT NULL,"
	"PRIMARY KEY (tier_ms, month, series_id)) STRICT, WITHOUT ROWID;"
	"CREATE TABLE stale_hour (hour INTEGER PRIMARY KEY) STRICT;"
	"CREATE TABLE stale_day (series_id INTEGER NOT NULL, day INTEGER NOT NULL,"
	"PRIMARY KEY (series_id, day)) STRICT, WITHOUT ROWID;",
};

const struct schema schema_samples = {
	.application_id = 0x44570002,
	.name = "samples",
	.migrations = migrations,
	.count = array_len(migrations),
};
