#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "core/power/power_impl.h"

#define BATCH 256 /* drives looked at in one tick */
#define FIRST_READ_MS 5000

int64_t reconcile_first_read_ms(const struct power *p, const char *drive_id) {
	const int64_t period_ms = p->config.reconcile_ms;
	if (!period_ms)
		return INT64_MAX;
	/* An id is as good as random: it spreads the readings. */
	uint32_t spread;
	memcpy(&spread, drive_id, sizeof(spread));
	return clock_mono_ms() + spread % (period_ms < FIRST_READ_MS ? period_ms : FIRST_READ_MS);
}

/* --- news of drives --- */

/* Under lock. */
static bool is_wished(const struct control *ct) {
	bool any = ct->release_to.state >= 0;
	for (int i = 0; i < ct->claim_count; i++)
		any = any || !claim_is_over(&ct->claims[i]);
	return any;
}

bool reconcile_holds(void *arg, const char *drive_id) {
	struct power *p = arg;
	if (p->config.observe_only)
		return false;
	pthread_mutex_lock(&p->lock);
	struct control *ct =
		p->policy_count ? control_find_or_add(p, drive_id) : control_find(p, drive_id);
	if (ct)
		policies_refresh(p, ct);
	const bool holds = ct && is_wished(ct);
	pthread_mutex_unlock(&p->lock);
	return holds;
}

static void on_identified(struct power *p, const char *drive_id) {
	struct drive d;
	auto_free struct drive_detail *detail = malloc(sizeof(*detail));
	if (!detail || drives_get(p->drives, drive_id, &d, NULL, detail, NULL))
		return;
	pthread_mutex_lock(&p->lock);
	struct control *ct = control_find_or_add(p, drive_id);
	if (ct) {
		ct->table = detail->power;
		ct->apst = detail->apst_supported;
		ct->present = true;
		ct->holds = true;
		policies_refresh(p, ct);
		control_renew(ct);
	}
	pthread_mutex_unlock(&p->lock);
	if (ct)
		power_apply(p, ct);
	else
		log_warning("power", "no room to keep anything about %s", drive_id);
}

void reconcile_abandon(struct power *p, struct control *ct) {
	pthread_mutex_lock(&p->lock);
	struct wait *list = waits_take(&ct->waiting);
	for (struct wait *w = list; w; w = w->next) {
		w->outcome.rc = err_set(&w->outcome.err, RC_UNAVAILABLE, "the drive is gone");
		ct->waiters -= w->kind != WAIT_LEASE;
	}
	pthread_mutex_unlock(&p->lock);
	waits_deliver(p, list, false);
}

static void on_gone(struct power *p, const char *drive_id) {
	pthread_mutex_lock(&p->lock);
	struct control *ct = control_find(p, drive_id);
	if (ct)
		ct->present = false;
	pthread_mutex_unlock(&p->lock);
	if (ct)
		reconcile_abandon(p, ct);
}

/* A drive that answers again is not kept waiting for the end of a back-off. */
static void on_state(struct power *p, const char *drive_id) {
	struct drive d;
	if (drives_get(p->drives, drive_id, &d, NULL, NULL, NULL) || d.state != DRIVE_LIVE)
		return;
	pthread_mutex_lock(&p->lock);
	struct control *ct = control_find(p, drive_id);
	if (ct)
		ct->next_try_ms = 0;
	pthread_mutex_unlock(&p->lock);
	if (ct)
		power_apply(p, ct);
}

static void on_power_read(struct power *p, const char *drive_id) {
	pthread_mutex_lock(&p->lock);
	struct control *ct = control_find(p, drive_id);
	pthread_mutex_unlock(&p->lock);
	if (ct)
		power_apply(p, ct);
}

static void on_labels(struct power *p, const char *drive_id) {
	pthread_mutex_lock(&p->lock);
	struct control *ct = control_find(p, drive_id);
	if (ct)
		policies_refresh(p, ct);
	pthread_mutex_unlock(&p->lock);
	if (ct)
		power_apply(p, ct);
}

void reconcile_on_news(void *arg, const char *drive_id, enum drive_news news) {
	static void (*const handlers[])(struct power * p, const char *drive_id) = {
		[DRIVE_NEWS_IDENTIFIED] = on_identified,
		[DRIVE_NEWS_STATE] = on_state,
		[DRIVE_NEWS_POWER_READ] = on_power_read,
		[DRIVE_NEWS_LABELS] = on_labels,
		[DRIVE_NEWS_GONE] = on_gone,
	};
	handlers[news](arg, drive_id);
}

/* --- the tick --- */

static bool is_due(const struct control *ct, int64_t now_ms) {
	if (ct->unrecorded || claims_released(ct))
		return true;
	if (!ct->present || ct->busy || now_ms < ct->next_try_ms)
		return false;
	return now_ms >= ct->next_read_ms || (!ct->confirmed && control_wanted(ct).state >= 0);
}

