#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/parse.h"
#include "base/thread.h"
#include "core/energy/impl.h"
#include "db/samples.h"

/* --- taking in --- */

size_t energy_ingest(struct energy *e, const struct sample *s, size_t n) {
	struct pending *p = &e->pending;
	pthread_mutex_lock(&p->lock);
	size_t taken = p->max - p->count;
	if (taken > n)
		taken = n;
	memcpy(p->samples + p->count, s, taken * sizeof(*s));
	p->count += taken;
	p->dropped += (int64_t)(n - taken);
	pthread_mutex_unlock(&p->lock);
	metric_add(METRIC_SAMPLES_IN, (int64_t)taken);
	metric_add(METRIC_SAMPLES_DROPPED, (int64_t)(n - taken));
	return taken;
}

/* --- storing --- */

static size_t batch_max(const struct pending *p) {
	return p->max < DB_TICK_MAX_SAMPLES ? p->max : DB_TICK_MAX_SAMPLES;
}

/* Copies: samples leave the queue only once they are stored, so that readers miss none. */
static size_t copy_batch(struct energy *e) {
	struct pending *p = &e->pending;
	pthread_mutex_lock(&p->lock);
	size_t n = p->count < batch_max(p) ? p->count : batch_max(p);
	memcpy(e->batch, p->samples, n * sizeof(e->batch[0]));
	pthread_mutex_unlock(&p->lock);
	return n;
}

/* Returns how many were dropped meanwhile. */
static int64_t drop_batch(struct pending *p, size_t n) {
	pthread_mutex_lock(&p->lock);
	p->count -= n;
	memmove(p->samples, p->samples + n, p->count * sizeof(p->samples[0]));
	int64_t dropped = p->dropped;
	p->dropped = 0;
	pthread_mutex_unlock(&p->lock);
	return dropped;
}

static enum rc store(struct energy *e, size_t n, struct err *err) {
	struct db_conn *c;
	enum rc rc = db_write_begin(e->db, &c, err);
	if (rc)
		return rc;
	rc = db_tick_insert(c, clock_boot_id(), e->batch, n, err);
	if (!rc)
		return db_write_commit(c, err);
	db_write_abort(c);
	return rc;
}

static void note_failure(struct energy *e, const struct err *err) {
	if (!e->failing)
		log_err(LOG_LEVEL_ERROR, "energy", "samples cannot be stored for now", err);
	e->failing = true;
}

static void note_success(struct energy *e, int64_t dropped) {
	if (e->failing)
		log_info("energy", "samples are stored again, %lld were dropped",
			(long long)dropped);
	else if (dropped)
		log_warning("energy", "%lld samples were dropped: they came faster than stored",
			(long long)dropped);
	e->failing = false;
}

/* False when nothing is left to store, or it cannot be. */
static bool flush(struct energy *e) {
	struct err err = {0};
	size_t n = copy_batch(e);
	if (!n)
		return false;
	catalogue_note(&e->catalogue, e->batch, n);
	if (store(e, n, &err)) {
		note_failure(e, &err);
		return false;
	}
	note_success(e, drop_batch(&e->pending, n));
	return n == batch_max(&e->pending);
}

/* True once the engine ends. */
static bool wait_for_flush(struct energy *e) {
	struct timespec deadline = thread_deadline(e->config.flush_ms);
	struct pending *p = &e->pending;
	pthread_mutex_lock(&p->lock);
	while (!p->stopping && cond_wait_until(&p->wake, &p->lock, &deadline))
		;
	bool stopping = p->stopping;
	pthread_mutex_unlock(&p->lock);
	return stopping;
}

static void *run(void *arg) {
	struct energy *e = arg;
	bool stopping;
	do {
		stopping = wait_for_flush(e);
		while (flush(e))
			;
	} while (!stopping);
	return NULL;
}

/* --- life --- */

static enum rc check_config(const struct energy_config *c, struct err *err) {
	if (!c->max_series || !c->queue_samples || c->flush_ms <= 0 || c->max_gap_ms <= 0)
		return err_set(err, RC_INVALID, "the energy engine needs all its limits");
	return RC_OK;
}

