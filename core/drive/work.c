#include <string.h>

#include "base/clock.h"
#include "core/drive/registry.h"

/*
 * The periodic part. The timer's thread only answers what is overdue; whatever may wait for a
 * source's socket is done in one job at a time.
 */

#define TICK_MIN_MS 10
#define TICK_MAX_MS 250
#define BATCH 64 /* drives asked for the same thing in one tick */
#define FIRST_HEALTH_MS 5000

struct ids {
	size_t count;
	char id[DRIVES_MAX][DRIVE_ID_SIZE];
};

static bool wants_identify(struct entry *e, int64_t now_ms unused_arg) {
	if (!e->want_identify || e->identifying || e->commands >= DRIVE_MAX_COMMANDS)
		return false;
	e->want_identify = false;
	e->identifying = true;
	return true;
}

static bool is_due(const struct entry *e, int64_t *due_ms, int64_t now_ms) {
	if (*due_ms > now_ms || e->d.state != DRIVE_LIVE || e->commands)
		return false;
	*due_ms = now_ms + e->ds->config.health_ms;
	return true;
}

/* A drive answers one of the two at a time: the one that waits longer goes first, or a short period
 * would starve the other. */
static bool wants_health(struct entry *e, int64_t now_ms) {
	return e->health_due_ms <= e->identify_due_ms && is_due(e, &e->health_due_ms, now_ms);
}

static bool wants_refresh(struct entry *e, int64_t now_ms) {
	return is_due(e, &e->identify_due_ms, now_ms);
}

static void collect(struct drives *ds, bool (*wants)(struct entry *e, int64_t now_ms), size_t max,
	struct ids *out) {
	const int64_t now_ms = clock_mono_ms();
	out->count = 0;
	pthread_rwlock_wrlock(&ds->lock);
	for (size_t i = 0; i < ds->count && out->count < max; i++) {
		if (wants(ds->entries[i], now_ms))
			memcpy(out->id[out->count++], ds->entries[i]->d.id, DRIVE_ID_SIZE);
	}
	pthread_rwlock_unlock(&ds->lock);
}

/* Those who came, or were reset, are asked in any case. */
static void identify(struct drives *ds, const struct ids *ids) {
	struct err err;
	for (size_t i = 0; i < ids->count; i++) {
		const enum rc rc =
			drives_submit(ds, ids->id[i], DRIVE_IDENTIFY, NULL, true, NULL, NULL, &err);
		if (rc == RC_OK)
			continue;
		/* The next scan will want it again. */
		pthread_rwlock_wrlock(&ds->lock);
		struct entry *e = registry_find(ds, ids->id[i]);
		if (e) {
			e->identifying = false;
			e->settled = true;
		}
		pthread_rwlock_unlock(&ds->lock);
	}
}

/* What cannot be asked now is asked a period later. */
static void poll_drives(struct drives *ds, const struct ids *ids, enum drive_verb verb) {
	struct err err;
	for (size_t i = 0; i < ids->count; i++)
		(void)!command_poll(ds, ids->id[i], verb, &err);
}

static void finish(struct drives *ds) {
	pthread_mutex_lock(&ds->progress_lock);
	pthread_rwlock_wrlock(&ds->lock);
	ds->working = false;
	pthread_rwlock_unlock(&ds->lock);
	pthread_cond_broadcast(&ds->progress);
	pthread_mutex_unlock(&ds->progress_lock);
}

static void work(void *arg) {
	struct drives *ds = arg;
	struct ids *ids = malloc(2 * sizeof(*ids));
	arrive_overdue(ds);
	drain_start_all(ds);
	if (ids) {
		collect(ds, wants_identify, DRIVES_MAX, ids);
		identify(ds, ids);
		/* Both before either is asked, else the one would keep the other waiting for ever.
		 */
		collect(ds, wants_health, BATCH, &ids[0]);
		collect(ds, wants_refresh, BATCH, &ids[1]);
		poll_drives(ds, &ids[0], DRIVE_SMART);
		poll_drives(ds, &ids[1], DRIVE_IDENTIFY);
	}
	free(ids);
	finish(ds);
}

void work_kick(struct drives *ds) {
	pthread_rwlock_wrlock(&ds->lock);
	const bool mine = ds->started && !ds->working && !ds->stopping;
	ds->working = ds->working || mine;
	pthread_rwlock_unlock(&ds->lock);
	if (mine && !pool_submit(ds->jobs, work, ds))
		finish(ds);
}

static void on_tick(void *arg) {
	struct drives *ds = arg;
	commands_expire(ds);
	work_kick(ds);
}

static void rescan(void *arg) {
	scan_all(arg);
	registry_end_call(arg);
}

void drives_rescan(struct drives *ds) {
	pthread_rwlock_wrlock(&ds->lock);
	const bool may = ds->started && !ds->stopping;
	ds->calling += may;
	pthread_rwlock_unlock(&ds->lock);
	/* Left out when all is full: the next one comes by itself. */
	if (may && !pool_submit(ds->jobs, rescan, ds))
		registry_end_call(ds);
}

static void on_rescan(void *arg) {
	drives_rescan(arg);
}

static int64_t tick_ms(const struct drives_config *c) {
	const int64_t ms = c->timeout_ms / 4;
	if (ms < TICK_MIN_MS)
		return TICK_MIN_MS;
	return ms > TICK_MAX_MS ? TICK_MAX_MS : ms;
}

void work_plan(struct entry *e) {
	const int64_t period_ms = e->ds->config.health_ms;
	if (!period_ms)
		return;
	/* An id is as good as random: it spreads the readings. */
	uint32_t spread;
	memcpy(&spread, e->d.id, sizeof(spread));
	e->health_due_ms = clock_mono_ms() +
		spread % (period_ms < FIRST_HEALTH_MS ? period_ms : FIRST_HEALTH_MS);
	e->identify_due_ms = e->health_due_ms + period_ms;
}

enum rc work_start(struct drives *ds, struct err *err) {
	const int64_t period_ms = tick_ms(&ds->config);
	ds->tick = timer_start(ds->timers, 0, period_ms, on_tick, ds);
	if (!ds->tick)
		return err_set(err, RC_FULL, "no timer left for the drives");
	if (!ds->config.rescan_ms)
		return RC_OK;
	ds->rescan =
		timer_start(ds->timers, ds->config.rescan_ms, ds->config.rescan_ms, on_rescan, ds);
	return ds->rescan ? RC_OK : err_set(err, RC_FULL, "no timer left for the drives");
}

void work_stop(struct drives *ds) {
	timer_cancel(ds->timers, ds->tick);
	timer_cancel(ds->timers, ds->rescan);
}
