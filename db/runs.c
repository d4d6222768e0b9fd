#include "db/runs.h"

#include <string.h>

#include "db/compress.h"
#include "db/sqlite.h"

/* --- a workload's columns, in two tables ------------------------------------------------------ */

#define WORKLOAD_COLUMNS \
	"pattern, block_bytes, iodepth, jobs, read_pct, size_bytes, rate_bytes_per_s, direct"

/* Eight parameters from the one given. */
static void bind_workload(struct stmt *st, int first, const struct workload *w) {
	stmt_text(st, first, workload_pattern_name(w->pattern));
	stmt_int(st, first + 1, w->block_bytes);
	stmt_int(st, first + 2, w->iodepth);
	stmt_int(st, first + 3, w->jobs);
	stmt_int(st, first + 4, w->read_pct);
	stmt_int(st, first + 5, (int64_t)w->size_bytes);
	stmt_int(st, first + 6, (int64_t)w->rate_bytes_per_s);
	stmt_int(st, first + 7, w->direct);
}

static bool read_workload(struct stmt *st, int first, struct workload *w) {
	enum workload_pattern pattern;
	if (!workload_pattern_from_name(col_text(st, first), &pattern))
		return false;
	w->pattern = (uint8_t)pattern;
	w->block_bytes = (uint32_t)col_int(st, first + 1);
	w->iodepth = (uint16_t)col_int(st, first + 2);
	w->jobs = (uint16_t)col_int(st, first + 3);
	w->read_pct = (uint8_t)col_int(st, first + 4);
	w->size_bytes = (uint64_t)col_int(st, first + 5);
	w->rate_bytes_per_s = (uint64_t)col_int(st, first + 6);
	w->direct = col_int(st, first + 7) != 0;
	return true;
}

/* --- writing a run ---------------------------------------------------------------------------- */

#define RUN_COLUMNS \
	"id, state, owner, created_ms, started_ms, ended_ms, progress, reason, workload, " \
	"builtin, " \
	"power_state, runtime_s, ramp_s, max_write_bytes, override_signature, " \
	"labels, " WORKLOAD_COLUMNS
#define RUN_WORKLOAD 16 /* where the workload's columns begin */

static enum rc insert_row(struct db_conn *c, const struct run *r, struct err *err) {
	auto_stmt struct stmt *st = stmt_get(c,
		"INSERT INTO run (" RUN_COLUMNS ") VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10,"
		" $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24)");
	stmt_text(st, 1, r->id);
	stmt_text(st, 2, run_state_name(r->state));
	stmt_text(st, 3, r->owner);
	stmt_int(st, 4, r->created_ms);
	stmt_opt(st, 5, r->started_ms);
	stmt_opt(st, 6, r->ended_ms);
	stmt_real(st, 7, r->progress);
	stmt_text(st, 8, r->reason);
	stmt_text(st, 9, r->spec.workload.name);
	stmt_int(st, 10, r->spec.workload.builtin);
	stmt_int(st, 11, r->spec.power_state);
	stmt_int(st, 12, r->spec.runtime_s);
	stmt_int(st, 13, r->spec.ramp_s);
	stmt_int(st, 14, (int64_t)r->spec.max_write_bytes);
	stmt_int(st, 15, r->spec.override_signature);
	stmt_text(st, 16, r->spec.labels);
	bind_workload(st, RUN_WORKLOAD + 1, &r->spec.workload);
	return stmt_run(st, NULL, err);
}

static enum rc insert_drive(
	struct db_conn *c, const char *id, int position, const char *drive_id, struct err *err) {
	auto_stmt struct stmt *st = stmt_get(
		c, "INSERT INTO run_drive (run_id, position, drive_id) VALUES ($1, $2, $3)");
	stmt_text(st, 1, id);
	stmt_int(st, 2, position);
	stmt_text(st, 3, drive_id);
	return stmt_run(st, NULL, err);
}

static enum rc insert_confirmations(struct db_conn *c, const char *id, const char *kind,
	const char serials[][21], int n, struct err *err) {
	enum rc rc = RC_OK;
	for (int i = 0; rc == RC_OK && i < n; i++) {
		auto_stmt struct stmt *st = stmt_get(c,
			"INSERT INTO run_confirmation (run_id, kind, position, serial)"
			" VALUES ($1, $2, $3, $4)");
		stmt_text(st, 1, id);
		stmt_text(st, 2, kind);
		stmt_int(st, 3, i);
		stmt_text(st, 4, serials[i]);
		rc = stmt_run(st, NULL, err);
	}
	return rc;
}

