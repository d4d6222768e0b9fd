#include "core/retention.h"

#include <malloc.h>
#include <pthread.h>

#include "base/clock.h"
#include "base/log.h"
#include "core/once.h"
#include "db/accounts.h"
#include "db/drives.h"
#include "db/events.h"
#include "db/runs.h"
#include "db/tasks.h"

#define BATCH 500
#define FIRST_PRUNE_MS 60000
#define DAY_MS INT64_C(86400000)

struct retention {
	struct retention_config config;
	struct db *control, *samples;
	struct energy *energy;
	struct timers *timers;
	struct pool *jobs;
	timer_id prune_timer, checkpoint_timer, probe_timer;
	pthread_mutex_t lock;
	pthread_cond_t idle;
	bool stopping;
	unsigned busy; /* jobs that are queued or run */
	bool pruning;  /* … one of which prunes */
};

/* --- pruning --- */

typedef enum rc prune_fn(
	struct db_conn *c, int64_t before_ms, int limit, int *removed, struct err *err);

static enum rc prune_batch(
	struct db *db, prune_fn *fn, int64_t before_ms, int *removed, struct err *err) {
	struct db_conn *c;
	enum rc rc = db_write_begin(db, &c, err);
	if (rc)
		return rc;
	rc = fn(c, before_ms, BATCH, removed, err);
	if (rc) {
		db_write_abort(c);
		return rc;
	}
	return db_write_commit(c, err);
}

static bool is_stopping(struct retention *r) {
	pthread_mutex_lock(&r->lock);
	const bool stopping = r->stopping;
	pthread_mutex_unlock(&r->lock);
	return stopping;
}

static void prune_table(struct retention *r, const char *what, prune_fn *fn, int64_t days) {
	const int64_t before_ms = clock_wall_ms() - days * DAY_MS;
	struct err err;
	int removed = BATCH;
	while (days && removed == BATCH && !is_stopping(r)) {
		if (prune_batch(r->control, fn, before_ms, &removed, &err)) {
			log_err(LOG_LEVEL_WARNING, "retention", what, &err);
			return;
		}
	}
}

static int64_t horizon_ms(int64_t days, int64_t at_most_days) {
	if (at_most_days && (!days || days > at_most_days))
		days = at_most_days;
	return days ? clock_wall_ms() - days * DAY_MS : NONE;
}

static void prune_samples(struct retention *r) {
	const struct retention_config *c = &r->config;
	const struct energy_horizons horizons = {
		.energy = {horizon_ms(c->sample_days, 0), horizon_ms(c->quarter_days, 0),
			horizon_ms(c->hour_days, 0)},
		.others = {horizon_ms(c->sample_days, c->other_days),
			horizon_ms(c->quarter_days, c->other_days),
			horizon_ms(c->hour_days, c->other_days)},
	};
	if (r->energy && !is_stopping(r))
		energy_prune(r->energy, &horizons);
}

static void prune(struct retention *r) {
	const struct retention_config *c = &r->config;
	prune_table(r, "events", db_event_prune, c->event_days);
	prune_table(r, "audit", db_audit_prune, c->audit_days);
	prune_table(r, "runs", db_run_prune, c->run_days);
	prune_table(r, "tasks", db_task_prune, c->task_days);
	prune_table(r, "idempotency keys", db_idempotency_prune, ONCE_KEPT_DAYS);
	prune_table(r, "tokens", db_token_prune, RETENTION_TOKEN_DAYS);
	prune_table(r, "drives", db_drive_prune, RETENTION_DRIVE_DAYS);
	prune_samples(r);
}

/* --- jobs --- */

static void end_job(struct retention *r) {
	pthread_mutex_lock(&r->lock);
	r->busy--;
	pthread_cond_broadcast(&r->idle);
	pthread_mutex_unlock(&r->lock);
}

static void submit(struct retention *r, pool_fn *fn) {
	pthread_mutex_lock(&r->lock);
	r->busy++;
	pthread_mutex_unlock(&r->lock);
	/* Left out when the queue is full: the next time comes. */
	if (!pool_submit(r->jobs, fn, r))
		end_job(r);
}

static void prune_job(void *arg) {
	struct retention *r = arg;
	pthread_mutex_lock(&r->lock);
	const bool mine = !r->pruning;
	r->pruning = true;
	pthread_mutex_unlock(&r->lock);
	if (mine) {
		prune(r);
		pthread_mutex_lock(&r->lock);
		r->pruning = false;
		pthread_mutex_unlock(&r->lock);
	}
	end_job(r);
}

/* Changes may be rare: that the store takes them again is not left for the next one to find. */
static void probe(struct db *control) {
	struct db_status s;
	struct db_conn *c;
	db_status_get(control, &s);
	if (db_write_begin(control, &c, NULL))
		return;
	if (db_meta_set(c, "last_failure", s.last_error, NULL))
		db_write_abort(c);
	else
		(void)!db_write_commit(c, NULL);
}

static void probe_job(void *arg) {
	struct retention *r = arg;
	probe(r->control);
	end_job(r);
}

static void checkpoint_job(void *arg) {
	struct retention *r = arg;
	db_checkpoint(r->control);
	db_checkpoint(r->samples);
	/* What a burst of long answers or slow senders took is free, but still the allocator's. */
	malloc_trim(0);
	end_job(r);
}

static void on_prune(void *arg) {
	submit(arg, prune_job);
}

static void on_checkpoint(void *arg) {
	submit(arg, checkpoint_job);
}

static void on_probe(void *arg) {
	struct retention *r = arg;
	struct db_status s;
	db_status_get(r->control, &s);
	if (!s.healthy)
		submit(r, probe_job);
}

/* --- life --- */

struct retention *retention_new(const struct retention_config *config, struct db *control,
	struct db *samples, struct energy *energy, struct timers *timers, struct pool *jobs,
	struct err *err) {
	struct retention *r = calloc(1, sizeof(*r));
	if (!r) {
		err_set(err, RC_NOMEM, "out of memory");
		return NULL;
	}
	r->config = *config;
	r->control = control;
	r->samples = samples;
	r->energy = energy;
	r->timers = timers;
	r->jobs = jobs;
	pthread_mutex_init(&r->lock, NULL);
	pthread_cond_init(&r->idle, NULL);
	const int64_t first_ms =
		config->prune_ms < FIRST_PRUNE_MS ? config->prune_ms : FIRST_PRUNE_MS;
	r->prune_timer = timer_start(timers, first_ms, config->prune_ms, on_prune, r);
	r->checkpoint_timer =
		timer_start(timers, config->checkpoint_ms, config->checkpoint_ms, on_checkpoint, r);
	r->probe_timer = timer_start(timers, config->probe_ms, config->probe_ms, on_probe, r);
	if (!r->prune_timer || !r->checkpoint_timer || !r->probe_timer) {
		err_set(err, RC_FULL, "no timer left for retention");
		retention_free(r);
		return NULL;
	}
	return r;
}

void retention_free(struct retention *r) {
	if (!r)
		return;
	timer_cancel(r->timers, r->prune_timer);
	timer_cancel(r->timers, r->checkpoint_timer);
	timer_cancel(r->timers, r->probe_timer);
	pthread_mutex_lock(&r->lock);
	r->stopping = true;
	while (r->busy)
		pthread_cond_wait(&r->idle, &r->lock);
	pthread_mutex_unlock(&r->lock);
	pthread_cond_destroy(&r->idle);
	pthread_mutex_destroy(&r->lock);
	free(r);
}
