#include "db/migrate.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/id.h"

static enum rc read_number(struct db_conn *c, const char *sql, int64_t *out, struct err *err) {
	auto_stmt struct stmt *st = stmt_get(c, sql);
	const enum rc rc = stmt_one(st, "row", err);
	if (rc == RC_OK)
		*out = col_int(st, 0);
	return rc;
}

/* A fresh file is empty and gets our mark; any other must bear it. */
static enum rc check_owner(struct db_conn *c, const struct schema *s, struct err *err) {
	int64_t id = 0, objects = 0;
	enum rc rc = read_number(c, "PRAGMA application_id", &id, err);
	if (rc == RC_OK)
		rc = read_number(c, "SELECT count(*) FROM sqlite_schema", &objects, err);
	if (rc != RC_OK || id == s->application_id)
		return rc;
	if (id != 0 || objects != 0)
		return err_set(err, RC_UNSUPPORTED, "the file is not a %s database", s->name);

	char sql[64];
	snprintf(sql, sizeof(sql), "PRAGMA application_id = %d", s->application_id);
	return conn_exec(c, sql, err);
}

static void checksum(const char *sql, char out[ID_HASH_SIZE]) {
	id_hash(&sql, 1, out);
}

/* Compares what was applied with what we know; *version becomes the last one applied. */
static enum rc check_applied(
	struct db_conn *c, const struct schema *s, int *version, struct err *err) {
	auto_stmt struct stmt *st =
		stmt_get(c, "SELECT version, checksum FROM migration ORDER BY version");
	bool row;
	enum rc rc;
	*version = 0;
	while ((rc = stmt_next(st, &row, err)) == RC_OK && row) {
		const int64_t v = col_int(st, 0);
		if (v > s->count)
			return err_set(err, RC_UNSUPPORTED,
				"the %s database has schema version %lld, made by a newer program; "
				"this "
				"one knows %d",
				s->name, (long long)v, s->count);
		char known[ID_HASH_SIZE], kept[ID_HASH_SIZE];
		col_copy(st, 1, kept, sizeof(kept));
		if (v == *version + 1)
			checksum(s->migrations[v - 1], known);
		if (v != *version + 1 || strcmp(known, kept) != 0)
			return err_set(err, RC_CORRUPT,
				"migration %lld of the %s database is not the one that this "
				"program "
				"knows",
				(long long)v, s->name);
		*version = (int)v;
	}
	return rc;
}

static enum rc apply(struct db_conn *c, const char *sql, int version, struct err *err) {
	char sum[ID_HASH_SIZE];
	enum rc rc = conn_exec(c, sql, err);
	if (rc != RC_OK)
		return rc;
	auto_stmt struct stmt *st = stmt_get(
		c, "INSERT INTO migration (version, checksum, applied_ms) VALUES ($1, $2, $3)");
	checksum(sql, sum);
	stmt_int(st, 1, version);
	stmt_text(st, 2, sum);
	stmt_int(st, 3, clock_wall_ms());
	return stmt_run(st, NULL, err);
}

static enum rc bring_up(struct db_conn *c, const struct schema *s, struct err *err) {
	int version = 0;
	enum rc rc = check_owner(c, s, err);
	if (rc == RC_OK)
		rc = conn_exec(c,
			"CREATE TABLE IF NOT EXISTS migration (version INTEGER PRIMARY KEY,"
			" checksum TEXT NOT NULL, applied_ms INTEGER NOT NULL) STRICT",
			err);
	if (rc == RC_OK)
		rc = check_applied(c, s, &version, err);
	for (int v = version; rc == RC_OK && v < s->count; v++)
		rc = apply(c, s->migrations[v], v + 1, err);
	return rc;
}

enum rc migrate(struct db_conn *c, const struct schema *s, struct err *err) {
	enum rc rc = conn_begin(c, err);
	if (rc != RC_OK)
		return rc;
	rc = bring_up(c, s, err);
	if (rc == RC_OK)
		return conn_commit(c, err);
	conn_rollback(c);
	return rc;
}
