#include "db/samples.h"

#include "db/pack.h"
#include "db/sqlite.h"

/* In version 1 of the bytes no sample took more than 40. */
#define TICK_MAX_BYTES (1 + 40 * DB_TICK_MAX_SAMPLES)

/* --- series ----------------------------------------------------------------------------------- */

#define SERIES_COLUMNS "id, host_id, object, quantity, quality, source, used_ms, first_ms, last_ms"

static bool read_series(struct stmt *st, struct series *s) {
	enum quantity quantity;
	enum quality quality;
	if (!quantity_from_name(col_text(st, 3), &quantity) ||
		!quality_from_name(col_text(st, 4), &quality))
		return false;
	*s = (struct series){
		.id = col_int(st, 0),
		.key = {.quantity = (uint8_t)quantity, .quality = (uint8_t)quality},
		.used_ms = col_int(st, 6),
		.first_ms = col_opt(st, 7),
		.last_ms = col_opt(st, 8),
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

enum rc db_series_range(
	struct db_conn *c, int64_t id, int64_t first_ms, int64_t last_ms, struct err *err) {
	auto_stmt struct stmt *st = stmt_get(c,
		"UPDATE series SET first_ms = min(coalesce(first_ms, $1), $1),"
		" last_ms = max(coalesce(last_ms, $2), $2) WHERE id = $3");
	stmt_int(st, 1, first_ms);
	stmt_int(st, 2, last_ms);
	stmt_int(st, 3, id);
	return stmt_run(st, NULL, err);
}

enum rc db_series_cut(struct db_conn *c, bool of_energy, int64_t before_ms, struct err *err) {
	auto_stmt struct stmt *st = stmt_get(c,
		"UPDATE series SET first_ms = iif(last_ms < $1, NULL, $1),"
		" last_ms = iif(last_ms < $1, NULL, last_ms) WHERE first_ms < $1"
		" AND (quantity IN ('power', 'energy_counter')) = $2");
	stmt_int(st, 1, before_ms);
	stmt_int(st, 2, of_energy);
	return stmt_run(st, NULL, err);
}

/* --- ticks ------------------------------------------------------------------------------------ */

enum rc db_boot_find(
	struct db_conn *c, const char *boot_id, int32_t *number, bool *known, struct err *err) {
	auto_stmt struct stmt *st = stmt_get(c,
		"SELECT coalesce(max(number), 0) + 1, (SELECT number FROM boot WHERE id = $1)"
		" FROM boot");
	stmt_text(st, 1, boot_id);
	const enum rc rc = stmt_one(st, "boot", err);
	if (rc == RC_OK) {
		*known = col_opt(st, 1) != NONE;
		*number = (int32_t)col_int(st, *known ? 1 : 0);
	}
	return rc;
}

enum rc db_boot_put(struct db_conn *c, const char *boot_id, int32_t number, struct err *err) {
	auto_stmt struct stmt *st =
		stmt_get(c, "INSERT INTO boot (number, id) VALUES ($1, $2) ON CONFLICT DO NOTHING");
	stmt_int(st, 1, number);
	stmt_text(st, 2, boot_id);
	return stmt_run(st, NULL, err);
}

static void find_span(const struct sample *s, size_t n, int64_t *from_ms, int64_t *to_ms) {
	*from_ms = *to_ms = s[0].at_ms;
	for (size_t i = 1; i < n; i++) {
		*from_ms = s[i].at_ms < *from_ms ? s[i].at_ms : *from_ms;
		*to_ms = s[i].at_ms > *to_ms ? s[i].at_ms : *to_ms;
	}
}

enum rc db_tick_insert(
	struct db_conn *c, const char *boot_id, const struct sample *s, size_t n, struct err *err) {
	struct buf bytes;
	int64_t from_ms, to_ms;
	if (n == 0 || n > DB_TICK_MAX_SAMPLES)
		return err_set(
			err, RC_TOO_LARGE, "a tick holds 1 to %d samples", DB_TICK_MAX_SAMPLES);
	buf_init(&bytes, TICK_MAX_BYTES);
	pack_samples(&bytes, s, n);
	enum rc rc = buf_status(&bytes, err);
	if (rc == RC_OK) {
		auto_stmt struct stmt *st = stmt_get(c,
			"INSERT INTO tick (from_ms, to_ms, boot_id, samples)"
			" VALUES ($1, $2, $3, $4)");
		find_span(s, n, &from_ms, &to_ms);
		stmt_int(st, 1, from_ms);
		stmt_int(st, 2, to_ms);
		stmt_text(st, 3, boot_id);
		stmt_blob(st, 4, bytes.data, bytes.len);
		rc = stmt_run(st, NULL, err);
	}
	buf_release(&bytes);
	return rc;
}

enum rc db_tick_newest(struct db_conn *c, int64_t *id, struct err *err) {
	auto_stmt struct stmt *st = stmt_get(c, "SELECT coalesce(max(id), 0) FROM tick");
	const enum rc rc = stmt_one(st, "tick", err);
	if (rc == RC_OK)
		*id = col_int(st, 0);
	return rc;
}

enum rc db_tick_next(struct db_conn *c, int64_t after, struct tick *out, struct err *err) {
	auto_stmt struct stmt *st = stmt_get(
		c, "SELECT id, boot_id, samples FROM tick WHERE id > $1 ORDER BY id LIMIT 1");
	size_t len;
	*out = (struct tick){0};
	stmt_int(st, 1, after);
	const enum rc rc = stmt_one(st, "tick", err);
	if (rc != RC_OK)
		return rc;
	out->id = col_int(st, 0);
	col_copy(st, 1, out->boot_id, sizeof(out->boot_id));
	const void *bytes = col_blob(st, 2, &len);
	if (!unpack_samples(bytes, len, DB_TICK_MAX_SAMPLES, &out->samples, &out->count)) {
		db_tick_release(out);
		return stmt_damaged(st, err);
	}
	return RC_OK;
}

void db_tick_release(struct tick *t) {
	free(t->samples);
	*t = (struct tick){0};
}

enum rc db_tick_prune(
	struct db_conn *c, int64_t before_id, int limit, int *removed, struct err *err) {
	auto_stmt struct stmt *st = stmt_get(c,
		"DELETE FROM tick WHERE id IN (SELECT id FROM tick"
		" WHERE id < $1 AND id < (SELECT max(id) FROM tick) ORDER BY id LIMIT $2)");
	stmt_int(st, 1, before_id);
	stmt_int(st, 2, limit);
	return stmt_run(st, removed, err);
}
