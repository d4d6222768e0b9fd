#include "db/events.h"

#include <string.h>

#include "db/sqlite.h"

/* --- events ----------------------------------------------------------------------------------- */

enum rc db_event_insert(struct db_conn *c, struct event *e, struct err *err) {
	auto_stmt struct stmt *st = stmt_get(c,
		"INSERT INTO event (at_ms, type, object, actor, data) VALUES ($1, $2, $3, $4, $5)"
		" RETURNING id");
	stmt_int(st, 1, e->at_ms);
	stmt_text(st, 2, event_type_name(e->type));
	stmt_text(st, 3, e->object);
	stmt_text(st, 4, e->actor);
	stmt_text(st, 5, e->data);
	const enum rc rc = stmt_one(st, "event", err);
	if (rc == RC_OK)
		e->id = col_int(st, 0);
	return rc;
}

static bool read_event(struct stmt *st, struct event *e) {
	*e = (struct event){.id = col_int(st, 0), .at_ms = col_int(st, 1), .data = col_lend(st, 5)};
	col_copy(st, 3, e->object, sizeof(e->object));
	col_copy(st, 4, e->actor, sizeof(e->actor));
	return event_type_from_name(col_text(st, 2), &e->type);
}

enum rc db_event_list(struct db_conn *c, int64_t after, int limit,
	bool (*visit)(void *arg, const struct event *e), void *arg, struct err *err) {
	auto_stmt struct stmt *st = stmt_get(c,
		"SELECT id, at_ms, type, object, actor, data FROM event WHERE id > $1"
		" ORDER BY id LIMIT $2");
	enum rc rc;
	bool row;
	stmt_int(st, 1, after);
	stmt_int(st, 2, limit);
	while ((rc = stmt_next(st, &row, err)) == RC_OK && row) {
		struct event e;
		if (!read_event(st, &e))
			return stmt_damaged(st, err);
		if (!visit(arg, &e))
			break;
	}
	return rc;
}

enum rc db_event_range(struct db_conn *c, int64_t *first, int64_t *last, struct err *err) {
	/* Two sub-queries, since only a lone min or max is looked up in the index. */
	auto_stmt struct stmt *st = stmt_get(c,
		"SELECT (SELECT coalesce(min(id), 0) FROM event),"
		" (SELECT coalesce(max(id), 0) FROM event)");
	const enum rc rc = stmt_one(st, "range", err);
	if (rc == RC_OK) {
		*first = col_int(st, 0);
		*last = col_int(st, 1);
	}
	return rc;
}

static enum rc prune(struct db_conn *c, const char *sql, int64_t before_ms, int limit, int *removed,
	struct err *err) {
	auto_stmt struct stmt *st = stmt_get(c, sql);
	stmt_int(st, 1, before_ms);
	stmt_int(st, 2, limit);
	return stmt_run(st, removed, err);
}

enum rc db_event_prune(
	struct db_conn *c, int64_t before_ms, int limit, int *removed, struct err *err) {
	return prune(c,
		"DELETE FROM event WHERE id IN"
		" (SELECT id FROM event WHERE at_ms < $1 ORDER BY at_ms, id LIMIT $2)",
		before_ms, limit, removed, err);
}

/* --- audit ------------------------------------------------------------------------------------ */

enum rc db_audit_insert(struct db_conn *c, struct audit_entry *a, struct err *err) {
	auto_stmt struct stmt *st = stmt_get(c,
		"INSERT INTO audit (at_ms, actor, address, request_id, action, object, outcome,"
		" detail) VALUES ($1, $2, $3, $4, $5, $6, $7, $8) RETURNING id");
	stmt_int(st, 1, a->at_ms);
	stmt_text(st, 2, a->actor);
	stmt_text(st, 3, a->address);
	stmt_text(st, 4, a->request_id);
	stmt_text(st, 5, a->action);
	stmt_text(st, 6, a->object);
	stmt_text(st, 7, a->outcome);
	stmt_text(st, 8, a->detail);
	const enum rc rc = stmt_one(st, "audit entry", err);
	if (rc == RC_OK)
		a->id = col_int(st, 0);
	return rc;
}

