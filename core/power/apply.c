#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/parse.h"
#include "core/power/power_impl.h"

#define BACKOFF_FIRST_MS 1000

/* --- waits --- */

void waits_add(struct wait_list *l, struct wait *w) {
	w->next = NULL;
	*(l->last ? &l->last->next : &l->first) = w;
	l->last = w;
}

struct wait *waits_take(struct wait_list *l) {
	struct wait *first = l->first;
	*l = (struct wait_list){0};
	return first;
}

static void deliver(void *arg) {
	struct wait *w = arg;
	while (w) {
		struct wait *next = w->next;
		w->fn(w->arg, &w->outcome);
		free(w);
		w = next;
	}
}

void waits_deliver(struct power *p, struct wait *list, bool here) {
	if (list && (here || !pool_submit(p->jobs, deliver, list)))
		deliver(list);
}

/* --- what is wanted; under lock --- */

struct power_effective control_effective(const struct control *ct) {
	return power_effective_compute(&ct->table, ct->claims, ct->claim_count, clock_wall_ms());
}

struct power_setting setting_of_state(int state) {
	return (struct power_setting){
		.state = (int8_t)state, .fallback_state = -1, .limit_mw = NONE};
}

struct power_setting control_wanted(const struct control *ct) {
	const struct power_setting s = control_effective(ct).setting;
	return s.state >= 0 ? s : ct->release_to;
}

static bool is_operational(const struct control *ct, int state) {
	const struct power_state *s = power_table_find(&ct->table, state);
	return s && s->operational;
}

bool control_matches(const struct control *ct, const struct power_setting *wanted,
	const struct power_read *observed) {
	/* An idle drive with APST goes to sleep by itself, and comes back to where it was. */
	const bool asleep = ct->apst && observed->state >= 0 && is_operational(ct, wanted->state) &&
		!is_operational(ct, observed->state);
	return power_setting_is_kept(
		&ct->table, wanted, asleep ? wanted->state : observed->state, observed->limit_mw);
}

void control_back_off(struct control *ct) {
	const int64_t max_ms = ct->power->config.backoff_max_ms;
	int64_t next_ms = ct->backoff_ms ? ct->backoff_ms * 2 : BACKOFF_FIRST_MS;
	if (next_ms > max_ms)
		next_ms = max_ms;
	ct->backoff_ms = next_ms;
	ct->next_try_ms = clock_mono_ms() + next_ms;
}

void control_renew(struct control *ct) {
	ct->confirmed = false;
	ct->told_refused = false;
	ct->owes_applied = false;
	ct->backoff_ms = 0;
	ct->next_try_ms = 0;
}

static const struct claim *tightest_cap(const struct control *ct) {
	const struct claim *best = NULL;
	for (int i = 0; i < ct->claim_count; i++) {
		const struct claim *c = &ct->claims[i];
		if (claim_kind_is_cap(c->kind) && (!best || c->wish.limit_mw < best->wish.limit_mw))
			best = c;
	}
	return best;
}

struct power_read control_observed(const struct control *ct) {
	struct drive_observed o;
	if (drives_observed(ct->power->drives, ct->drive_id, &o, NULL))
		return (struct power_read){.state = -1, .limit_mw = NONE};
	return (struct power_read){.state = o.power_state, .limit_mw = o.limit_mw};
}

/* Under lock. Is this what is wanted, or nothing wanted? */
static bool suits(const struct control *ct, const struct power_read *observed) {
	const struct power_setting wanted = control_wanted(ct);
	return wanted.state < 0 || control_matches(ct, &wanted, observed);
}

void control_fill_outcome(const struct control *ct, struct power_outcome *o) {
	const struct power_effective e = control_effective(ct);
	const struct claim *holder = e.holder >= 0 ? &ct->claims[e.holder] : NULL;
	const struct claim *cap = e.capped ? tightest_cap(ct) : NULL;
	const struct power_read observed = control_observed(ct);
	o->effective_state = e.state;
	o->observed_state = observed.state;
	o->observed_limit_mw = observed.limit_mw;
	o->limit_mw = power_limit_in_force(&ct->table, &e);
	o->limit_means = ct->table.limits.means;
	o->in_sync = suits(ct, &observed);
	str_copy(o->held_by, sizeof(o->held_by), cap ? cap->owner : holder ? holder->owner : "");
}