enum rc db_run_insert(struct db_conn *c, const struct run *r, struct err *err) {
	const struct run_spec *s = &r->spec;
	if (s->drive_count > RUN_MAX_DRIVES || s->confirm_count > RUN_MAX_DRIVES ||
		s->confirm_in_use_count > RUN_MAX_DRIVES)
		return err_set(err, RC_TOO_LARGE, "a run has at most %d drives", RUN_MAX_DRIVES);
	enum rc rc = insert_row(c, r, err);
	for (int i = 0; rc == RC_OK && i < s->drive_count; i++)
		rc = insert_drive(c, r->id, i, s->drives[i], err);
	if (rc == RC_OK)
		rc = insert_confirmations(
			c, r->id, "destructive", s->confirm_destructive, s->confirm_count, err);
	if (rc == RC_OK)
		rc = insert_confirmations(
			c, r->id, "in_use", s->confirm_in_use, s->confirm_in_use_count, err);
	return rc;
}

enum rc db_run_update(struct db_conn *c, const struct run *r, struct err *err) {
	auto_stmt struct stmt *st = stmt_get(c,
		"UPDATE run SET state = $1, started_ms = $2, ended_ms = $3, progress = $4,"
		" reason = $5 WHERE id = $6");
	stmt_text(st, 1, run_state_name(r->state));
	stmt_opt(st, 2, r->started_ms);
	stmt_opt(st, 3, r->ended_ms);
	stmt_real(st, 4, r->progress);
	stmt_text(st, 5, r->reason);
	stmt_text(st, 6, r->id);
	return stmt_change(st, "benchmark", err);
}

enum rc db_run_set_process(
	struct db_conn *c, const char *id, int64_t pid, uint64_t start_ticks, struct err *err) {
	auto_stmt struct stmt *st =
		stmt_get(c, "UPDATE run SET pid = $1, start_ticks = $2 WHERE id = $3");
	stmt_int(st, 1, pid);
	stmt_int(st, 2, (int64_t)start_ticks);
	stmt_text(st, 3, id);
	return stmt_change(st, "benchmark", err);
}

enum rc db_run_delete(struct db_conn *c, const char *id, struct err *err) {
	auto_stmt struct stmt *st = stmt_get(c, "DELETE FROM run WHERE id = $1");
	stmt_text(st, 1, id);
	return stmt_change(st, "benchmark", err);
}

/* Only final runs have an end. */
enum rc db_run_prune(
	struct db_conn *c, int64_t before_ms, int limit, int *removed, struct err *err) {
	auto_stmt struct stmt *st = stmt_get(c,
		"DELETE FROM run WHERE id IN (SELECT id FROM run WHERE ended_ms < $1"
		" AND state IN ('completed', 'failed', 'cancelled', 'interrupted')"
		" ORDER BY ended_ms LIMIT $2)");
	stmt_int(st, 1, before_ms);
	stmt_int(st, 2, limit);
	return stmt_run(st, removed, err);
}

/* --- documents -------------------------------------------------------------------------------- */

static const struct {
	const char *name;
	size_t max;
} documents[] = {
	[RUN_DOCUMENT_RESULT] = {"result", DB_RUN_RESULT_MAX},
	[RUN_DOCUMENT_SERIES] = {"series", DB_RUN_SERIES_MAX},
	[RUN_DOCUMENT_FIO] = {"fio", DB_RUN_FIO_MAX},
};

static enum rc put_document(struct db_conn *c, const char *id, enum run_document which,
	const char *text, struct err *err) {
	const size_t len = strlen(text);
	auto_free void *bytes = NULL;
	size_t size;
	if (len > documents[which].max)
		return err_set(err, RC_TOO_LARGE, "a benchmark's %s has at most %zu bytes",
			documents[which].name, documents[which].max);
	const enum rc rc = text_deflate(text, len, &bytes, &size, err);
	if (rc != RC_OK)
		return rc;
	auto_stmt struct stmt *st = stmt_get(c,
		"INSERT INTO run_document (run_id, kind, text_bytes, body) VALUES ($1, $2, $3, $4)"
		" ON CONFLICT (run_id, kind) DO UPDATE SET text_bytes = excluded.text_bytes,"
		" body = excluded.body");
	stmt_text(st, 1, id);
	stmt_text(st, 2, documents[which].name);
	stmt_int(st, 3, (int64_t)len);
	stmt_blob(st, 4, bytes, size);
	return stmt_run(st, NULL, err);
}

enum rc db_run_set_result(struct db_conn *c, const char *id, const char *result, const char *series,
	const char *fio, struct err *err) {
	const char *const texts[] = {[RUN_DOCUMENT_RESULT] = result,
		[RUN_DOCUMENT_SERIES] = series,
		[RUN_DOCUMENT_FIO] = fio};
	enum rc rc = RC_OK;
	for (unsigned i = 0; rc == RC_OK && i < array_len(texts); i++) {
		if (texts[i])
			rc = put_document(c, id, (enum run_document)i, texts[i], err);
	}
	return rc;
}

