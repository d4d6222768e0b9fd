#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/id.h"
#include "base/log.h"
#include "base/parse.h"
#include "core/power/power_impl.h"

/* --- in memory --- */

int claims_find(const struct control *ct, enum claim_kind kind, const char *owner) {
	for (int i = 0; i < ct->claim_count; i++) {
		if (ct->claims[i].kind == kind &&
			(!owner || strcmp(ct->claims[i].owner, owner) == 0))
			return i;
	}
	return -1;
}

/* Clocks are set back: a claim ends by the monotonic one as well. One that was made later than now
 * is of before such a step, and lasts no longer than it was meant to. */
static int64_t end_of(const struct claim *c) {
	const int64_t now_ms = clock_wall_ms();
	const bool ahead = c->created_ms > now_ms && c->created_ms < c->expires_ms;
	return c->expires_ms == NONE
		? NONE
		: clock_mono_ms() + c->expires_ms - (ahead ? c->created_ms : now_ms);
}

bool claim_is_over(const struct claim *c) {
	return c->expires_ms != NONE &&
		(c->expires_ms <= clock_wall_ms() || c->ends_ms <= clock_mono_ms());
}

bool claims_put(struct control *ct, const struct claim *claim) {
	/* There is one desired, whoever wished it last, and one policy that counts. */
	const bool single = claim->kind == CLAIM_DESIRED || claim->kind == CLAIM_POLICY;
	int at = claims_find(ct, claim->kind, single ? NULL : claim->owner);
	if (at < 0 && ct->claim_count == POWER_MAX_CLAIMS)
		return false;
	if (at < 0)
		at = ct->claim_count++;
	ct->claims[at] = *claim;
	ct->claims[at].ends_ms = end_of(claim);
	ct->power->claims_version++;
	return true;
}

void claims_remove(struct control *ct, int index) {
	ct->claim_count--;
	memmove(&ct->claims[index], &ct->claims[index + 1],
		(size_t)(ct->claim_count - index) * sizeof(ct->claims[0]));
	ct->power->claims_version++;
}

void claims_drop(struct control *ct, int index) {
	const enum claim_kind kind = ct->claims[index].kind;
	claims_remove(ct, index);
	control_renew(ct);
	if (kind == CLAIM_DESIRED)
		ct->release_to = ct->before_lease = setting_of_state(0);
	if (kind != CLAIM_LEASE)
		return;
	ct->owes_release = true;
	if (control_wanted(ct).state < 0)
		ct->release_to = ct->before_lease;
}

bool claims_released(const struct control *ct) {
	return ct->owes_release && ct->release_to.state < 0 &&
		claims_find(ct, CLAIM_LEASE, NULL) < 0;
}

/* FNV-1a. */
static uint32_t hash_text(uint32_t hash, const char *text) {
	for (; *text; text++)
		hash = (hash ^ (unsigned char)*text) * UINT32_C(16777619);
	return hash;
}

uint32_t claims_desired_version(const struct control *ct) {
	const int at = claims_find(ct, CLAIM_DESIRED, NULL);
	char text[192];
	if (at < 0)
		return VERSION_ABSENT;
	const struct claim *c = &ct->claims[at];
	snprintf(text, sizeof(text), "%s %d %d %" PRId64 " %" PRId64, c->owner, c->wish.state,
		c->wish.allow_non_operational, c->wish.limit_mw, c->expires_ms);
	const uint32_t hash = hash_text(UINT32_C(2166136261), text);
	return hash == VERSION_ANY || hash == VERSION_ABSENT ? 1 : hash;
}

/* --- in the store --- */

static enum rc write_note(struct power *p, struct db_conn *c, const char *drive_id,
	const struct claims_note *n, struct err *err) {
	char object[64];
	enum rc rc = RC_OK;
	snprintf(object, sizeof(object), "/drives/%s", drive_id);
	if (n->action)
		rc = events_audit(c, n->who, n->action, object, n->outcome, n->data, err);
	if (!rc && n->event != EVENT_TYPE_COUNT_)
		rc = events_add(p->events, c, n->event, n->who, object, n->data, err);
	return rc;
}

