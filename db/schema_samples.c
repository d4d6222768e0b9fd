#include "db/migrate.h"

/*
 * A tick's range is that of its samples, late ones included, so ticks overlap and none is in
 * order. The second index gives the longest tick, which bounds how far a query must look.
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
};

const struct schema schema_samples = {
	.application_id = 0x44570002,
	.name = "samples",
	.migrations = migrations,
	.count = array_len(migrations),
};
