/* Forgets samples, aggregates, then series that had neither samples nor a producer since. */
#include "base/clock.h"
#include "base/log.h"
#include "core/energy/impl.h"
#include "db/history.h"
#include "db/samples.h"

#define BATCH 512                  /* rows of a transaction */
#define TOUCH_MS INT64_C(86400000) /* how far the store may lag behind with used_ms */

static enum rc commit(struct db_conn *c, enum rc rc, struct err *err) {
	if (!rc)
		return db_write_commit(c, err);
	db_write_abort(c);
	return rc;
}

/* --- samples --- */

static const char *mark_of(bool of_energy) {
	return of_energy ? PRUNED_ENERGY : PRUNED_OTHERS;
}

/* One hour; RC_NOT_FOUND when none before the horizon is left. */
static enum rc forget_hour(
	struct db_conn *c, bool of_energy, int64_t before_hour, struct err *err) {
	int64_t hour;
	enum rc rc = db_mark_get(c, mark_of(of_energy), INT64_MIN, &hour, err);
	if (!rc)
		rc = db_chunk_hour(c, hour, &hour, err);
	if (!rc && hour >= before_hour)
		rc = RC_NOT_FOUND;
	if (!rc)
		rc = db_chunk_prune(c, hour, of_energy, err);
	return rc ? rc : db_mark_set(c, mark_of(of_energy), hour + 1, err);
}

static enum rc forget_samples(
	struct energy *e, bool of_energy, int64_t before_ms, struct err *err) {
	enum rc rc = RC_OK;
	while (!rc) {
		struct db_conn *c;
		rc = db_write_begin(e->db, &c, err);
		if (!rc)
			rc = commit(c, forget_hour(c, of_energy, before_ms / HOUR_MS, err), err);
	}
	return rc == RC_NOT_FOUND ? RC_OK : rc;
}

/* --- aggregates --- */

static enum rc forget_buckets(
	struct energy *e, int64_t tier_ms, bool of_energy, int64_t before_ms, struct err *err) {
	enum rc rc = RC_OK;
	for (enum quantity q = 0; q < QUANTITY_COUNT_; q++) {
		int removed = quantity_is_energy(q) == of_energy ? BATCH : 0;
		while (!rc && removed == BATCH) {
			struct db_conn *c;
			rc = db_write_begin(e->db, &c, err);
			if (!rc)
				rc = commit(c,
					db_bucket_prune(
						c, tier_ms, q, before_ms, BATCH, &removed, err),
					err);
		}
	}
	return rc;
}

static enum rc forget_months(
	struct energy *e, int64_t tier_ms, bool of_energy, int64_t before_ms, struct err *err) {
	int64_t before = floor_to(before_ms, MONTH_DAYS * DAY_MS) / (MONTH_DAYS * DAY_MS);
	int removed = BATCH;
	enum rc rc = RC_OK;
	while (!rc && removed == BATCH) {
		struct db_conn *c;
		rc = db_write_begin(e->db, &c, err);
		if (!rc)
			rc = commit(c,
				db_month_prune(c, tier_ms, before, of_energy, BATCH, &removed, err),
				err);
	}
	return rc;
}

static enum rc forget_tier(
	struct energy *e, int64_t tier_ms, bool of_energy, int64_t before_ms, struct err *err) {
	if (before_ms == NONE)
		return RC_OK;
	enum rc rc = forget_buckets(e, tier_ms, of_energy, before_ms, err);
	return rc ? rc : forget_months(e, tier_ms, of_energy, before_ms, err);
}

/* --- ranges --- */

static int64_t earliest(const struct energy_horizon *h) {
	int64_t ms = h->samples_ms < h->quarters_ms ? h->samples_ms : h->quarters_ms;
	return ms < h->hours_ms ? ms : h->hours_ms;
}

