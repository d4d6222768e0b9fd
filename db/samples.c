#include "db/samples.h"

#include "db/pack.h"
#include "db/sqlite.h"
#include "db/ticks.h"

/* --- series ----------------------------------------------------------------------------------- */

#define SERIES_COLUMNS "id, host_id, object, quantity, quality, source, used_ms"

static bool read_series(struct stmt *st, struct series *s) {
	enum quantity quantity;
	enum quality quality;
	if (!quantity_from_name(col_text(st, 3), &quantity) ||
		!quality_from_name(col_text(st, 4), &quality))
		return false;
	*s = (struct series){
		.id = col_int(st, 0),
		.key = {.quantity = (uint8_t)quantity, .quality = (uint8_t)quality},
		.first_ms = NONE,
		.last_ms = NONE,
		.used_ms = col_int(st, 6),
	};
	col_copy(st, 1, s->key.host_id, sizeof(s->key.host_id));
	col_copy(st, 2, s->key.object, sizeof(s->key.object));
	col_copy(st, 5, s->source, sizeof(s->source));
	return true;
}

/* The source may change, as when a BMC's firmware learns a better resource. */
enum rc db_series_put(struct db_conn *c, struct series *s, struct err *err) {
	auto_stmt struct stmt *st = stmt_get(c,
		"INSERT INTO series (host_id, object, quantity, quality, source, used_ms)"
		" VALUES ($1, $2, $3, $4, $5, $6)"
		" ON CONFLICT (host_id, object, quantity, quality) DO UPDATE"
		" SET source = excluded.source, used_ms = excluded.used_ms RETURNING id");
	stmt_text(st, 1, s->key.host_id);
	stmt_text(st, 2, s->key.object);
	stmt_text(st, 3, quantity_name(s->key.quantity));
	stmt_text(st, 4, quality_name(s->key.quality));
	stmt_text(st, 5, s->source);
	stmt_int(st, 6, s->used_ms);
	const enum rc rc = stmt_one(st, "series", err);
	if (rc == RC_OK)
		s->id = col_int(st, 0);
	return rc;
}

enum rc db_series_touch(struct db_conn *c, int64_t id, int64_t used_ms, struct err *err) {
	auto_stmt struct stmt *st =
		stmt_get(c, "UPDATE series SET used_ms = $1 WHERE id = $2 AND used_ms < $1");
	stmt_int(st, 1, used_ms);
	stmt_int(st, 2, id);
	return stmt_run(st, NULL, err);
}

enum rc db_series_forget(struct db_conn *c, int64_t id, int64_t before_ms, struct err *err) {
	auto_stmt struct stmt *st =
		stmt_get(c, "DELETE FROM series WHERE id = $1 AND used_ms < $2");
	stmt_int(st, 1, id);
	stmt_int(st, 2, before_ms);
	return stmt_run(st, NULL, err);
}

enum rc db_series_get(struct db_conn *c, int64_t id, struct series *out, struct err *err) {
	auto_stmt struct stmt *st =
		stmt_get(c, "SELECT " SERIES_COLUMNS " FROM series WHERE id = $1");
	stmt_int(st, 1, id);
	const enum rc rc = stmt_one(st, "series", err);
	if (rc == RC_OK && !read_series(st, out))
		return stmt_damaged(st, err);
	return rc;
}

enum rc db_series_list(struct db_conn *c, const char *host_id, const char *object, int quantity,
	int64_t after, int limit, bool (*visit)(void *arg, const struct series *s), void *arg,
	struct err *err) {
	auto_stmt struct stmt *st = stmt_get(c,
		"SELECT " SERIES_COLUMNS " FROM series WHERE ($1 IS NULL OR host_id = $1)"
		" AND ($2 IS NULL OR object = $2) AND ($3 IS NULL OR quantity = $3)"
		" AND id > $4 ORDER BY id LIMIT $5");
	enum rc rc;
	bool row;
	stmt_text(st, 1, host_id);
	stmt_text(st, 2, object);
	if (quantity >= 0)
		stmt_text(st, 3, quantity_name((enum quantity)quantity));
	stmt_int(st, 4, after);
	stmt_int(st, 5, limit);
	while ((rc = stmt_next(st, &row, err)) == RC_OK && row) {
		struct series s;
		if (!read_series(st, &s))
			return stmt_damaged(st, err);
		if (!visit(arg, &s))
			break;
	}
	return rc;
}

