#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/parse.h"
#include "base/thread.h"
#include "core/energy/impl.h"
#include "db/samples.h"

#define OPEN_BYTES (64u << 20)
#define DROPS_TOLD_MS 60000

/* --- keeping --- */

/* A queue may be longer than a tick. */
static enum rc store(struct energy *e, struct err *err) {
	struct db_conn *c;
	enum rc rc = db_write_begin(e->db, &c, err);
	if (rc)
		return rc;
	if (!e->boot_known)
		rc = db_boot_put(c, clock_boot_id(), e->intake.boot, err);
	for (size_t i = 0; i < e->batch_count && !rc; i += DB_TICK_MAX_SAMPLES) {
		size_t n = e->batch_count - i;
		rc = db_tick_insert(c, clock_boot_id(), e->batch + i,
			n < DB_TICK_MAX_SAMPLES ? n : DB_TICK_MAX_SAMPLES, err);
	}
	if (!rc)
		rc = db_write_commit(c, err);
	else
		db_write_abort(c);
	e->boot_known |= !rc;
	return rc;
}

static void note_failure(struct energy *e, const struct err *err) {
	if (!e->failing)
		log_err(LOG_LEVEL_ERROR, "energy", "samples cannot be stored for now", err);
	e->failing = true;
}

/* A producer that goes on so would fill the log. */
static void note_success(struct energy *e, int64_t dropped) {
	int64_t now_ms = clock_mono_ms();
	e->dropped += dropped;
	if (e->failing) {
		log_info("energy", "samples are stored again, %lld were dropped",
			(long long)e->dropped);
	} else if (e->dropped && now_ms >= e->told_ms + DROPS_TOLD_MS) {
		log_warning("energy",
			"%lld samples were dropped: too many, too old or of no series",
			(long long)e->dropped);
		e->told_ms = now_ms;
	} else {
		return;
	}
	e->failing = false;
	e->dropped = 0;
}

/* What could not be stored stays the batch until it can. */
static bool flush(struct energy *e) {
	struct err err = {0};
	if (!e->batch_count)
		intake_take(e);
	if (!e->batch_count)
		return true;
	if (store(e, &err)) {
		note_failure(e, &err);
		return false;
	}
	note_success(e, intake_stored(e));
	return true;
}

/* True when there is more to do at once. */
static bool keep_one(struct energy *e) {
	struct err err = {0};
	bool more = false;
	if (e->failing)
		return false;
	if (energy_keep(e, &more, &err)) {
		if (!e->behind)
			log_err(LOG_LEVEL_ERROR, "energy", "histories are not kept for now", &err);
		e->behind = true;
		return false;
	}
	e->behind = false;
	return more;
}

static void *run(void *arg) {
	struct energy *e = arg;
	bool more = false;
	while (intake_wait(&e->intake, more ? 0 : e->config.flush_ms)) {
		flush(e);
		more = keep_one(e);
		prune_if_asked(e);
	}
	while (flush(e) && e->intake.count)
		;
	return NULL;
}

/* --- life --- */

static enum rc check_config(const struct energy_config *c, struct err *err) {
	if (!c->max_series || !c->queue_samples || c->flush_ms <= 0 || c->max_gap_ms <= 0)
		return err_set(err, RC_INVALID, "the energy engine needs all its limits");
	return RC_OK;
}

static enum rc start(struct energy *e, struct err *err) {
	enum rc rc = intake_init(e, err);
	if (!rc)
		rc = catalogue_load(e, err);
	if (!rc)
		rc = energy_replay(e, err);
	if (!rc)
		rc = thread_start(&e->keeper, "energy", run, e, err);
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
	e->config.open_bytes = config->open_bytes ? config->open_bytes : OPEN_BYTES;
	e->rolled_ms = e->forced_ms = INT64_MIN / 2;
	e->told_ms = clock_mono_ms() - DROPS_TOLD_MS;
	pthread_mutex_init(&e->catalogue.lock, NULL);
	pthread_mutex_init(&e->demands.lock, NULL);
	subscribers_init(&e->subscribers);
	if (!start(e, err))
		return e;
	energy_free(e);
	return NULL;
}

static void stop(struct energy *e) {
	pthread_mutex_lock(&e->intake.lock);
	e->intake.stopping = true;
	pthread_cond_broadcast(&e->intake.wake);
	pthread_mutex_unlock(&e->intake.lock);
	pthread_join(e->keeper, NULL);
}

void energy_free(struct energy *e) {
	if (!e)
		return;
	if (e->started)
		stop(e);
	intake_release(&e->intake);
	catalogue_release(&e->catalogue);
	pthread_mutex_destroy(&e->demands.lock);
	subscribers_release(&e->subscribers);
	free(e->batch);
	free(e);
}
