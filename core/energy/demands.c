/* What should be sampled faster for a while. */
#include <string.h>

#include "base/clock.h"
#include "base/parse.h"
#include "core/energy/impl.h"

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
