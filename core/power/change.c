#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/id.h"
#include "base/log.h"
#include "base/parse.h"
#include "core/power/power_impl.h"

/* --- checks --- */

enum rc power_check_may(const struct power *p, const struct actor *who, struct err *err) {
	return p->config.observe_only && !who->dry_run
		? err_set(err, RC_FORBIDDEN, "the service only observes, it changes nothing")
		: RC_OK;
}

/* The drive's table, when it is there to be asked. */
static enum rc check_drive(struct power *p, const struct actor *who, const char *drive_id,
	struct power_table *table, struct err *err) {
	struct drive d;
	enum rc rc = power_check_may(p, who, err);
	if (!rc)
		rc = drives_get(p->drives, drive_id, &d, NULL, NULL, err);
	if (rc)
		return rc;
	if (d.state == DRIVE_GONE)
		return err_set(err, RC_UNAVAILABLE, "the drive is gone");
	return drives_table(p->drives, drive_id, table, err);
}

/* Under lock. A change may come before the news of the drive. */
static struct control *take_control(
	struct power *p, const char *drive_id, const struct power_table *table, struct err *err) {
	struct control *ct = control_find_or_add(p, drive_id);
	if (!ct) {
		err_set(err, RC_FULL, "no room to keep anything about another drive");
		return NULL;
	}
	ct->table = *table;
	ct->present = true;
	return ct;
}

/* Under lock. */
static enum rc check_control(const struct control *ct, uint32_t if_version, struct err *err) {
	if (ct->waiters >= DRIVE_MAX_WAITERS)
		return err_set(err, RC_FULL, "others already wait for this drive");
	if (if_version != VERSION_ANY && if_version != claims_desired_version(ct))
		return err_set(err, RC_PRECONDITION, "what is desired has changed meanwhile");
	return RC_OK;
}

static struct wait *wait_new(enum wait_kind kind, const struct actor *who, const char *drive_id,
	power_fn *fn, void *arg, struct err *err) {
	struct wait *w = calloc(1, sizeof(*w));
	if (!w) {
		err_set(err, RC_NOMEM, "out of memory");
		return NULL;
	}
	w->kind = kind;
	w->who = *who;
	w->fn = fn;
	w->arg = arg;
	w->outcome = (struct power_outcome){
		.effective_state = -1,
		.observed_state = -1,
		.observed_limit_mw = NONE,
		.limit_mw = NONE,
		.recorded = true,
	};
	w->outcome.wish = (struct power_wish){.state = -1, .limit_mw = NONE};
	w->claim = (struct claim){.kind = kind == WAIT_LEASE ? CLAIM_LEASE : CLAIM_DESIRED,
		.created_ms = clock_wall_ms(),
		.expires_ms = NONE};
	w->outcome.expires_ms = NONE;
	id_uuid_ordered(w->claim.id);
	str_copy(w->claim.drive_id, sizeof(w->claim.drive_id), drive_id);
	str_copy(w->claim.owner, sizeof(w->claim.owner), who->name);
	return w;
}

/* --- common to all changes; under write_lock --- */

/* Under lock. With a lease upon the drive the wish is kept and nothing is set now. */
static bool is_held_by_lease(const struct control *ct, const struct wait *w) {
	const struct power_effective e =
		power_effective_compute(&ct->table, ct->claims, ct->claim_count, clock_wall_ms());
	return w->kind != WAIT_LEASE && e.holder >= 0 && ct->claims[e.holder].kind == CLAIM_LEASE;
}

/* Hands w over to the drive's next command, or back to its caller when there is nothing to do. */
static void enqueue(struct power *p, struct control *ct, struct wait *w) {
	pthread_mutex_lock(&p->lock);
	const bool held = is_held_by_lease(ct, w);
	ct->changing = false;
	if (held) {
		control_fill_outcome(ct, &w->outcome);
		w->outcome.in_sync = false;
		ct->waiters--;
	} else {
		waits_add(&ct->waiting, w);
	}
	pthread_mutex_unlock(&p->lock);
	if (held)
		waits_deliver(p, w, false);
}

/* The store is asked after the memory has changed: power control goes on without it. */
static void store(struct power *p, struct control *ct, struct wait *w, const char *action) {
	struct err err;
	struct buf data;
	tell_wish(&data, ct->drive_id, &w->outcome.wish, w->outcome.expires_ms, NULL);
	const struct claims_note n = {
		.who = &w->who,
		.action = action,
		.outcome = "intent",
		.event = EVENT_POWER_DESIRED,
		.data = buf_str(&data),
	};
	const enum rc rc = claims_store_desired(p, ct, &n, &err);
	buf_release(&data);
	if (rc)
		log_err(LOG_LEVEL_WARNING, "power", "going on without the store", &err);
	w->outcome.recorded = rc == RC_OK;
	pthread_mutex_lock(&p->lock);
	control_set_recorded(ct, rc == RC_OK);
	pthread_mutex_unlock(&p->lock);
}

/* --- desired --- */

