/* Forgets samples, then series that had neither samples nor a producer since. */
#include "base/clock.h"
#include "base/log.h"
#include "core/energy/impl.h"
#include "db/samples.h"

#define BATCH 512                  /* rows of a transaction */
#define TOUCH_MS INT64_C(86400000) /* how far the store may lag behind with used_ms */

static enum rc commit(struct db_conn *c, enum rc rc, struct err *err) {
	if (!rc)
		return db_write_commit(c, err);
	db_write_abort(c);
	return rc;
}

static enum rc forget_ticks(struct energy *e, int64_t before_ms, struct err *err) {
	struct db_conn *c;
	int removed = BATCH;
	enum rc rc = RC_OK;
	while (!rc && removed == BATCH) {
		rc = db_write_begin(e->db, &c, err);
		if (!rc)
			rc = commit(c, db_tick_prune(c, before_ms, BATCH, &removed, err), err);
	}
	return rc;
}

static enum rc store_used(struct energy *e, const struct series *s, size_t n, struct err *err) {
	struct db_conn *c;
	enum rc rc = db_write_begin(e->db, &c, err);
	if (rc)
		return rc;
	for (size_t i = 0; i < n && !rc; i++)
		rc = db_series_touch(c, s[i].id, s[i].used_ms, err);
	return commit(c, rc, err);
}

/* So that the next life knows which are still in use. */
static enum rc touch_series(struct energy *e, struct err *err) {
	auto_free struct series *stale = calloc(BATCH, sizeof(*stale));
	if (!stale)
		return err_set(err, RC_NOMEM, "out of memory");
	enum rc rc = RC_OK;
	size_t n = BATCH;
	while (!rc && n == BATCH) {
		n = catalogue_stale(&e->catalogue, TOUCH_MS, stale, BATCH);
		rc = store_used(e, stale, n, err);
		if (!rc)
			catalogue_touched(&e->catalogue, stale, n);
	}
	return rc;
}

static enum rc forget_ids(
	struct energy *e, const int64_t *ids, size_t n, int64_t before_ms, struct err *err) {
	struct db_conn *c;
	enum rc rc = db_write_begin(e->db, &c, err);
	if (rc)
		return rc;
	for (size_t i = 0; i < n && !rc; i++)
		rc = db_series_forget(c, ids[i], before_ms, err);
	return commit(c, rc, err);
}

/* From memory first: a producer that asks for one meanwhile finds the row and keeps it by that. */
static enum rc forget_series(struct energy *e, int64_t before_ms, struct err *err) {
	int64_t ids[BATCH];
	enum rc rc = RC_OK;
	size_t n = BATCH;
	while (!rc && n == BATCH) {
		n = catalogue_prune(&e->catalogue, before_ms, ids, BATCH);
		if (n)
			rc = forget_ids(e, ids, n, before_ms, err);
	}
	return rc;
}

void energy_prune(struct energy *e, int64_t before_ms) {
	struct err err = {0};
	enum rc rc = forget_ticks(e, before_ms, &err);
	if (!rc)
		rc = touch_series(e, &err);
	if (!rc)
		rc = forget_series(e, before_ms - TOUCH_MS, &err);
	if (rc)
		log_err(LOG_LEVEL_WARNING, "energy", "old samples were not deleted", &err);
}