enum rc db_run_document(struct db_conn *c, const char *id, enum run_document which, char **out,
	size_t *len, struct err *err) {
	auto_stmt struct stmt *st = stmt_get(
		c, "SELECT text_bytes, body FROM run_document WHERE run_id = $1 AND kind = $2");
	stmt_text(st, 1, id);
	stmt_text(st, 2, documents[which].name);
	const enum rc rc = stmt_one(st, "document", err);
	if (rc != RC_OK)
		return rc;
	const int64_t text_len = col_int(st, 0);
	if (text_len < 0 || (size_t)text_len > documents[which].max)
		return stmt_damaged(st, err);
	size_t size;
	const void *bytes = col_blob(st, 1, &size);
	*len = (size_t)text_len;
	return text_inflate(bytes, size, *len, out, err);
}

/* --- reading a run ---------------------------------------------------------------------------- */

static bool read_row(struct stmt *st, struct run *r) {
	memset(r, 0, sizeof(*r));
	col_copy(st, 0, r->id, sizeof(r->id));
	col_copy(st, 2, r->owner, sizeof(r->owner));
	r->created_ms = col_int(st, 3);
	r->started_ms = col_opt(st, 4);
	r->ended_ms = col_opt(st, 5);
	r->progress = col_real(st, 6);
	r->read_bytes_per_s = NONE;
	r->write_bytes_per_s = NONE;
	col_copy(st, 7, r->reason, sizeof(r->reason));
	col_copy(st, 8, r->spec.workload.name, sizeof(r->spec.workload.name));
	r->spec.workload.builtin = col_int(st, 9) != 0;
	r->spec.power_state = (int8_t)col_int(st, 10);
	r->spec.runtime_s = (uint32_t)col_int(st, 11);
	r->spec.ramp_s = (uint32_t)col_int(st, 12);
	r->spec.max_write_bytes = (uint64_t)col_int(st, 13);
	r->spec.override_signature = col_int(st, 14) != 0;
	col_copy(st, 15, r->spec.labels, sizeof(r->spec.labels));
	return run_state_from_name(col_text(st, 1), &r->state) &&
		read_workload(st, RUN_WORKLOAD, &r->spec.workload);
}

/* Texts of a run's child table in their order, into rows of width bytes. */
static enum rc read_texts(
	struct stmt *st, char *rows, size_t width, uint16_t *count, struct err *err) {
	enum rc rc;
	bool row;
	*count = 0;
	while ((rc = stmt_next(st, &row, err)) == RC_OK && row) {
		if (*count == RUN_MAX_DRIVES)
			return stmt_damaged(st, err);
		col_copy(st, 0, rows + *count * width, width);
		(*count)++;
	}
	return rc;
}

static enum rc read_drives(struct db_conn *c, struct run *r, struct err *err) {
	auto_stmt struct stmt *st =
		stmt_get(c, "SELECT drive_id FROM run_drive WHERE run_id = $1 ORDER BY position");
	stmt_text(st, 1, r->id);
	return read_texts(st, r->spec.drives[0], DRIVE_ID_SIZE, &r->spec.drive_count, err);
}

static enum rc read_confirmations(struct db_conn *c, const char *id, const char *kind,
	char serials[][21], uint16_t *count, struct err *err) {
	auto_stmt struct stmt *st = stmt_get(c,
		"SELECT serial FROM run_confirmation WHERE run_id = $1 AND kind = $2"
		" ORDER BY position");
	stmt_text(st, 1, id);
	stmt_text(st, 2, kind);
	return read_texts(st, serials[0], sizeof(serials[0]), count, err);
}

/* The row under st with what hangs from it. */
static enum rc read_run(struct db_conn *c, struct stmt *st, struct run *r, struct err *err) {
	struct run_spec *s = &r->spec;
	if (!read_row(st, r))
		return stmt_damaged(st, err);
	enum rc rc = read_drives(c, r, err);
	if (rc == RC_OK)
		rc = read_confirmations(
			c, r->id, "destructive", s->confirm_destructive, &s->confirm_count, err);
	if (rc == RC_OK)
		rc = read_confirmations(
			c, r->id, "in_use", s->confirm_in_use, &s->confirm_in_use_count, err);
	return rc;
}

enum rc db_run_get(struct db_conn *c, const char *id, struct run *out, struct err *err) {
	auto_stmt struct stmt *st = stmt_get(c, "SELECT " RUN_COLUMNS " FROM run WHERE id = $1");
	stmt_text(st, 1, id);
	const enum rc rc = stmt_one(st, "benchmark", err);
	return rc == RC_OK ? read_run(c, st, out, err) : rc;
}