static enum rc check_end(int64_t expires_ms, struct err *err) {
	return expires_ms == NONE || expires_ms > clock_wall_ms()
		? RC_OK
		: err_field(err, RC_INVALID, "/expires_at", "is over already");
}

/* Under lock. */
static enum rc put_desired(
	struct control *ct, struct wait *w, uint32_t if_version, struct err *err) {
	const enum rc rc = check_control(ct, if_version, err);
	if (rc)
		return rc;
	const int at = claims_find(ct, CLAIM_DESIRED, NULL);
	w->had_before = at >= 0;
	if (w->had_before)
		w->before = ct->claims[at];
	w->outcome.created = !w->had_before;
	w->changed = !w->had_before || !power_wish_is_same(&w->before.wish, &w->claim.wish) ||
		w->before.expires_ms != w->claim.expires_ms;
	if (w->had_before && strcmp(w->before.owner, w->claim.owner) == 0) {
		memcpy(w->claim.id, w->before.id, sizeof(w->claim.id));
		if (w->before.created_ms < w->claim.created_ms)
			w->claim.created_ms = w->before.created_ms;
	}
	if (!w->changed)
		w->claim = w->before;
	else if (!claims_put(ct, &w->claim))
		return err_set(err, RC_FULL, "the drive has %d claims already", POWER_MAX_CLAIMS);
	if (w->changed)
		control_renew(ct);
	ct->release_to = setting_of_state(-1);
	ct->changing = true;
	ct->waiters++;
	return RC_OK;
}

/* Under lock. */
static enum rc drop_desired(
	struct control *ct, struct wait *w, bool leave, uint32_t if_version, struct err *err) {
	const int at = ct ? claims_find(ct, CLAIM_DESIRED, NULL) : -1;
	if (at < 0)
		return err_set(err, RC_NOT_FOUND, "nothing is desired of this drive");
	const enum rc rc = check_control(ct, if_version, err);
	if (rc)
		return rc;
	w->claim = ct->claims[at];
	w->changed = true;
	claims_remove(ct, at);
	control_renew(ct);
	/* Where it goes when nobody else wishes anything, now or after a run. */
	ct->release_to = setting_of_state(leave ? -1 : 0);
	if (!leave)
		ct->before_lease = setting_of_state(0);
	ct->changing = true;
	ct->waiters++;
	return RC_OK;
}

/* What would be, on a copy of the control; table NULL: the desired is removed. Takes w over. */
static enum rc try_change(struct power *p, struct wait *w, const struct power_table *table,
	bool leave, uint32_t if_version, struct err *err) {
	auto_free struct control *copy = calloc(1, sizeof(*copy));
	enum rc rc = copy ? RC_OK : err_set(err, RC_NOMEM, "out of memory");
	pthread_mutex_lock(&p->lock);
	const uint64_t version = p->claims_version;
	const struct control *ct = control_find(p, w->claim.drive_id);
	if (copy && ct)
		*copy = *ct;
	else if (copy)
		control_init(copy, p, w->claim.drive_id);
	if (copy && table)
		copy->table = *table;
	if (!rc)
		rc = table ? put_desired(copy, w, if_version, err)
			   : drop_desired(copy, w, leave, if_version, err);
	if (!rc)
		control_fill_outcome(copy, &w->outcome);
	p->claims_version = version;
	pthread_mutex_unlock(&p->lock);
	w->outcome.recorded = false;
	if (rc)
		free(w);
	else
		waits_deliver(p, w, true);
	return rc;
}

enum rc power_set_desired(struct power *p, const struct actor *who, const char *drive_id,
	const struct power_wish *wish, int64_t expires_ms, uint32_t if_version, power_fn *fn,
	void *arg, struct err *err) {
	struct power_table table;
	enum rc rc = check_drive(p, who, drive_id, &table, err);
	if (!rc)
		rc = power_wish_check(&table, wish, "", err);
	if (!rc)
		rc = check_end(expires_ms, err);
	if (rc)
		return rc;
	struct wait *w = wait_new(WAIT_DESIRED, who, drive_id, fn, arg, err);
	if (!w)
		return RC_NOMEM;
	w->claim.wish = w->outcome.wish = *wish;
	w->claim.expires_ms = w->outcome.expires_ms = expires_ms;
	if (who->dry_run)
		return try_change(p, w, &table, false, if_version, err);
	pthread_mutex_lock(&p->write_lock);
	pthread_mutex_lock(&p->lock);
	struct control *ct = take_control(p, drive_id, &table, err);
	rc = ct ? put_desired(ct, w, if_version, err) : RC_FULL;
	pthread_mutex_unlock(&p->lock);
	if (rc) {
		free(w);
	} else {
		if (w->changed)
			store(p, ct, w, "power.set_desired");
		enqueue(p, ct, w);
	}
	pthread_mutex_unlock(&p->write_lock);
	if (!rc)
		power_apply(p, ct);
	return rc;
}

