/* The query that db_tick_each stands on, for the test that looks at its plan. */
#ifndef DRIVEWATT_DB_TICKS_H
#define DRIVEWATT_DB_TICKS_H

/* $1 from, $2 to. Only ticks that end before $2 plus the longest tick can begin before $2. */
#define TICKS_IN_RANGE \
	"SELECT boot_id, samples FROM tick WHERE id IN" \
	" (SELECT id FROM tick WHERE to_ms >= $1 AND from_ms < $2" \
	" AND to_ms < $2 + (SELECT coalesce(max(to_ms - from_ms), 0) FROM tick))" \
	" ORDER BY id"

#endif