/* Ids ascend with time. No id is greater than a tilde. */
enum rc db_run_list(struct db_conn *c, int state, const char *drive_id, const char *before,
	int limit, bool (*visit)(void *arg, const struct run *r), void *arg, struct err *err) {
	auto_stmt struct stmt *st = stmt_get(c,
		"SELECT " RUN_COLUMNS " FROM run WHERE id < $1 AND ($2 IS NULL OR state = $2)"
		" AND ($3 IS NULL OR id IN (SELECT run_id FROM run_drive WHERE drive_id = $3))"
		" ORDER BY id DESC LIMIT $4");
	enum rc rc;
	bool row;
	stmt_text(st, 1, *before ? before : "~");
	if (state >= 0)
		stmt_text(st, 2, run_state_name((enum run_state)state));
	stmt_text(st, 3, drive_id);
	stmt_int(st, 4, limit);
	while ((rc = stmt_next(st, &row, err)) == RC_OK && row) {
		struct run r;
		rc = read_run(c, st, &r, err);
		if (rc != RC_OK || !visit(arg, &r))
			break;
	}
	return rc;
}

enum rc db_run_each_open(struct db_conn *c,
	bool (*visit)(void *arg, const struct run *r, int64_t pid, uint64_t start_ticks), void *arg,
	struct err *err) {
	auto_stmt struct stmt *st = stmt_get(c,
		"SELECT " RUN_COLUMNS ", pid, start_ticks FROM run"
		" WHERE state IN ('queued', 'preparing', 'running') ORDER BY id");
	enum rc rc;
	bool row;
	while ((rc = stmt_next(st, &row, err)) == RC_OK && row) {
		struct run r;
		rc = read_run(c, st, &r, err);
		if (rc != RC_OK ||
			!visit(arg, &r, col_int(st, RUN_WORKLOAD + 8),
				(uint64_t)col_int(st, RUN_WORKLOAD + 9)))
			break;
	}
	return rc;
}

/* --- own workloads ---------------------------------------------------------------------------- */

#define OWN_COLUMNS "name, " WORKLOAD_COLUMNS ", config_version"

enum rc db_workload_put(struct db_conn *c, const struct workload *w, struct err *err) {
	auto_stmt struct stmt *st = stmt_get(c,
		"INSERT INTO workload (" OWN_COLUMNS ")"
		" VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)"
		" ON CONFLICT (name) DO UPDATE SET pattern = excluded.pattern,"
		" block_bytes = excluded.block_bytes, iodepth = excluded.iodepth,"
		" jobs = excluded.jobs, read_pct = excluded.read_pct,"
		" size_bytes = excluded.size_bytes, rate_bytes_per_s = excluded.rate_bytes_per_s,"
		" direct = excluded.direct, config_version = excluded.config_version");
	stmt_text(st, 1, w->name);
	bind_workload(st, 2, w);
	stmt_int(st, 10, w->config_version);
	return stmt_run(st, NULL, err);
}

static bool read_own_workload(struct stmt *st, struct workload *w) {
	memset(w, 0, sizeof(*w));
	col_copy(st, 0, w->name, sizeof(w->name));
	w->config_version = (uint32_t)col_int(st, 9);
	return read_workload(st, 1, w);
}

enum rc db_workload_get(
	struct db_conn *c, const char *name, struct workload *out, struct err *err) {
	auto_stmt struct stmt *st =
		stmt_get(c, "SELECT " OWN_COLUMNS " FROM workload WHERE name = $1");
	stmt_text(st, 1, name);
	const enum rc rc = stmt_one(st, "workload", err);
	if (rc == RC_OK && !read_own_workload(st, out))
		return stmt_damaged(st, err);
	return rc;
}

enum rc db_workload_delete(struct db_conn *c, const char *name, struct err *err) {
	auto_stmt struct stmt *st = stmt_get(c, "DELETE FROM workload WHERE name = $1");
	stmt_text(st, 1, name);
	return stmt_change(st, "workload", err);
}

enum rc db_workload_each(struct db_conn *c, bool (*visit)(void *arg, const struct workload *w),
	void *arg, struct err *err) {
	auto_stmt struct stmt *st =
		stmt_get(c, "SELECT " OWN_COLUMNS " FROM workload ORDER BY name");
	enum rc rc;
	bool row;
	while ((rc = stmt_next(st, &row, err)) == RC_OK && row) {
		struct workload w;
		if (!read_own_workload(st, &w))
			return stmt_damaged(st, err);
		if (!visit(arg, &w))
			break;
	}
	return rc;
}
