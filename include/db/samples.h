/*
 * Series and the tick log of their samples (samples.db). A tick is one row with everything that
 * one flush brought: far cheaper than a row a sample.
 */
#ifndef DRIVEWATT_DB_SAMPLES_H
#define DRIVEWATT_DB_SAMPLES_H

#include <stddef.h>

#include "db/db.h"
#include "model/sample.h"

#define DB_TICK_MAX_SAMPLES 65536

/* Finds or makes the series with its source and used_ms; fills s->id. */
enum rc must_check db_series_put(struct db_conn *c, struct series *s, struct err *err);
/* Moves used_ms on, never back. No error when there is no such series. */
enum rc must_check db_series_touch(struct db_conn *c, int64_t id, int64_t used_ms, struct err *err);
/* Deletes it unless it was used since; its samples must be gone. No id is ever given again. */
enum rc must_check db_series_forget(
	struct db_conn *c, int64_t id, int64_t before_ms, struct err *err);
enum rc must_check db_series_get(
	struct db_conn *c, int64_t id, struct series *out, struct err *err);
/* Each filter may be NULL, quantity -1. After id `after`, ascending, at most limit. first_ms and
 * last_ms are NONE here: the engine knows them. */
enum rc must_check db_series_list(struct db_conn *c, const char *host_id, const char *object,
	int quantity, int64_t after, int limit, bool (*visit)(void *arg, const struct series *s),
	void *arg, struct err *err);

/* One row for all n samples (1 … DB_TICK_MAX_SAMPLES), any order. */
enum rc must_check db_tick_insert(
	struct db_conn *c, const char *boot_id, const struct sample *s, size_t n, struct err *err);
/* Samples of one series with from_ms <= at_ms < to_ms, in order of insertion. */
enum rc must_check db_tick_each(struct db_conn *c, int64_t series_id, int64_t from_ms,
	int64_t to_ms, bool (*visit)(void *arg, const struct sample *s, const char *boot_id),
	void *arg, struct err *err);
enum rc must_check db_tick_prune(
	struct db_conn *c, int64_t before_ms, int limit, int *removed, struct err *err);

#endif