/* --- answers --- */

/* Nobody waits in vain: what rc says is everybody's outcome. */
static struct wait *fail_all(
	struct control *ct, struct wait *list, enum rc rc, const struct err *err) {
	for (struct wait *w = list; w; w = w->next) {
		control_fill_outcome(ct, &w->outcome);
		w->outcome.rc = rc;
		w->outcome.err = *err;
		w->outcome.in_sync = false;
		ct->waiters -= w->kind != WAIT_LEASE;
	}
	return list;
}

/* Still there at a later look: the next drift is met at once again. */
static void stay(struct control *ct, const struct power_read *observed) {
	if (!suits(ct, observed))
		return;
	ct->backoff_ms = 0;
	ct->next_try_ms = 0;
}

static void on_read(void *arg, const struct drive_reply *r) {
	struct control *ct = arg;
	const struct power_read observed = {.state = r->power_state, .limit_mw = r->limit_mw};
	pthread_mutex_lock(&ct->power->lock);
	ct->busy = false;
	if (r->rc)
		control_back_off(ct);
	else
		stay(ct, &observed);
	pthread_mutex_unlock(&ct->power->lock);
	if (r->rc != RC_FULL)
		power_apply(ct->power, ct);
}

/* Under write_lock and lock. Is the wait's claim the one in force, not replaced meanwhile? */
static int current_claim(const struct control *ct, const struct wait *w) {
	const int at = claims_find(ct, w->claim.kind, w->claim.owner);
	const bool same = at >= 0 && strcmp(ct->claims[at].id, w->claim.id) == 0 &&
		power_wish_is_same(&ct->claims[at].wish, &w->claim.wish);
	return same && w->kind != WAIT_CLEARED ? at : -1;
}

/* The drive said no: what was wished before holds again. */
static void withdraw(struct power *p, struct control *ct, struct wait *w) {
	struct err err;
	enum rc rc = RC_OK;
	pthread_mutex_lock(&p->lock);
	const int at = current_claim(ct, w);
	if (at >= 0 && w->had_before)
		ct->claims[at] = w->before;
	else if (at >= 0)
		claims_remove(ct, at);
	if (at >= 0)
		control_renew(ct);
	pthread_mutex_unlock(&p->lock);
	if (at < 0)
		return;
	if (w->kind == WAIT_LEASE)
		rc = claims_unstore(p, &w->claim, &err);
	else
		rc = claims_store_desired(p, ct, NULL, &err);
	if (rc)
		log_err(LOG_LEVEL_WARNING, "power", "withdrawing a claim", &err);
	pthread_mutex_lock(&p->lock);
	if (rc && w->kind != WAIT_LEASE)
		control_set_recorded(ct, false);
	pthread_mutex_unlock(&p->lock);
}

/* Those whose claim was replaced before the drive said no were not meant: they wait on. */
static struct wait *sort_out_refused(struct power *p, struct control *ct, struct wait *list) {
	struct wait_list refused = {0};
	pthread_mutex_lock(&p->lock);
	while (list) {
		struct wait *w = list;
		list = w->next;
		const bool meant = w->kind == WAIT_CLEARED || current_claim(ct, w) >= 0;
		waits_add(meant ? &refused : &ct->waiting, w);
	}
	ct->release_to = setting_of_state(-1);
	pthread_mutex_unlock(&p->lock);
	return refused.first;
}

static struct wait *on_refused(
	struct power *p, struct control *ct, struct wait *asked, const struct err *err) {
	pthread_mutex_lock(&p->write_lock);
	struct wait *refused = sort_out_refused(p, ct, asked);
	for (struct wait *w = refused; w; w = w->next)
		withdraw(p, ct, w);
	pthread_mutex_unlock(&p->write_lock);
	pthread_mutex_lock(&p->lock);
	fail_all(ct, refused, RC_REFUSED, err);
	pthread_mutex_unlock(&p->lock);
	return refused;
}

