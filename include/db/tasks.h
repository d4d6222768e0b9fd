/* Tasks with a row per target, and what changes of power want (control.db). */
#ifndef DRIVEWATT_DB_TASKS_H
#define DRIVEWATT_DB_TASKS_H

#include "db/db.h"
#include "model/policy.h"
#include "model/task.h"

enum rc must_check db_task_insert(struct db_conn *c, const struct task *t, struct err *err);
/* state, started_ms, ended_ms. RC_NOT_FOUND. */
enum rc must_check db_task_update(struct db_conn *c, const struct task *t, struct err *err);
/* With the counts of its targets. RC_NOT_FOUND. */
enum rc must_check db_task_get(
	struct db_conn *c, const char *id, struct task *out, struct err *err);
/* Newest first, with counts; `before` is an id or "". state -1: any; kind NULL: any. */
enum rc must_check db_task_list(struct db_conn *c, int state, const char *kind, const char *before,
	int limit, bool (*visit)(void *arg, const struct task *t), void *arg, struct err *err);
/* Not final ones, oldest first. */
enum rc must_check db_task_each_open(struct db_conn *c,
	bool (*visit)(void *arg, const struct task *t), void *arg, struct err *err);
/* Final ones that ended before then. */
enum rc must_check db_task_prune(
	struct db_conn *c, int64_t before_ms, int limit, int *removed, struct err *err);

/* Inserts or replaces the row at this position. */
enum rc must_check db_task_target_put(struct db_conn *c, const char *task_id, unsigned position,
	const struct task_target *t, struct err *err);
/* By position, from `from` on, at most limit. */
enum rc must_check db_task_target_each(struct db_conn *c, const char *task_id, unsigned from,
	int limit, bool (*visit)(void *arg, unsigned position, const struct task_target *t),
	void *arg, struct err *err);

/* What a task of kind "power.change" wants of its drives. */
struct power_change {
	bool clear; /* ends the desired instead */
	struct power_wish wish;
	int64_t expires_ms; /* NONE never */
};
enum rc must_check db_power_change_put(
	struct db_conn *c, const char *task_id, const struct power_change *change, struct err *err);
/* RC_NOT_FOUND. */
enum rc must_check db_power_change_get(
	struct db_conn *c, const char *task_id, struct power_change *out, struct err *err);

#endif