enum rc power_clear_desired(struct power *p, const struct actor *who, const char *drive_id,
	bool leave, uint32_t if_version, power_fn *fn, void *arg, struct err *err) {
	struct drive d;
	enum rc rc = power_check_may(p, who, err);
	if (!rc)
		rc = drives_get(p->drives, drive_id, &d, NULL, NULL, err);
	if (rc)
		return rc;
	struct wait *w = wait_new(WAIT_CLEARED, who, drive_id, fn, arg, err);
	if (!w)
		return RC_NOMEM;
	if (who->dry_run)
		return try_change(p, w, NULL, leave, if_version, err);
	pthread_mutex_lock(&p->write_lock);
	pthread_mutex_lock(&p->lock);
	struct control *ct = control_find(p, drive_id);
	rc = drop_desired(ct, w, leave, if_version, err);
	const bool absent = !rc && !ct->present;
	pthread_mutex_unlock(&p->lock);
	if (rc) {
		free(w);
	} else {
		store(p, ct, w, "power.clear_desired");
		enqueue(p, ct, w);
	}
	pthread_mutex_unlock(&p->write_lock);
	if (absent)
		reconcile_abandon(p, ct);
	else if (!rc)
		power_apply(p, ct);
	return rc;
}

/* --- leases --- */

/* Under lock. On its way back from a run it counts as being where it goes. */
static struct power_setting at_rest(const struct control *ct) {
	struct drive_observed o;
	if (ct->release_to.state >= 0)
		return ct->release_to;
	if (drives_observed(ct->power->drives, ct->drive_id, &o, NULL) || o.power_state < 0)
		return setting_of_state(0);
	struct power_setting s = setting_of_state(o.power_state);
	if (ct->table.limits.means == POWER_MEANS_LIMIT)
		s.limit_mw = o.limit_mw;
	return s;
}

/* Under lock. Remembers where the drive was, should nobody else wish anything afterwards. */
static enum rc put_lease(struct control *ct, const struct wait *w, struct err *err) {
	const struct power_effective e =
		power_effective_compute(&ct->table, ct->claims, ct->claim_count, clock_wall_ms());
	if (e.state < 0)
		ct->before_lease = at_rest(ct);
	else if (claims_find(ct, CLAIM_LEASE, NULL) < 0)
		ct->before_lease = setting_of_state(0);
	if (!claims_put(ct, &w->claim))
		return err_set(err, RC_FULL, "the drive has %d claims already", POWER_MAX_CLAIMS);
	control_renew(ct);
	ct->changing = true;
	return RC_OK;
}

/* Unlike a person's wish a run needs the store anyway. */
static enum rc lease(struct power *p, struct wait *w, const struct power_table *table,
	struct control **out, struct err *err) {
	enum rc rc = claims_store_lease(p, &w->claim, err);
	if (rc)
		return rc;
	pthread_mutex_lock(&p->lock);
	*out = take_control(p, w->claim.drive_id, table, err);
	rc = *out ? put_lease(*out, w, err) : RC_FULL;
	pthread_mutex_unlock(&p->lock);
	if (rc && claims_unstore(p, &w->claim, NULL))
		log_warning("power", "a lease stays in the store until the next start");
	return rc;
}

enum rc power_lease(struct power *p, const char *drive_id, const char *run_id, int state,
	int64_t expires_ms, power_fn *fn, void *arg, struct err *err) {
	struct power_table table;
	struct control *ct = NULL;
	const struct power_wish wish = {
		.state = (int8_t)state, .allow_non_operational = true, .limit_mw = NONE};
	enum rc rc = check_drive(p, &actor_system, drive_id, &table, err);
	if (!rc)
		rc = power_wish_check(&table, &wish, "", err);
	if (rc)
		return rc;
	struct wait *w = wait_new(WAIT_LEASE, &actor_system, drive_id, fn, arg, err);
	if (!w)
		return RC_NOMEM;
	w->claim.wish = w->outcome.wish = wish;
	w->claim.expires_ms = expires_ms;
	w->changed = w->outcome.created = true;
	snprintf(w->claim.owner, sizeof(w->claim.owner), "run:%s", run_id);
	pthread_mutex_lock(&p->write_lock);
	rc = lease(p, w, &table, &ct, err);
	if (rc)
		free(w);
	else
		enqueue(p, ct, w);
	pthread_mutex_unlock(&p->write_lock);
	if (!rc)
		power_apply(p, ct);
	return rc;
}

/* It stays in the store until the drive is back. */
static bool end_lease(struct power *p, struct control *ct, const char *owner) {
	pthread_mutex_lock(&p->lock);
	const int at = claims_find(ct, CLAIM_LEASE, owner);
	if (at >= 0)
		claims_drop(ct, at);
	pthread_mutex_unlock(&p->lock);
	return at >= 0;
}

void power_lease_end(struct power *p, const char *run_id) {
	char owner[CLAIM_OWNER_SIZE];
	struct control *ct;
	snprintf(owner, sizeof(owner), "run:%s", run_id);
	for (size_t i = 0; (ct = control_at(p, i)); i++) {
		if (end_lease(p, ct, owner))
			power_apply(p, ct);
	}
}
