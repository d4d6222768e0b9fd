#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/id.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/parse.h"
#include "core/power/power_impl.h"
#include "db/policies.h"

/* --- the list; under lock --- */

static size_t find(const struct power *p, const char *name) {
	size_t i = 0;
	while (i < p->policy_count && strcmp(p->policies[i]->name, name) != 0)
		i++;
	return i;
}

static void remove_at(struct power *p, size_t i) {
	free(p->policies[i]);
	p->policy_count--;
	memmove(&p->policies[i], &p->policies[i + 1],
		(p->policy_count - i) * sizeof(p->policies[0]));
	p->claims_version++;
	metric_set(METRIC_POLICIES, (int64_t)p->policy_count);
}

/* Takes policy over; there is room. */
static void insert(struct power *p, struct policy *policy) {
	size_t i = 0;
	while (i < p->policy_count && policy_compare(p->policies[i], policy) < 0)
		i++;
	memmove(&p->policies[i + 1], &p->policies[i],
		(p->policy_count - i) * sizeof(p->policies[0]));
	p->policies[i] = policy;
	p->policy_count++;
	p->claims_version++;
	metric_set(METRIC_POLICIES, (int64_t)p->policy_count);
}

static struct policy *policy_dup(const struct policy *policy) {
	struct policy *copy = malloc(sizeof(*copy));
	if (copy)
		*copy = *policy;
	return copy;
}

void policies_free(struct power *p) {
	while (p->policy_count)
		remove_at(p, p->policy_count - 1);
}

static bool load_one(void *arg, const struct policy *policy) {
	struct power *p = arg;
	struct policy *copy = p->policy_count < POWER_MAX_POLICIES ? policy_dup(policy) : NULL;
	if (copy)
		insert(p, copy);
	else
		log_warning("power", "policy %s cannot be kept and is left out", policy->name);
	return true;
}

enum rc policies_load(struct power *p, struct err *err) {
	struct db_conn *c;
	enum rc rc = db_read_begin(p->control_db, &c, err);
	if (rc)
		return rc;
	rc = db_policy_each(c, load_one, p, err);
	db_read_end(c);
	return rc;
}

/* --- what they make of a drive; under lock --- */

static const struct policy *policy_for(struct power *p, const char *drive_id) {
	struct drive d;
	char labels[512];
	if (!p->policy_count || drives_get(p->drives, drive_id, &d, labels, NULL, NULL))
		return NULL;
	for (size_t i = 0; i < p->policy_count; i++) {
		if (drives_selects(p->drives, &p->policies[i]->selector, &d, labels))
			return p->policies[i];
	}
	return NULL;
}

static void write_owner(char owner[CLAIM_OWNER_SIZE], const struct policy *policy) {
	snprintf(owner, CLAIM_OWNER_SIZE, "policy:%s", policy->name);
}

static void put(struct control *ct, const struct policy *policy, int at) {
	struct claim claim = {.kind = CLAIM_POLICY,
		.wish = policy->wish,
		.created_ms = policy->changed_ms,
		.expires_ms = NONE};
	write_owner(claim.owner, policy);
	if (at >= 0 && strcmp(ct->claims[at].owner, claim.owner) == 0 &&
		power_wish_is_same(&ct->claims[at].wish, &claim.wish))
		return;
	id_uuid_ordered(claim.id);
	str_copy(claim.drive_id, sizeof(claim.drive_id), ct->drive_id);
	if (claims_put(ct, &claim))
		control_renew(ct);
	else
		log_warning("power", "%s has too many claims for a policy", ct->drive_id);
}

void policies_refresh(struct power *p, struct control *ct) {
	const struct policy *policy = policy_for(p, ct->drive_id);
	const int at = claims_find(ct, CLAIM_POLICY, NULL);
	if (policy)
		put(ct, policy, at);
	else if (at >= 0)
		claims_drop(ct, at);
}

/* Not under lock. */
static void refresh_all(struct power *p) {
	struct control *ct;
	for (size_t i = 0; (ct = control_at(p, i)); i++) {
		pthread_mutex_lock(&p->lock);
		policies_refresh(p, ct);
		pthread_mutex_unlock(&p->lock);
		power_apply(p, ct);
	}
}

/* --- changes; under write_lock --- */

static enum rc check(const struct policy *policy, struct err *err) {
	const struct power_wish *w = &policy->wish;
	if (!id_is_name(policy->name))
		return err_field(err, RC_INVALID, "/name",
			"1 to 64 letters, digits, '.', '_' or '-', not beginning with a dot");
	if ((w->state < 0) == (w->limit_mw == NONE))
		return err_field(err, RC_INVALID, "/desired", "either state or limit_w is needed");
	return RC_OK;
}