enum rc claims_finish(struct power *p, struct db_conn *c, enum rc rc, struct err *err) {
	if (rc) {
		db_write_abort(c);
		return rc;
	}
	rc = db_write_commit(c, err);
	if (!rc)
		events_publish(p->events);
	return rc;
}

/* What is to be stored of the desired. A drive that goes back to its default without one gets a
 * lease of nobody's, so that a restart on the way there does not forget it. */
static bool copy_desired(struct power *p, struct control *ct, struct claim *out) {
	pthread_mutex_lock(&p->lock);
	const int at = claims_find(ct, CLAIM_DESIRED, NULL);
	const bool release = at < 0 && ct->release_to.state >= 0;
	if (at >= 0)
		*out = ct->claims[at];
	if (release) {
		*out = (struct claim){.kind = CLAIM_LEASE,
			.owner = "nobody",
			.wish = {.state = ct->release_to.state, .limit_mw = NONE},
			.created_ms = clock_wall_ms(),
			.expires_ms = NONE};
		id_uuid_ordered(out->id);
		str_copy(out->drive_id, sizeof(out->drive_id), ct->drive_id);
		ct->owes_release = true;
	}
	pthread_mutex_unlock(&p->lock);
	return at >= 0 || release;
}

enum rc claims_store_desired(
	struct power *p, struct control *ct, const struct claims_note *n, struct err *err) {
	struct claim claim;
	struct db_conn *c;
	const bool any = copy_desired(p, ct, &claim);
	enum rc rc = db_write_begin(p->control_db, &c, err);
	if (rc)
		return rc;
	rc = db_claim_delete_kind(c, ct->drive_id, CLAIM_DESIRED, NULL, NULL, err);
	if (!rc && any)
		rc = db_claim_put(c, &claim, err);
	if (!rc && n)
		rc = write_note(p, c, ct->drive_id, n, err);
	return claims_finish(p, c, rc, err);
}

enum rc claims_store_lease(struct power *p, struct claim *claim, struct err *err) {
	struct db_conn *c;
	const enum rc rc = db_write_begin(p->control_db, &c, err);
	return rc ? rc : claims_finish(p, c, db_claim_put(c, claim, err), err);
}

enum rc claims_unstore_leases(struct power *p, struct control *ct, struct err *err) {
	struct db_conn *c;
	enum rc rc = db_write_begin(p->control_db, &c, err);
	if (rc)
		return rc;
	rc = db_claim_delete_kind(c, ct->drive_id, CLAIM_LEASE, NULL, NULL, err);
	return claims_finish(p, c, rc, err);
}

enum rc claims_unstore(struct power *p, const struct claim *claim, struct err *err) {
	struct db_conn *c;
	enum rc rc = db_write_begin(p->control_db, &c, err);
	if (rc)
		return rc;
	rc = db_claim_delete_kind(c, claim->drive_id, claim->kind, claim->owner, NULL, err);
	return claims_finish(p, c, rc, err);
}

enum rc claims_write_note(
	struct power *p, const char *drive_id, const struct claims_note *n, struct err *err) {
	struct db_conn *c;
	const enum rc rc = db_write_begin(p->control_db, &c, err);
	return rc ? rc : claims_finish(p, c, write_note(p, c, drive_id, n, err), err);
}

/* --- at start --- */

/* A drive that a run had in its hands when the daemon ended goes back to its default. Its lease is
 * kept in the store until it is there. */
static bool take_claim(void *arg, const struct claim *claim) {
	struct power *p = arg;
	pthread_mutex_lock(&p->lock);
	struct control *ct = control_find_or_add(p, claim->drive_id);
	bool taken = ct != NULL;
	if (ct && claim->kind == CLAIM_LEASE) {
		ct->release_to = setting_of_state(0);
		ct->owes_release = true;
	} else if (ct) {
		taken = claims_put(ct, claim);
	}
	pthread_mutex_unlock(&p->lock);
	if (!taken)
		log_warning("power", "more claims than can be kept: one of %s is left out",
			claim->drive_id);
	return true;
}

enum rc claims_load(struct power *p, struct err *err) {
	struct db_conn *c;
	enum rc rc = db_read_begin(p->control_db, &c, err);
	if (rc)
		return rc;
	rc = db_claim_each(c, NULL, take_claim, p, err);
	db_read_end(c);
	return rc;
}