static enum rc cut_ranges(struct energy *e, bool of_energy, int64_t before_ms, struct err *err) {
	struct db_conn *c;
	if (before_ms == NONE)
		return RC_OK;
	before_ms = floor_to(before_ms, DAY_MS);
	enum rc rc = db_write_begin(e->db, &c, err);
	if (rc)
		return rc;
	rc = commit(c, db_series_cut(c, of_energy, before_ms, err), err);
	if (!rc)
		catalogue_cut(e, of_energy, before_ms);
	return rc;
}

static enum rc forget_kind(
	struct energy *e, bool of_energy, const struct energy_horizon *h, struct err *err) {
	enum rc rc = RC_OK;
	if (h->samples_ms != NONE)
		rc = forget_samples(e, of_energy, floor_to(h->samples_ms, DAY_MS), err);
	if (!rc)
		rc = forget_tier(e, QUARTER_MS, of_energy, h->quarters_ms, err);
	if (!rc)
		rc = forget_tier(e, HOUR_MS, of_energy, h->hours_ms, err);
	return rc ? rc : cut_ranges(e, of_energy, earliest(h), err);
}

/* --- series --- */

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
		n = catalogue_stale(e, TOUCH_MS, stale, BATCH);
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
		n = catalogue_prune(e, before_ms, ids, BATCH);
		if (n)
			rc = forget_ids(e, ids, n, before_ms, err);
	}
	return rc;
}

/* --- all of it --- */

/* What is about to go must have gone into what stays. */
static enum rc finish_before(struct energy *e, int64_t before_ms, struct err *err) {
	bool more = true;
	enum rc rc = RC_OK;
	e->forced_ms = before_ms;
	e->unforgotten = true;
	while (more && !rc)
		rc = energy_keep(e, &more, err);
	e->forced_ms = INT64_MIN / 2;
	return rc;
}

static int64_t later(int64_t a_ms, int64_t b_ms) {
	return a_ms > b_ms ? a_ms : b_ms;
}

static enum rc prune(struct energy *e, const struct energy_horizons *h, struct err *err) {
	int64_t samples_ms = later(h->energy.samples_ms, h->others.samples_ms);
	int64_t series_ms = earliest(&h->energy) < earliest(&h->others) ? earliest(&h->energy)
									: earliest(&h->others);
	enum rc rc = RC_OK;
	if (samples_ms != NONE) {
		samples_ms = floor_to(samples_ms, DAY_MS);
		pthread_mutex_lock(&e->intake.lock);
		e->intake.open.horizon_ms = samples_ms;
		pthread_mutex_unlock(&e->intake.lock);
		rc = finish_before(e, samples_ms, err);
	}
	if (!rc)
		rc = forget_kind(e, true, &h->energy, err);
	if (!rc)
		rc = forget_kind(e, false, &h->others, err);
	if (!rc)
		rc = touch_series(e, err);
	if (!rc && series_ms != NONE)
		rc = forget_series(e, series_ms - TOUCH_MS, err);
	return rc;
}

void prune_if_asked(struct energy *e) {
	struct intake *in = &e->intake;
	struct err err = {0};
	pthread_mutex_lock(&in->lock);
	const struct energy_horizons *wanted = in->prune;
	pthread_mutex_unlock(&in->lock);
	if (!wanted)
		return;
	if (prune(e, wanted, &err))
		log_err(LOG_LEVEL_WARNING, "energy", "old samples were not deleted", &err);
	pthread_mutex_lock(&in->lock);
	in->prune = NULL;
	pthread_cond_broadcast(&in->pruned);
	pthread_mutex_unlock(&in->lock);
}

void energy_prune(struct energy *e, const struct energy_horizons *horizons) {
	struct intake *in = &e->intake;
	pthread_mutex_lock(&in->lock);
	in->prune = horizons;
	pthread_cond_signal(&in->wake);
	while (in->prune)
		pthread_cond_wait(&in->pruned, &in->lock);
	pthread_mutex_unlock(&in->lock);
}
