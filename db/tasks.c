#include "db/tasks.h"

#include <string.h>

#include "db/wish.h"

/* --- tasks ------------------------------------------------------------------------------------ */

#define TASK_COLUMNS \
	"id, kind, state, cancelling, account_id, actor, role, address, request_id, created_ms," \
	" started_ms, ended_ms"

enum rc db_task_insert(struct db_conn *c, const struct task *t, struct err *err) {
	auto_stmt struct stmt *st = stmt_get(c,
		"INSERT INTO task (" TASK_COLUMNS ")"
		" VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)");
	stmt_text(st, 1, t->id);
	stmt_text(st, 2, t->kind);
	stmt_text(st, 3, task_state_name(t->state));
	stmt_int(st, 4, t->cancelling);
	stmt_text(st, 5, t->who.account_id);
	stmt_text(st, 6, t->who.name);
	stmt_text(st, 7, role_name(t->who.role));
	stmt_text(st, 8, t->who.address);
	stmt_text(st, 9, t->who.request_id);
	stmt_int(st, 10, t->created_ms);
	stmt_opt(st, 11, t->started_ms);
	stmt_opt(st, 12, t->ended_ms);
	return stmt_run(st, NULL, err);
}

enum rc db_task_update(struct db_conn *c, const struct task *t, struct err *err) {
	auto_stmt struct stmt *st = stmt_get(c,
		"UPDATE task SET state = $1, cancelling = $2, started_ms = $3, ended_ms = $4"
		" WHERE id = $5");
	stmt_text(st, 1, task_state_name(t->state));
	stmt_int(st, 2, t->cancelling);
	stmt_opt(st, 3, t->started_ms);
	stmt_opt(st, 4, t->ended_ms);
	stmt_text(st, 5, t->id);
	return stmt_change(st, "task", err);
}

static bool read_task(struct stmt *st, struct task *t) {
	enum task_state state;
	*t = (struct task){
		.cancelling = col_int(st, 3) != 0,
		.created_ms = col_int(st, 9),
		.started_ms = col_opt(st, 10),
		.ended_ms = col_opt(st, 11),
	};
	col_copy(st, 0, t->id, sizeof(t->id));
	col_copy(st, 1, t->kind, sizeof(t->kind));
	col_copy(st, 4, t->who.account_id, sizeof(t->who.account_id));
	col_copy(st, 5, t->who.name, sizeof(t->who.name));
	col_copy(st, 7, t->who.address, sizeof(t->who.address));
	col_copy(st, 8, t->who.request_id, sizeof(t->who.request_id));
	if (!task_state_from_name(col_text(st, 2), &state) ||
		!role_from_name(col_text(st, 6), &t->who.role))
		return false;
	t->state = (uint8_t)state;
	return true;
}

static enum rc read_counts(struct db_conn *c, struct task *t, struct err *err) {
	auto_stmt struct stmt *st = stmt_get(
		c, "SELECT state, count(*) FROM task_target WHERE task_id = $1 GROUP BY state");
	enum target_state state;
	enum rc rc;
	bool row;
	stmt_text(st, 1, t->id);
	while ((rc = stmt_next(st, &row, err)) == RC_OK && row) {
		if (!target_state_from_name(col_text(st, 0), &state))
			return stmt_damaged(st, err);
		t->counts[state] = (unsigned)col_int(st, 1);
		t->total += t->counts[state];
	}
	return rc;
}

static enum rc visit_tasks(struct db_conn *c, struct stmt *st,
	bool (*visit)(void *arg, const struct task *t), void *arg, struct err *err) {
	enum rc rc;
	bool row;
	while ((rc = stmt_next(st, &row, err)) == RC_OK && row) {
		struct task t;
		if (!read_task(st, &t))
			return stmt_damaged(st, err);
		rc = read_counts(c, &t, err);
		if (rc != RC_OK || !visit(arg, &t))
			break;
	}
	return rc;
}

enum rc db_task_get(struct db_conn *c, const char *id, struct task *out, struct err *err) {
	auto_stmt struct stmt *st = stmt_get(c, "SELECT " TASK_COLUMNS " FROM task WHERE id = $1");
	stmt_text(st, 1, id);
	const enum rc rc = stmt_one(st, "task", err);
	if (rc != RC_OK)
		return rc;
	return read_task(st, out) ? read_counts(c, out, err) : stmt_damaged(st, err);
}

enum rc db_task_list(struct db_conn *c, int state, const char *kind, const char *before, int limit,
	bool (*visit)(void *arg, const struct task *t), void *arg, struct err *err) {
	auto_stmt struct stmt *st = stmt_get(c,
		"SELECT " TASK_COLUMNS " FROM task WHERE ($1 IS NULL OR state = $1)"
		" AND ($2 IS NULL OR kind = $2) AND ($3 = '' OR id < $3)"
		" ORDER BY id DESC LIMIT $4");
	stmt_text(st, 1, state < 0 ? NULL : task_state_name((enum task_state)state));
	stmt_text(st, 2, kind);
	stmt_text(st, 3, before);
	stmt_int(st, 4, limit);
	return visit_tasks(c, st, visit, arg, err);
}