static int find_expired(const struct control *ct) {
	for (int i = 0; i < ct->claim_count; i++) {
		if (claim_is_over(&ct->claims[i]))
			return i;
	}
	return -1;
}

struct due {
	size_t count;
	struct control *controls[BATCH];
};

static void collect(struct power *p, struct due *out) {
	const int64_t now_ms = clock_mono_ms();
	out->count = 0;
	pthread_mutex_lock(&p->lock);
	for (size_t i = 0; i < p->count && out->count < BATCH; i++) {
		struct control *ct = p->controls[i];
		if (is_due(ct, now_ms) || find_expired(ct) >= 0)
			out->controls[out->count++] = ct;
	}
	pthread_mutex_unlock(&p->lock);
}

/* Under write_lock. As a person who ends it, but for who. */
static void expire_desired(struct power *p, struct control *ct) {
	struct err err;
	struct buf data;
	tell_wish(&data, ct->drive_id, &(struct power_wish){.state = -1, .limit_mw = NONE}, NONE,
		"expired");
	const struct claims_note n = {
		.who = &actor_system,
		.action = "power.expire_desired",
		.outcome = "ok",
		.event = EVENT_POWER_DESIRED,
		.data = buf_str(&data),
	};
	const enum rc rc = claims_store_desired(p, ct, &n, &err);
	buf_release(&data);
	if (rc)
		log_err(LOG_LEVEL_WARNING, "power", "ending a desired that is over", &err);
	pthread_mutex_lock(&p->lock);
	control_set_recorded(ct, rc == RC_OK);
	pthread_mutex_unlock(&p->lock);
}

/* False when nothing (more) has expired. */
static bool expire_one(struct power *p, struct control *ct) {
	struct claim claim;
	struct err err;
	pthread_mutex_lock(&p->write_lock);
	pthread_mutex_lock(&p->lock);
	const int at = find_expired(ct);
	if (at >= 0) {
		claim = ct->claims[at];
		claims_drop(ct, at);
	}
	pthread_mutex_unlock(&p->lock);
	/* A lease stays until the drive is back; a restart finds others expired again. */
	if (at >= 0 && claim.kind == CLAIM_DESIRED)
		expire_desired(p, ct);
	else if (at >= 0 && claim.kind != CLAIM_LEASE && claims_unstore(p, &claim, &err))
		log_err(LOG_LEVEL_WARNING, "power", "removing an expired claim", &err);
	pthread_mutex_unlock(&p->write_lock);
	return at >= 0;
}

/* What the store could not take when it was changed. */
static void record_again(struct power *p, struct control *ct) {
	struct err err;
	pthread_mutex_lock(&p->write_lock);
	pthread_mutex_lock(&p->lock);
	const bool needed = ct->unrecorded;
	pthread_mutex_unlock(&p->lock);
	if (needed && !claims_store_desired(p, ct, NULL, &err)) {
		pthread_mutex_lock(&p->lock);
		control_set_recorded(ct, true);
		pthread_mutex_unlock(&p->lock);
	}
	pthread_mutex_unlock(&p->write_lock);
}

/* The drive is where it was before the run: its leases have nothing to remind of any more. */
static void forget_leases(struct power *p, struct control *ct) {
	struct err err;
	pthread_mutex_lock(&p->write_lock);
	pthread_mutex_lock(&p->lock);
	const bool over = claims_released(ct);
	pthread_mutex_unlock(&p->lock);
	if (over && !claims_unstore_leases(p, ct, &err)) {
		pthread_mutex_lock(&p->lock);
		ct->owes_release = false;
		pthread_mutex_unlock(&p->lock);
	}
	pthread_mutex_unlock(&p->write_lock);
}

static void tick(void *arg) {
	struct power *p = arg;
	struct due due;
	collect(p, &due);
	for (size_t i = 0; i < due.count; i++) {
		while (expire_one(p, due.controls[i]))
			;
		record_again(p, due.controls[i]);
		forget_leases(p, due.controls[i]);
		power_apply(p, due.controls[i]);
	}
	pthread_mutex_lock(&p->lock);
	p->ticking = false;
	pthread_cond_broadcast(&p->idle);
	pthread_mutex_unlock(&p->lock);
}

void reconcile_on_tick(void *arg) {
	struct power *p = arg;
	pthread_mutex_lock(&p->lock);
	const bool mine = !p->ticking;
	p->ticking = true;
	pthread_mutex_unlock(&p->lock);
	if (!mine || pool_submit(p->jobs, tick, p))
		return;
	pthread_mutex_lock(&p->lock);
	p->ticking = false;
	pthread_cond_broadcast(&p->idle);
	pthread_mutex_unlock(&p->lock);
}