static void init_locks(struct energy *e) {
	pthread_mutex_init(&e->catalogue.lock, NULL);
	pthread_mutex_init(&e->demands.lock, NULL);
	pthread_mutex_init(&e->pending.lock, NULL);
	cond_init(&e->pending.wake);
}

static enum rc start(struct energy *e, struct err *err) {
	e->pending.max = e->config.queue_samples;
	e->pending.samples = calloc(e->pending.max, sizeof(e->pending.samples[0]));
	e->batch = calloc(batch_max(&e->pending), sizeof(e->batch[0]));
	if (!e->pending.samples || !e->batch)
		return err_set(err, RC_NOMEM, "no memory for the queue of samples");
	enum rc rc = catalogue_load(e, err);
	if (!rc)
		rc = thread_start(&e->flusher, "energy", run, e, err);
	e->started = !rc;
	return rc;
}

struct energy *energy_new(const struct energy_config *config, struct db *samples, struct err *err) {
	if (check_config(config, err))
		return NULL;
	struct energy *e = calloc(1, sizeof(*e));
	if (!e) {
		err_set(err, RC_NOMEM, "no memory for the energy engine");
		return NULL;
	}
	e->config = *config;
	e->db = samples;
	init_locks(e);
	if (!start(e, err))
		return e;
	energy_free(e);
	return NULL;
}

static void stop(struct energy *e) {
	pthread_mutex_lock(&e->pending.lock);
	e->pending.stopping = true;
	pthread_cond_broadcast(&e->pending.wake);
	pthread_mutex_unlock(&e->pending.lock);
	pthread_join(e->flusher, NULL);
}

void energy_free(struct energy *e) {
	if (!e)
		return;
	if (e->started)
		stop(e);
	catalogue_release(&e->catalogue);
	pthread_mutex_destroy(&e->demands.lock);
	pthread_mutex_destroy(&e->pending.lock);
	pthread_cond_destroy(&e->pending.wake);
	free(e->pending.samples);
	free(e->batch);
	free(e);
}

/* --- demands --- */

static bool is_live(const struct demand *d, int64_t now_ms) {
	return d->host_id[0] && d->until_ms > now_ms;
}

/* The same wish again, else a free place; NULL when all are taken. */
static struct demand *place_for(
	struct demands *ds, const char *host_id, int64_t period_ms, int64_t now_ms) {
	struct demand *place = NULL;
	for (size_t i = 0; i < ENERGY_MAX_DEMANDS; i++) {
		struct demand *d = &ds->all[i];
		bool live = is_live(d, now_ms);
		if (live && d->period_ms == period_ms && strcmp(d->host_id, host_id) == 0)
			return d;
		if (!live && !place)
			place = d;
	}
	return place;
}

enum rc energy_demand(struct energy *e, const char *host_id, int64_t period_ms, int64_t until_ms,
	struct err *err) {
	int64_t now_ms = clock_wall_ms();
	if (period_ms <= 0)
		return err_set(err, RC_INVALID, "the period must be over 0");
	pthread_mutex_lock(&e->demands.lock);
	struct demand *d = place_for(&e->demands, host_id, period_ms, now_ms);
	if (d) {
		int64_t before_ms = is_live(d, now_ms) ? d->until_ms : until_ms;
		str_copy(d->host_id, sizeof(d->host_id), host_id);
		d->period_ms = period_ms;
		d->until_ms = before_ms > until_ms ? before_ms : until_ms;
	}
	pthread_mutex_unlock(&e->demands.lock);
	return d ? RC_OK : err_set(err, RC_FULL, "%d demands are open", ENERGY_MAX_DEMANDS);
}

int64_t energy_period(struct energy *e, const char *host_id, int64_t fallback_ms) {
	int64_t now_ms = clock_wall_ms(), period_ms = fallback_ms;
	pthread_mutex_lock(&e->demands.lock);
	for (size_t i = 0; i < ENERGY_MAX_DEMANDS; i++) {
		const struct demand *d = &e->demands.all[i];
		if (is_live(d, now_ms) && d->period_ms < period_ms &&
			strcmp(d->host_id, host_id) == 0)
			period_ms = d->period_ms;
	}
	pthread_mutex_unlock(&e->demands.lock);
	return period_ms;
}