/* The reconciler's own attempt failed: it says so once and tries on, ever more seldom. */
static void on_refused_alone(struct power *p, struct control *ct, const struct err *err) {
	pthread_mutex_lock(&p->lock);
	const bool tell = !ct->told_refused;
	ct->told_refused = true;
	ct->release_to = setting_of_state(-1);
	control_back_off(ct);
	pthread_mutex_unlock(&p->lock);
	if (tell)
		tell_event(p, ct->drive_id, EVENT_POWER_REFUSED, &actor_system, ct->target.state,
			-1, err);
}

static struct wait *on_set_done(
	struct power *p, struct control *ct, struct wait *asked, bool *applied) {
	pthread_mutex_lock(&p->lock);
	const struct power_setting wanted = control_wanted(ct);
	const struct power_read observed = control_observed(ct);
	ct->confirmed = suits(ct, &observed);
	ct->told_refused = false;
	*applied = ct->confirmed;
	if (!ct->confirmed && power_setting_is_same(&wanted, &ct->target))
		control_back_off(ct);
	for (struct wait *w = asked; w; w = w->next) {
		control_fill_outcome(ct, &w->outcome);
		ct->waiters -= w->kind != WAIT_LEASE;
	}
	/* Once is enough where nobody wishes anything. */
	if (ct->confirmed)
		ct->release_to = setting_of_state(-1);
	pthread_mutex_unlock(&p->lock);
	return asked;
}

static struct wait *on_failed(
	struct power *p, struct control *ct, struct wait *asked, const struct drive_reply *r) {
	pthread_mutex_lock(&p->lock);
	ct->owes_applied = r->rc == RC_TIMEOUT;
	control_back_off(ct);
	fail_all(ct, asked, r->rc, &r->err);
	pthread_mutex_unlock(&p->lock);
	return asked;
}

/* Applied without anybody waiting: the reconciler's own doing. */
static void tell_outcomes(
	struct power *p, struct control *ct, const struct wait *done, bool applied_alone) {
	for (const struct wait *w = done; w; w = w->next) {
		if (w->outcome.recorded && w->changed)
			tell_outcome(p, ct, w);
	}
	if (applied_alone)
		tell_event(p, ct->drive_id, EVENT_POWER_APPLIED, &actor_system, ct->target.state,
			ct->target.state, NULL);
}

static void on_set(void *arg, const struct drive_reply *r) {
	struct control *ct = arg;
	struct power *p = ct->power;
	pthread_mutex_lock(&p->lock);
	struct wait *asked = waits_take(&ct->asked);
	pthread_mutex_unlock(&p->lock);
	const bool alone = !asked;
	bool applied = false;
	struct wait *done = NULL;
	if (r->rc == RC_OK)
		done = on_set_done(p, ct, asked, &applied);
	else if (r->rc == RC_REFUSED && alone)
		on_refused_alone(p, ct, &r->err);
	else if (r->rc == RC_REFUSED)
		done = on_refused(p, ct, asked, &r->err);
	else
		done = on_failed(p, ct, asked, r);
	/* With a full queue this is a thread that must not wait for the store. */
	if (r->rc != RC_FULL)
		tell_outcomes(p, ct, done, alone && applied);
	pthread_mutex_lock(&p->lock);
	ct->busy = false;
	pthread_mutex_unlock(&p->lock);
	waits_deliver(p, done, true);
	if (r->rc != RC_FULL)
		power_apply(p, ct);
}

/* --- asking --- */

enum step_kind { STEP_NONE, STEP_READ, STEP_SET };

struct step {
	enum step_kind kind;
	enum event_type event; /* EVENT_TYPE_COUNT_ none */
	struct power_setting wanted;
	struct power_read observed;
	bool in_sync;
	bool settled; /* no more is to be done now */
	int effective;
	struct wait *done; /* those for whom there is nothing to do */
};

/* Under lock. The drive is at rest: what was seen of it is not about to change. */
static void note_observed(struct control *ct, struct step *s) {
	if (s->wanted.state < 0 || s->observed.state < 0)
		return;
	if (s->in_sync && ct->owes_applied)
		s->event = EVENT_POWER_APPLIED;
	if (!s->in_sync && ct->confirmed) {
		s->event = EVENT_POWER_DRIFT;
		metric_add(METRIC_DRIVE_DRIFT, 1);
	}
	ct->confirmed = s->in_sync;
	if (s->in_sync) {
		ct->owes_applied = false;
		/* Who waits has the drive asked all the same. */
		if (!ct->waiting.first)
			ct->release_to = setting_of_state(-1);
	}
}

