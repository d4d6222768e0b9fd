#include "db/drives.h"

#include "db/wish.h"

/* --- drives ----------------------------------------------------------------------------------- */

#define DRIVE_COLUMNS "id, model, serial, labels, config_version, first_seen_ms, last_seen_ms"

static void read_drive(struct stmt *st, struct drive_record *d) {
	*d = (struct drive_record){
		.config_version = (uint32_t)col_int(st, 4),
		.first_seen_ms = col_int(st, 5),
		.last_seen_ms = col_int(st, 6),
	};
	col_copy(st, 0, d->id, sizeof(d->id));
	col_copy(st, 1, d->model, sizeof(d->model));
	col_copy(st, 2, d->serial, sizeof(d->serial));
	col_copy(st, 3, d->labels, sizeof(d->labels));
}

enum rc db_drive_seen(struct db_conn *c, const struct drive_record *d, struct err *err) {
	auto_stmt struct stmt *st = stmt_get(c,
		"INSERT INTO drive (" DRIVE_COLUMNS ") VALUES ($1, $2, $3, $4, $5, $6, $7)"
		" ON CONFLICT (id) DO UPDATE SET model = excluded.model, serial = excluded.serial,"
		" last_seen_ms = excluded.last_seen_ms");
	stmt_text(st, 1, d->id);
	stmt_text(st, 2, d->model);
	stmt_text(st, 3, d->serial);
	stmt_text(st, 4, d->labels);
	stmt_int(st, 5, d->config_version);
	stmt_int(st, 6, d->first_seen_ms);
	stmt_int(st, 7, d->last_seen_ms);
	return stmt_run(st, NULL, err);
}

enum rc db_drive_get(struct db_conn *c, const char *id, struct drive_record *out, struct err *err) {
	auto_stmt struct stmt *st =
		stmt_get(c, "SELECT " DRIVE_COLUMNS " FROM drive WHERE id = $1");
	stmt_text(st, 1, id);
	const enum rc rc = stmt_one(st, "drive", err);
	if (rc == RC_OK)
		read_drive(st, out);
	return rc;
}

enum rc db_drive_set_labels(struct db_conn *c, const char *id, const char *labels,
	uint32_t config_version, struct err *err) {
	auto_stmt struct stmt *st =
		stmt_get(c, "UPDATE drive SET labels = $1, config_version = $2 WHERE id = $3");
	stmt_text(st, 1, labels);
	stmt_int(st, 2, config_version);
	stmt_text(st, 3, id);
	return stmt_change(st, "drive", err);
}

enum rc db_drive_prune(
	struct db_conn *c, int64_t before_ms, int limit, int *removed, struct err *err) {
	auto_stmt struct stmt *st = stmt_get(c,
		"DELETE FROM drive WHERE id IN (SELECT id FROM drive WHERE last_seen_ms < $1"
		" AND labels IN ('', '{}') AND id NOT IN (SELECT drive_id FROM claim)"
		" ORDER BY id LIMIT $2)");
	stmt_int(st, 1, before_ms);
	stmt_int(st, 2, limit);
	return stmt_run(st, removed, err);
}

/* --- claims ----------------------------------------------------------------------------------- */

#define CLAIM_COLUMNS "id, drive_id, kind, owner, created_ms, expires_ms, " WISH_COLUMNS

static bool read_claim(struct stmt *st, struct claim *c) {
	*c = (struct claim){
		.wish = wish_read(st, 6),
		.created_ms = col_int(st, 4),
		.expires_ms = col_opt(st, 5),
	};
	col_copy(st, 0, c->id, sizeof(c->id));
	col_copy(st, 1, c->drive_id, sizeof(c->drive_id));
	col_copy(st, 3, c->owner, sizeof(c->owner));
	return claim_kind_from_name(col_text(st, 2), &c->kind);
}

enum rc db_claim_put(struct db_conn *c, struct claim *claim, struct err *err) {
	auto_stmt struct stmt *st = stmt_get(c,
		"INSERT INTO claim (" CLAIM_COLUMNS ") VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)"
		" ON CONFLICT (drive_id, kind, owner) DO UPDATE SET expires_ms = "
		"excluded.expires_ms,"
		" " WISH_EXCLUDED " RETURNING id, created_ms");
	stmt_text(st, 1, claim->id);
	stmt_text(st, 2, claim->drive_id);
	stmt_text(st, 3, claim_kind_name(claim->kind));
	stmt_text(st, 4, claim->owner);
	stmt_int(st, 5, claim->created_ms);
	stmt_opt(st, 6, claim->expires_ms);
	wish_bind(st, 7, &claim->wish);
	const enum rc rc = stmt_one(st, "claim", err);
	if (rc == RC_OK) {
		claim->created_ms = col_int(st, 1);
		col_copy(st, 0, claim->id, sizeof(claim->id));
	}
	return rc;
}

enum rc db_claim_delete_kind(struct db_conn *c, const char *drive_id, enum claim_kind kind,
	const char *owner, int *removed, struct err *err) {
	auto_stmt struct stmt *st = stmt_get(c,
		"DELETE FROM claim WHERE drive_id = $1 AND kind = $2"
		" AND ($3 IS NULL OR owner = $3)");
	stmt_text(st, 1, drive_id);
	stmt_text(st, 2, claim_kind_name(kind));
	stmt_text(st, 3, owner);
	return stmt_run(st, removed, err);
}

enum rc db_claim_each(struct db_conn *c, const char *drive_id,
	bool (*visit)(void *arg, const struct claim *claim), void *arg, struct err *err) {
	auto_stmt struct stmt *st = stmt_get(c,
		"SELECT " CLAIM_COLUMNS " FROM claim WHERE ($1 IS NULL OR drive_id = $1)"
		" ORDER BY drive_id, created_ms, id");
	enum rc rc;
	bool row;
	stmt_text(st, 1, drive_id);
	while ((rc = stmt_next(st, &row, err)) == RC_OK && row) {
		struct claim claim;
		if (!read_claim(st, &claim))
			return stmt_damaged(st, err);
		if (!visit(arg, &claim))
			break;
	}
	return rc;
}
