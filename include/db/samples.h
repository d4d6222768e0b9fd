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
/* Deletes it unless it was used since, or has a range; its samples must be gone. No id is ever
 * given again. */
enum rc must_check db_series_forget(
	struct db_conn *c, int64_t id, int64_t before_ms, struct err *err);
enum rc must_check db_series_get(
	struct db_conn *c, int64_t id, struct series *out, struct err *err);
/* Each filter may be NULL, quantity -1. After id `after`, ascending, at most limit. first_ms and
 * last_ms tell of what is in chunks: the engine knows what came since. */
enum rc must_check db_series_list(struct db_conn *c, const char *host_id, const char *object,
	int quantity, int64_t after, int limit, bool (*visit)(void *arg, const struct series *s),
	void *arg, struct err *err);

/* The series had samples from first_ms to last_ms; its range grows by them. */
enum rc must_check db_series_range(
	struct db_conn *c, int64_t id, int64_t first_ms, int64_t last_ms, struct err *err);
/* Nothing is kept from before before_ms: ranges, those of power and energy or all others, begin
 * then, and are NONE where nothing is left. */
enum rc must_check db_series_cut(
	struct db_conn *c, bool of_energy, int64_t before_ms, struct err *err);

/* The boot's number, which goes up from boot to boot; *known false: it is in the store only once
 * db_boot_put put it there. */
enum rc must_check db_boot_find(
	struct db_conn *c, const char *boot_id, int32_t *number, bool *known, struct err *err);
enum rc must_check db_boot_put(
	struct db_conn *c, const char *boot_id, int32_t number, struct err *err);

/* One row for all n samples (1 … DB_TICK_MAX_SAMPLES), any order; its id is over all before. */
enum rc must_check db_tick_insert(
	struct db_conn *c, const char *boot_id, const struct sample *s, size_t n, struct err *err);
/* 0: there was none. */
enum rc must_check db_tick_newest(struct db_conn *c, int64_t *id, struct err *err);

struct tick {
	int64_t id;
	char boot_id[37];
	struct sample *samples; /* owned */
	size_t count;
};
/* The first one with an id over `after`; RC_NOT_FOUND. */
enum rc must_check db_tick_next(
	struct db_conn *c, int64_t after, struct tick *out, struct err *err);
void db_tick_release(struct tick *t);
/* Deletes those with an id under before_id, but never the newest, so that ids go on. */
enum rc must_check db_tick_prune(
	struct db_conn *c, int64_t before_id, int limit, int *removed, struct err *err);

#endif
