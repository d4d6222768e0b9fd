/* Benchmark runs and own workloads (control.db); per-second series of runs too. */
#ifndef DRIVEWATT_DB_RUNS_H
#define DRIVEWATT_DB_RUNS_H

#include "db/db.h"
#include "model/run.h"

#define DB_RUN_RESULT_MAX (1024u * 1024)     /* result JSON */
#define DB_RUN_SERIES_MAX (8u * 1024 * 1024) /* series JSON */
#define DB_RUN_FIO_MAX (16u * 1024 * 1024)   /* fio's document, stored compressed */

enum rc must_check db_run_insert(struct db_conn *c, const struct run *r, struct err *err);
/* state, started_ms, ended_ms, progress, reason. RC_NOT_FOUND. */
enum rc must_check db_run_update(struct db_conn *c, const struct run *r, struct err *err);
/* (pid, start_ticks) of a live fio, 0 when it ended. */
enum rc must_check db_run_set_process(
	struct db_conn *c, const char *id, int64_t pid, uint64_t start_ticks, struct err *err);
/* The result as JSON text, the per-second series as JSON text, fio's own document; each may be
 * NULL (kept). fio's is compressed inside. */
enum rc must_check db_run_set_result(struct db_conn *c, const char *id, const char *result,
	const char *series, const char *fio, struct err *err);
enum rc must_check db_run_get(struct db_conn *c, const char *id, struct run *out, struct err *err);

/* *out is the caller's to free; RC_NOT_FOUND when there is none (yet). */
enum rc must_check db_run_document(struct db_conn *c, const char *id, enum run_document which,
	char **out, size_t *len, struct err *err);
/* Newest first; `before` is an id or "". state -1: any; drive_id NULL: any. */
enum rc must_check db_run_list(struct db_conn *c, int state, const char *drive_id,
	const char *before, int limit, bool (*visit)(void *arg, const struct run *r), void *arg,
	struct err *err);
/* Not final ones, with their process, for the restart. */
enum rc must_check db_run_each_open(struct db_conn *c,
	bool (*visit)(void *arg, const struct run *r, int64_t pid, uint64_t start_ticks), void *arg,
	struct err *err);
enum rc must_check db_run_delete(struct db_conn *c, const char *id, struct err *err);
/* Final runs that ended before then; returns how many went. */
enum rc must_check db_run_prune(
	struct db_conn *c, int64_t before_ms, int limit, int *removed, struct err *err);

/* Inserts or replaces, config_version too. */
enum rc must_check db_workload_put(struct db_conn *c, const struct workload *w, struct err *err);
enum rc must_check db_workload_get(
	struct db_conn *c, const char *name, struct workload *out, struct err *err);
enum rc must_check db_workload_delete(struct db_conn *c, const char *name, struct err *err);
enum rc must_check db_workload_each(struct db_conn *c,
	bool (*visit)(void *arg, const struct workload *w), void *arg, struct err *err);

#endif
