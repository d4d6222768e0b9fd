#include "core/power/power_impl.h"

#include <string.h>

#include "base/clock.h"
#include "base/parse.h"
#include "base/thread.h"

#define TICK_MIN_MS 10
#define TICK_MAX_MS 1000

/* --- life --- */

struct power *power_new(const struct power_config *config, struct db *control,
	struct events *events, struct drives *drives, struct timers *timers, struct pool *jobs,
	struct err *err) {
	struct power *p = calloc(1, sizeof(*p));
	if (!p) {
		err_set(err, RC_NOMEM, "out of memory");
		return NULL;
	}
	p->config = *config;
	p->control_db = control;
	p->events = events;
	p->drives = drives;
	p->timers = timers;
	p->jobs = jobs;
	pthread_mutex_init(&p->write_lock, NULL);
	pthread_mutex_init(&p->lock, NULL);
	cond_init(&p->idle);
	p->claims_version = clock_first_version();
	drives_set_gate(drives, reconcile_holds, p);
	if (drives_watch(drives, reconcile_on_news, p, err)) {
		power_free(p);
		return NULL;
	}
	return p;
}

static int64_t tick_ms(const struct power_config *c) {
	const int64_t ms = c->reconcile_ms ? c->reconcile_ms / 16 : TICK_MAX_MS;
	if (ms < TICK_MIN_MS)
		return TICK_MIN_MS;
	return ms > TICK_MAX_MS ? TICK_MAX_MS : ms;
}

enum rc power_start(struct power *p, struct err *err) {
	const int64_t period_ms = tick_ms(&p->config);
	enum rc rc = claims_load(p, err);
	if (!rc)
		rc = policies_load(p, err);
	if (rc)
		return rc;
	p->tick = timer_start(p->timers, period_ms, period_ms, reconcile_on_tick, p);
	return p->tick ? RC_OK : err_set(err, RC_FULL, "no timer left for power");
}

static void cancel(struct power *p, struct wait_list *l) {
	struct wait *list = waits_take(l);
	for (struct wait *w = list; w; w = w->next)
		w->outcome.rc = err_set(&w->outcome.err, RC_UNAVAILABLE, "the service is stopping");
	waits_deliver(p, list, true);
}

void power_free(struct power *p) {
	if (!p)
		return;
	timer_cancel(p->timers, p->tick);
	pthread_mutex_lock(&p->lock);
	while (p->ticking)
		pthread_cond_wait(&p->idle, &p->lock);
	pthread_mutex_unlock(&p->lock);
	for (size_t i = 0; i < p->count; i++) {
		cancel(p, &p->controls[i]->waiting);
		cancel(p, &p->controls[i]->asked);
		free(p->controls[i]);
	}
	policies_free(p);
	pthread_cond_destroy(&p->idle);
	pthread_mutex_destroy(&p->lock);
	pthread_mutex_destroy(&p->write_lock);
	free(p);
}

/* --- the table --- */

static size_t lower_bound(const struct power *p, const char *drive_id) {
	size_t low = 0, high = p->count;
	while (low < high) {
		const size_t middle = (low + high) / 2;
		if (strcmp(p->controls[middle]->drive_id, drive_id) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

struct control *control_find(struct power *p, const char *drive_id) {
	const size_t at = lower_bound(p, drive_id);
	struct control *ct = at < p->count ? p->controls[at] : NULL;
	return ct && strcmp(ct->drive_id, drive_id) == 0 ? ct : NULL;
}

void control_init(struct control *ct, struct power *p, const char *drive_id) {
	*ct = (struct control){.power = p,
		.release_to = setting_of_state(-1),
		.next_read_ms = reconcile_first_read_ms(p, drive_id)};
	str_copy(ct->drive_id, sizeof(ct->drive_id), drive_id);
}

struct control *control_find_or_add(struct power *p, const char *drive_id) {
	struct control *ct = control_find(p, drive_id);
	if (ct || p->count == POWER_MAX_CONTROLS || !(ct = calloc(1, sizeof(*ct))))
		return ct;
	control_init(ct, p, drive_id);
	const size_t at = lower_bound(p, drive_id);
	memmove(&p->controls[at + 1], &p->controls[at], (p->count - at) * sizeof(p->controls[0]));
	p->controls[at] = ct;
	p->count++;
	return ct;
}

struct control *control_at(struct power *p, size_t i) {
	pthread_mutex_lock(&p->lock);
	struct control *ct = i < p->count ? p->controls[i] : NULL;
	pthread_mutex_unlock(&p->lock);
	return ct;
}

void control_set_recorded(struct control *ct, bool recorded) {
	if (ct->unrecorded != recorded)
		return;
	ct->unrecorded = !recorded;
	ct->power->claims_version++;
}

/* --- views --- */

/* A drive without a control has no claims. */
static void view_claims(struct power *p, const char *drive_id, struct power_view *v) {
	static const struct control none = {.release_to = {.state = -1}};
	pthread_mutex_lock(&p->lock);
	const struct control *ct = control_find(p, drive_id);
	if (!ct)
		ct = &none;
	v->claim_count = ct->claim_count;
	memcpy(v->claims, ct->claims, sizeof(v->claims));
	v->config_version = claims_desired_version(ct);
	v->observed_version += p->claims_version;
	v->recorded = !ct->unrecorded;
	const struct power_setting wanted = control_wanted(ct);
	const struct power_read observed = {v->observed_state, v->observed_limit_mw};
	v->in_sync = wanted.state < 0 || control_matches(ct, &wanted, &observed);
	pthread_mutex_unlock(&p->lock);
}

enum rc power_view_get(
	struct power *p, const char *drive_id, struct power_view *out, struct err *err) {
	struct drive d;
	struct drive_observed o;
	*out = (struct power_view){.limit_mw = NONE, .observed_limit_mw = NONE};
	enum rc rc = drives_get(p->drives, drive_id, &d, NULL, NULL, err);
	if (!rc)
		rc = drives_observed(p->drives, drive_id, &o, err);
	if (rc)
		return rc;
	/* Not yet identified: an empty table. */
	if (drives_table(p->drives, drive_id, &out->table, NULL))
		out->table.count = 0;
	out->observed_state = o.power_state;
	out->observed_limit_mw = o.limit_mw;
	out->read_ms = o.at_ms;
	out->last = o.last;
	out->observed_version = d.observed_version;
	view_claims(p, drive_id, out);
	out->effective = power_effective_compute(
		&out->table, out->claims, out->claim_count, clock_wall_ms());
	out->limit_mw = power_limit_in_force(&out->table, &out->effective);
	return RC_OK;
}

enum rc power_desired_get(struct power *p, const char *drive_id, struct claim *out,
	uint32_t *version, struct err *err) {
	struct drive d;
	enum rc rc = drives_get(p->drives, drive_id, &d, NULL, NULL, err);
	if (rc)
		return rc;
	pthread_mutex_lock(&p->lock);
	const struct control *ct = control_find(p, drive_id);
	const int at = ct ? claims_find(ct, CLAIM_DESIRED, NULL) : -1;
	if (at >= 0) {
		*out = ct->claims[at];
		*version = claims_desired_version(ct);
	}
	pthread_mutex_unlock(&p->lock);
	return at >= 0 ? RC_OK : err_set(err, RC_NOT_FOUND, "nothing is desired of this drive");
}