static void read_audit(struct stmt *st, struct audit_entry *a) {
	*a = (struct audit_entry){
		.id = col_int(st, 0), .at_ms = col_int(st, 1), .detail = col_lend(st, 8)};
	col_copy(st, 2, a->actor, sizeof(a->actor));
	col_copy(st, 3, a->address, sizeof(a->address));
	col_copy(st, 4, a->request_id, sizeof(a->request_id));
	col_copy(st, 5, a->action, sizeof(a->action));
	col_copy(st, 6, a->object, sizeof(a->object));
	col_copy(st, 7, a->outcome, sizeof(a->outcome));
}

enum rc db_audit_list(struct db_conn *c, int64_t before, int limit,
	bool (*visit)(void *arg, const struct audit_entry *a), void *arg, struct err *err) {
	auto_stmt struct stmt *st = stmt_get(c,
		"SELECT id, at_ms, actor, address, request_id, action, object, outcome, detail"
		" FROM audit WHERE id < $1 ORDER BY id DESC LIMIT $2");
	enum rc rc;
	bool row;
	stmt_int(st, 1, before);
	stmt_int(st, 2, limit);
	while ((rc = stmt_next(st, &row, err)) == RC_OK && row) {
		struct audit_entry a;
		read_audit(st, &a);
		if (!visit(arg, &a))
			break;
	}
	return rc;
}

enum rc db_audit_prune(
	struct db_conn *c, int64_t before_ms, int limit, int *removed, struct err *err) {
	return prune(c,
		"DELETE FROM audit WHERE id IN"
		" (SELECT id FROM audit WHERE at_ms < $1 ORDER BY at_ms, id LIMIT $2)",
		before_ms, limit, removed, err);
}

/* --- named values ----------------------------------------------------------------------------- */

enum rc db_meta_get(struct db_conn *c, const char *key, char *out, size_t size, struct err *err) {
	auto_stmt struct stmt *st = stmt_get(c, "SELECT value FROM meta WHERE key = $1");
	stmt_text(st, 1, key);
	const enum rc rc = stmt_one(st, "value", err);
	if (rc == RC_OK)
		col_copy(st, 0, out, size);
	return rc;
}

enum rc db_meta_set(struct db_conn *c, const char *key, const char *value, struct err *err) {
	auto_stmt struct stmt *st = stmt_get(c,
		"INSERT INTO meta (key, value) VALUES ($1, $2)"
		" ON CONFLICT (key) DO UPDATE SET value = excluded.value");
	stmt_text(st, 1, key);
	stmt_text(st, 2, value);
	return stmt_run(st, NULL, err);
}

/* --- idempotency keys ------------------------------------------------------------------------- */

enum rc db_idempotency_insert(struct db_conn *c, const struct idempotency *i, struct err *err) {
	auto_stmt struct stmt *st = stmt_get(c,
		"INSERT INTO idempotency (account_id, method, path, key, fingerprint, location,"
		" created_ms) VALUES ($1, $2, $3, $4, $5, $6, $7)");
	stmt_text(st, 1, i->account_id);
	stmt_text(st, 2, i->method);
	stmt_text(st, 3, i->path);
	stmt_text(st, 4, i->key);
	stmt_text(st, 5, i->fingerprint);
	stmt_text(st, 6, i->location);
	stmt_int(st, 7, i->created_ms);
	return stmt_run(st, NULL, err);
}

enum rc db_idempotency_get(struct db_conn *c, struct idempotency *i, struct err *err) {
	auto_stmt struct stmt *st = stmt_get(c,
		"SELECT fingerprint, location, created_ms FROM idempotency"
		" WHERE account_id = $1 AND method = $2 AND path = $3 AND key = $4");
	stmt_text(st, 1, i->account_id);
	stmt_text(st, 2, i->method);
	stmt_text(st, 3, i->path);
	stmt_text(st, 4, i->key);
	const enum rc rc = stmt_one(st, "idempotency key", err);
	if (rc != RC_OK)
		return rc;
	col_copy(st, 0, i->fingerprint, sizeof(i->fingerprint));
	col_copy(st, 1, i->location, sizeof(i->location));
	i->created_ms = col_int(st, 2);
	return RC_OK;
}

enum rc db_idempotency_prune(
	struct db_conn *c, int64_t before_ms, int limit, int *removed, struct err *err) {
	return prune(c,
		"DELETE FROM idempotency WHERE rowid IN"
		" (SELECT rowid FROM idempotency WHERE created_ms < $1 ORDER BY created_ms LIMIT "
		"$2)",
		before_ms, limit, removed, err);
}