enum rc db_task_each_open(struct db_conn *c, bool (*visit)(void *arg, const struct task *t),
	void *arg, struct err *err) {
	auto_stmt struct stmt *st = stmt_get(c,
		"SELECT " TASK_COLUMNS " FROM task WHERE state IN ('queued', 'running')"
		" ORDER BY id");
	return visit_tasks(c, st, visit, arg, err);
}

enum rc db_task_prune(
	struct db_conn *c, int64_t before_ms, int limit, int *removed, struct err *err) {
	auto_stmt struct stmt *st = stmt_get(c,
		"DELETE FROM task WHERE id IN (SELECT id FROM task WHERE ended_ms < $1"
		" ORDER BY ended_ms LIMIT $2)");
	stmt_int(st, 1, before_ms);
	stmt_int(st, 2, limit);
	return stmt_run(st, removed, err);
}

/* --- targets ---------------------------------------------------------------------------------- */

#define TARGET_COLUMNS \
	"task_id, position, object, state, outcome, nvme_status, reason, result, started_ms," \
	" ended_ms"

enum rc db_task_target_put(struct db_conn *c, const char *task_id, unsigned position,
	const struct task_target *t, struct err *err) {
	auto_stmt struct stmt *st = stmt_get(c,
		"INSERT INTO task_target (" TARGET_COLUMNS ")"
		" VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)"
		" ON CONFLICT (task_id, position) DO UPDATE SET state = excluded.state,"
		" outcome = excluded.outcome, nvme_status = excluded.nvme_status,"
		" reason = excluded.reason, result = excluded.result,"
		" started_ms = excluded.started_ms, ended_ms = excluded.ended_ms");
	stmt_text(st, 1, task_id);
	stmt_int(st, 2, position);
	stmt_text(st, 3, t->object);
	stmt_text(st, 4, target_state_name(t->state));
	stmt_text(st, 5, rc_name(t->outcome));
	stmt_int(st, 6, t->nvme_status);
	stmt_text(st, 7, t->reason);
	stmt_text(st, 8, t->result);
	stmt_opt(st, 9, t->started_ms);
	stmt_opt(st, 10, t->ended_ms);
	return stmt_run(st, NULL, err);
}

/* An outcome that this program does not know was one of a newer one. */
static enum rc outcome_of(const char *name) {
	for (int rc = RC_OK; rc < RC_COUNT_; rc++)
		if (name && strcmp(rc_name((enum rc)rc), name) == 0)
			return (enum rc)rc;
	return RC_INTERNAL;
}

static bool read_target(struct stmt *st, struct task_target *t) {
	enum target_state state;
	*t = (struct task_target){
		.outcome = outcome_of(col_text(st, 2)),
		.nvme_status = (uint16_t)col_int(st, 3),
		.started_ms = col_opt(st, 6),
		.ended_ms = col_opt(st, 7),
	};
	col_copy(st, 0, t->object, sizeof(t->object));
	col_copy(st, 4, t->reason, sizeof(t->reason));
	col_copy(st, 5, t->result, sizeof(t->result));
	if (!target_state_from_name(col_text(st, 1), &state))
		return false;
	t->state = (uint8_t)state;
	return true;
}

enum rc db_task_target_each(struct db_conn *c, const char *task_id, unsigned from, int limit,
	bool (*visit)(void *arg, unsigned position, const struct task_target *t), void *arg,
	struct err *err) {
	auto_stmt struct stmt *st = stmt_get(c,
		"SELECT object, state, outcome, nvme_status, reason, result, started_ms, ended_ms,"
		" position FROM task_target WHERE task_id = $1 AND position >= $2"
		" ORDER BY position LIMIT $3");
	enum rc rc;
	bool row;
	stmt_text(st, 1, task_id);
	stmt_int(st, 2, from);
	stmt_int(st, 3, limit);
	while ((rc = stmt_next(st, &row, err)) == RC_OK && row) {
		struct task_target t;
		if (!read_target(st, &t))
			return stmt_damaged(st, err);
		if (!visit(arg, (unsigned)col_int(st, 8), &t))
			break;
	}
	return rc;
}

/* --- changes of power ------------------------------------------------------------------------- */

enum rc db_power_change_put(struct db_conn *c, const char *task_id,
	const struct power_change *change, struct err *err) {
	auto_stmt struct stmt *st = stmt_get(c,
		"INSERT INTO power_change (task_id, clear, expires_ms, " WISH_COLUMNS ")"
		" VALUES ($1, $2, $3, $4, $5, $6)");
	stmt_text(st, 1, task_id);
	stmt_int(st, 2, change->clear);
	stmt_opt(st, 3, change->expires_ms);
	wish_bind(st, 4, &change->wish);
	return stmt_run(st, NULL, err);
}

enum rc db_power_change_get(
	struct db_conn *c, const char *task_id, struct power_change *out, struct err *err) {
	auto_stmt struct stmt *st = stmt_get(c,
		"SELECT clear, expires_ms, " WISH_COLUMNS " FROM power_change WHERE task_id = $1");
	stmt_text(st, 1, task_id);
	const enum rc rc = stmt_one(st, "change of power", err);
	if (rc == RC_OK)
		*out = (struct power_change){.clear = col_int(st, 0) != 0,
			.expires_ms = col_opt(st, 1),
			.wish = wish_read(st, 2)};
	return rc;
}