static enum rc check_found(const struct policy *before, uint32_t if_version, struct err *err) {
	if (if_version == VERSION_ANY ||
		if_version == (before ? before->config_version : VERSION_ABSENT))
		return RC_OK;
	return err_set(err, RC_PRECONDITION, "the policy was changed meanwhile");
}

/* The policy of that name, which stays while write_lock is held. */
static const struct policy *look_up(struct power *p, const char *name, size_t *count) {
	pthread_mutex_lock(&p->lock);
	const size_t at = find(p, name);
	const struct policy *found = at < p->policy_count ? p->policies[at] : NULL;
	*count = p->policy_count;
	pthread_mutex_unlock(&p->lock);
	return found;
}

/* Ends the transaction with its rows of trail and events. */
static enum rc finish(struct power *p, struct db_conn *c, const struct actor *who,
	const char *action, const char *name, enum rc rc, struct err *err) {
	char object[EVENT_OBJECT_SIZE];
	snprintf(object, sizeof(object), "/policies/%s", name);
	if (!rc)
		rc = events_audit(c, who, action, object, rc_name(RC_OK), NULL, err);
	if (!rc)
		rc = events_add(p->events, c, EVENT_POLICY_CHANGED, who, object, NULL, err);
	return claims_finish(p, c, rc, err);
}

static enum rc store_put(
	struct power *p, const struct actor *who, const struct policy *policy, struct err *err) {
	struct db_conn *c;
	enum rc rc = db_write_begin_for(p->control_db, who, &c, err);
	return rc
		? rc
		: finish(p, c, who, "policy.put", policy->name, db_policy_put(c, policy, err), err);
}

static enum rc store_delete(
	struct power *p, const struct actor *who, const char *name, struct err *err) {
	struct db_conn *c;
	enum rc rc = db_write_begin_for(p->control_db, who, &c, err);
	return rc ? rc
		  : finish(p, c, who, "policy.delete", name, db_policy_delete(c, name, err), err);
}

static void replace(struct power *p, const char *name, struct policy *with) {
	pthread_mutex_lock(&p->lock);
	const size_t at = find(p, name);
	if (at < p->policy_count)
		remove_at(p, at);
	if (with)
		insert(p, with);
	pthread_mutex_unlock(&p->lock);
}

static void date(struct policy *policy, const struct policy *before, uint32_t deleted) {
	policy->changed_ms = clock_wall_ms();
	policy->created_ms = before ? before->created_ms : policy->changed_ms;
	policy->config_version = before ? before->config_version + 1 : version_first(deleted);
}

static enum rc put_policy(struct power *p, const struct actor *who, struct policy *policy,
	uint32_t if_version, bool *changed, bool *created, struct err *err) {
	size_t count;
	const struct policy *before = look_up(p, policy->name, &count);
	enum rc rc = check_found(before, if_version, err);
	*created = !before;
	*changed = !before || !policy_is_same(before, policy);
	if (rc)
		return rc;
	if (!*changed) {
		*policy = *before;
		return RC_OK;
	}
	if (!before && count == POWER_MAX_POLICIES)
		return err_set(err, RC_FULL, "there are %d policies already", POWER_MAX_POLICIES);
	date(policy, before, p->deleted_policy_version);
	struct policy *copy = policy_dup(policy);
	rc = copy ? store_put(p, who, policy, err) : err_set(err, RC_NOMEM, "out of memory");
	if (rc || who->dry_run)
		free(copy);
	else
		replace(p, policy->name, copy);
	return rc;
}

enum rc power_policy_put(struct power *p, const struct actor *who, struct policy *policy,
	uint32_t if_version, bool *created, struct err *err) {
	bool changed = false;
	enum rc rc = power_check_may(p, who, err);
	if (!rc)
		rc = check(policy, err);
	if (rc)
		return rc;
	pthread_mutex_lock(&p->write_lock);
	rc = put_policy(p, who, policy, if_version, &changed, created, err);
	pthread_mutex_unlock(&p->write_lock);
	if (!rc && changed && !who->dry_run)
		refresh_all(p);
	return rc;
}

static enum rc delete_policy(struct power *p, const struct actor *who, const char *name,
	uint32_t if_version, struct err *err) {
	size_t count;
	const struct policy *before = look_up(p, name, &count);
	if (!before)
		return err_set(err, RC_NOT_FOUND, "no such policy");
	const uint32_t version = before->config_version;
	enum rc rc = check_found(before, if_version, err);
	if (!rc)
		rc = store_delete(p, who, name, err);
	if (rc || who->dry_run)
		return rc;
	if (version > p->deleted_policy_version)
		p->deleted_policy_version = version;
	replace(p, name, NULL);
	return RC_OK;
}