/* --- ticks ------------------------------------------------------------------------------------ */

enum rc db_tick_insert(
	struct db_conn *c, const char *boot_id, const struct sample *s, size_t n, struct err *err) {
	if (n == 0 || n > DB_TICK_MAX_SAMPLES)
		return err_set(
			err, RC_TOO_LARGE, "a tick holds 1 to %d samples", DB_TICK_MAX_SAMPLES);
	auto_free uint8_t *bytes = malloc(pack_bound(n));
	if (!bytes)
		return err_set(err, RC_NOMEM, "out of memory for %zu samples", n);
	int64_t from_ms = s[0].at_ms, to_ms = s[0].at_ms;
	for (size_t i = 1; i < n; i++) {
		from_ms = s[i].at_ms < from_ms ? s[i].at_ms : from_ms;
		to_ms = s[i].at_ms > to_ms ? s[i].at_ms : to_ms;
	}
	auto_stmt struct stmt *st = stmt_get(
		c, "INSERT INTO tick (from_ms, to_ms, boot_id, samples) VALUES ($1, $2, $3, $4)");
	stmt_int(st, 1, from_ms);
	stmt_int(st, 2, to_ms);
	stmt_text(st, 3, boot_id);
	stmt_blob(st, 4, bytes, pack_samples(s, n, bytes));
	return stmt_run(st, NULL, err);
}

/* What db_tick_each looks for, and to whom it shows it. */
struct search {
	int64_t series_id, from_ms, to_ms;
	bool (*visit)(void *arg, const struct sample *s, const char *boot_id);
	void *arg;
};

/* False when the visitor stopped. */
static enum rc search_tick(
	struct stmt *st, const struct search *find, bool *more, struct err *err) {
	struct unpacker u;
	struct sample s;
	size_t len;
	const char *boot_id = col_text(st, 0);
	const void *bytes = col_blob(st, 1, &len);
	if (!unpack_begin(&u, bytes, len))
		return stmt_damaged(st, err);
	enum unpacked got;
	while (*more && (got = unpack_next(&u, &s)) != UNPACKED_END) {
		if (got == UNPACKED_DAMAGED)
			return stmt_damaged(st, err);
		if (s.series_id == find->series_id && s.at_ms >= find->from_ms &&
			s.at_ms < find->to_ms)
			*more = find->visit(find->arg, &s, boot_id);
	}
	return RC_OK;
}

enum rc db_tick_each(struct db_conn *c, int64_t series_id, int64_t from_ms, int64_t to_ms,
	bool (*visit)(void *arg, const struct sample *s, const char *boot_id), void *arg,
	struct err *err) {
	const struct search find = {series_id, from_ms, to_ms, visit, arg};
	auto_stmt struct stmt *st = stmt_get(c, TICKS_IN_RANGE);
	enum rc rc;
	bool row, more = true;
	stmt_int(st, 1, from_ms);
	stmt_int(st, 2, to_ms);
	while (more && (rc = stmt_next(st, &row, err)) == RC_OK && row) {
		rc = search_tick(st, &find, &more, err);
		if (rc != RC_OK)
			break;
	}
	return rc;
}

enum rc db_tick_prune(
	struct db_conn *c, int64_t before_ms, int limit, int *removed, struct err *err) {
	auto_stmt struct stmt *st = stmt_get(c,
		"DELETE FROM tick WHERE id IN"
		" (SELECT id FROM tick WHERE to_ms < $1 ORDER BY to_ms LIMIT $2)");
	stmt_int(st, 1, before_ms);
	stmt_int(st, 2, limit);
	return stmt_run(st, removed, err);
}