static struct wait *nothing_to_do(struct control *ct) {
	struct wait *list = waits_take(&ct->waiting);
	for (struct wait *w = list; w; w = w->next) {
		control_fill_outcome(ct, &w->outcome);
		ct->waiters -= w->kind != WAIT_LEASE;
	}
	return list;
}

/* Under lock. */
static enum step_kind choose(struct control *ct, const struct step *s) {
	const int64_t now_ms = clock_mono_ms();
	const bool may_set = !ct->power->config.observe_only && s->wanted.state >= 0;
	if (ct->waiting.first && may_set)
		return STEP_SET;
	if (now_ms < ct->next_try_ms)
		return STEP_NONE;
	if (s->observed.state < 0)
		return STEP_READ;
	if (!s->in_sync && may_set)
		return STEP_SET;
	return now_ms >= ct->next_read_ms ? STEP_READ : STEP_NONE;
}

/* Under lock. */
static void begin(struct control *ct, struct step *s) {
	if (s->kind == STEP_NONE)
		return;
	ct->busy = true;
	if (ct->power->config.reconcile_ms)
		ct->next_read_ms = clock_mono_ms() + ct->power->config.reconcile_ms;
	if (s->kind == STEP_READ)
		return;
	ct->target = s->wanted;
	ct->asked = ct->waiting;
	ct->waiting = (struct wait_list){0};
	/* A drive that does not stay where it was put is not set ever again at once. */
	if (!ct->asked.first)
		control_back_off(ct);
}

static struct step plan(struct control *ct) {
	struct step s = {.event = EVENT_TYPE_COUNT_};
	const struct power_effective e = control_effective(ct);
	s.effective = e.state;
	s.wanted = control_wanted(ct);
	s.observed = control_observed(ct);
	s.in_sync = suits(ct, &s.observed);
	if (ct->busy || ct->changing || !ct->present)
		return s;
	note_observed(ct, &s);
	s.settled = true;
	if (ct->table.count == 0)
		return s;
	if (s.wanted.state < 0)
		s.done = nothing_to_do(ct);
	s.kind = choose(ct, &s);
	s.settled = s.kind == STEP_NONE;
	begin(ct, &s);
	return s;
}

/* All that was possible has been done: the drive may be announced. */
static void admit(struct power *p, struct control *ct) {
	pthread_mutex_lock(&p->lock);
	const bool held = ct->holds;
	ct->holds = false;
	pthread_mutex_unlock(&p->lock);
	if (held)
		drives_admit(p->drives, ct->drive_id);
}

/* The drive cannot be asked. */
static void give_up(struct power *p, struct control *ct, enum rc rc, const struct err *err) {
	pthread_mutex_lock(&p->lock);
	ct->busy = false;
	struct wait *list = fail_all(ct, waits_take(&ct->asked), rc, err);
	control_back_off(ct);
	pthread_mutex_unlock(&p->lock);
	waits_deliver(p, list, false);
	admit(p, ct);
}

void power_apply(struct power *p, struct control *ct) {
	struct err err;
	enum rc rc = RC_OK;
	pthread_mutex_lock(&p->lock);
	const struct step s = plan(ct);
	drives_set_effective(p->drives, ct->drive_id, s.effective, s.in_sync);
	pthread_mutex_unlock(&p->lock);
	waits_deliver(p, s.done, false);
	if (s.settled)
		admit(p, ct);
	if (s.event != EVENT_TYPE_COUNT_)
		tell_event(p, ct->drive_id, s.event, &actor_system, s.wanted.state,
			s.observed.state, NULL);
	if (s.kind == STEP_READ)
		rc = drives_submit(
			p->drives, ct->drive_id, DRIVE_POWER_GET, NULL, true, on_read, ct, &err);
	if (s.kind == STEP_SET)
		rc = drives_submit(p->drives, ct->drive_id, DRIVE_POWER_SET, &s.wanted, true,
			on_set, ct, &err);
	if (rc)
		give_up(p, ct, rc, &err);
}