enum rc power_policy_delete(struct power *p, const struct actor *who, const char *name,
	uint32_t if_version, struct err *err) {
	enum rc rc = power_check_may(p, who, err);
	if (rc)
		return rc;
	pthread_mutex_lock(&p->write_lock);
	rc = delete_policy(p, who, name, if_version, err);
	pthread_mutex_unlock(&p->write_lock);
	if (!rc && !who->dry_run)
		refresh_all(p);
	return rc;
}

/* --- views; under lock --- */

/* Does it choose the drive's power, or would it? */
static bool holds(const struct control *ct, const struct policy *policy, const struct drive *d,
	const char *labels) {
	const struct power *p = ct->power;
	for (int i = 0; i < ct->claim_count; i++) {
		const struct claim *c = &ct->claims[i];
		if ((c->kind == CLAIM_DESIRED || c->kind == CLAIM_LEASE) && !claim_is_over(c))
			return false;
	}
	for (size_t i = 0; i < p->policy_count; i++) {
		const struct policy *other = p->policies[i];
		if (strcmp(other->name, policy->name) != 0 && policy_compare(other, policy) < 0 &&
			drives_selects(p->drives, &other->selector, d, labels))
			return false;
	}
	return true;
}

/* Is it where the policy would have it, under the caps there are? */
static bool is_there(const struct control *ct, const struct policy *policy) {
	struct claim claims[POWER_MAX_CLAIMS + 1] = {
		{.kind = CLAIM_POLICY, .wish = policy->wish, .expires_ms = NONE}};
	size_t n = 1;
	for (int i = 0; i < ct->claim_count; i++) {
		if (claim_kind_is_cap(ct->claims[i].kind))
			claims[n++] = ct->claims[i];
	}
	const struct power_effective e =
		power_effective_compute(&ct->table, claims, n, clock_wall_ms());
	const struct power_read observed = control_observed(ct);
	return e.state < 0 || control_matches(ct, &e.setting, &observed);
}

static bool is_able(const struct control *ct, const struct policy *policy) {
	struct err err;
	return power_wish_check(&ct->table, &policy->wish, "", &err) == RC_OK;
}

static void count_drive(struct policy_view *v, const struct control *ct) {
	struct power *p = ct->power;
	struct drive d;
	char labels[512];
	if (!ct->present || drives_get(p->drives, ct->drive_id, &d, labels, NULL, NULL) ||
		!drives_selects(p->drives, &v->policy.selector, &d, labels))
		return;
	const bool held = holds(ct, &v->policy, &d, labels);
	v->selected++;
	v->holding += held;
	v->in_sync += held && is_there(ct, &v->policy);
	v->unable += !is_able(ct, &v->policy);
}

static void fill_view(struct power *p, const struct policy *policy, struct policy_view *v) {
	*v = (struct policy_view){.policy = *policy};
	for (size_t i = 0; i < p->count; i++)
		count_drive(v, p->controls[i]);
}

void power_policy_view(struct power *p, const struct policy *policy, struct policy_view *out) {
	pthread_mutex_lock(&p->lock);
	fill_view(p, policy, out);
	pthread_mutex_unlock(&p->lock);
}

enum rc power_policy_get(
	struct power *p, const char *name, struct policy_view *out, struct err *err) {
	pthread_mutex_lock(&p->lock);
	const size_t at = find(p, name);
	const bool found = at < p->policy_count;
	if (found)
		fill_view(p, p->policies[at], out);
	pthread_mutex_unlock(&p->lock);
	return found ? RC_OK : err_set(err, RC_NOT_FOUND, "no such policy");
}

static const struct policy *next_by_name(const struct power *p, const char *after) {
	const struct policy *next = NULL;
	for (size_t i = 0; i < p->policy_count; i++) {
		const struct policy *policy = p->policies[i];
		if (strcmp(policy->name, after) > 0 &&
			(!next || strcmp(policy->name, next->name) < 0))
			next = policy;
	}
	return next;
}

void power_policy_each(struct power *p, const char *after,
	bool (*visit)(void *arg, const struct policy_view *v), void *arg) {
	struct policy_view v = {0};
	bool more = true;
	str_copy(v.policy.name, sizeof(v.policy.name), after);
	while (more) {
		pthread_mutex_lock(&p->lock);
		const struct policy *policy = next_by_name(p, v.policy.name);
		if (policy)
			fill_view(p, policy, &v);
		pthread_mutex_unlock(&p->lock);
		more = policy && visit(arg, &v);
	}
}

uint64_t power_policies_version(struct power *p) {
	pthread_mutex_lock(&p->lock);
	const uint64_t version = p->claims_version;
	pthread_mutex_unlock(&p->lock);
	return version + drives_version(p->drives);
}
