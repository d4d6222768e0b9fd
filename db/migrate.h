/* Numbered, checksummed, transactional migrations: what makes a file's schema. */
#ifndef DRIVEWATT_DB_MIGRATE_H
#define DRIVEWATT_DB_MIGRATE_H

#include <stddef.h>
#include <stdint.h>

#include "base/rc.h"
#include "db/sqlite.h"

/* The n-th text leads from version n - 1 to n. Never changed once released: a checksum of each is
 * kept in the file. */
struct schema {
	int32_t application_id; /* in the file's header: tells our files from others' and each other
				 */
	const char *name;       /* for people */
	const char *const *migrations;
	int count;
};

extern const struct schema schema_control;
extern const struct schema schema_samples;

/* All or nothing, in one transaction. RC_UNSUPPORTED: newer than this program, or not ours;
 * RC_CORRUPT: an applied migration is not the one that we know. */
enum rc must_check migrate(struct db_conn *c, const struct schema *s, struct err *err);

#endif
