/* Changes to hosts: checked, then event, audit and row in one transaction, then memory. */
#include <stdio.h>
#include <string.h>

#include "base/id.h"
#include "base/parse.h"
#include "core/bmc/adaptor.h"
#include "core/bmc/registry.h"
#include "core/bmc/settings.h"
#include "core/once.h"
#include "db/hosts.h"

#define POWER_MAX_MW INT64_C(1000000000)

/* --- the store --- */

/* One change in its transaction. */
struct change {
	const struct actor *who;
	const char *action; /* of the audit trail, "host.update" */
	const char *what;   /* of the event, "updated" */
	char object[EVENT_OBJECT_SIZE];
	struct db_conn *c;
};

static enum rc change_begin(struct hosts *hs, struct change *ch, const char *id, struct err *err) {
	snprintf(ch->object, sizeof(ch->object), "/hosts/%s", id);
	return db_write_begin_for(hs->db, ch->who, &ch->c, err);
}

static enum rc change_note(struct hosts *hs, struct change *ch, struct err *err) {
	char data[64];
	snprintf(data, sizeof(data), "{\"change\":\"%s\"}", ch->what);
	enum rc rc =
		events_audit(ch->c, ch->who, ch->action, ch->object, rc_name(RC_OK), data, err);
	if (rc)
		return rc;
	return events_add(hs->events, ch->c, EVENT_HOST_CHANGED, ch->who, ch->object, data, err);
}

/* Commits when rc is good so far, else rolls back. */
static enum rc change_end(struct hosts *hs, struct change *ch, enum rc rc, struct err *err) {
	if (!rc)
		rc = change_note(hs, ch, err);
	if (rc) {
		db_write_abort(ch->c);
		return rc;
	}
	rc = db_write_commit(ch->c, err);
	if (!rc && !ch->who->dry_run)
		events_publish(hs->events);
	return rc;
}

static enum rc store_host(
	struct hosts *hs, struct change *ch, const struct host *h, struct err *err) {
	enum rc rc = change_begin(hs, ch, h->id, err);
	return rc ? rc : change_end(hs, ch, db_host_put(ch->c, h, NULL, err), err);
}

static enum rc store_new_host(
	struct hosts *hs, struct change *ch, const struct host *h, struct err *err) {
	enum rc rc = change_begin(hs, ch, h->id, err);
	if (rc)
		return rc;
	rc = db_host_put(ch->c, h, NULL, err);
	if (!rc)
		rc = once_keep(ch->c, ch->who, ch->object, err);
	return change_end(hs, ch, rc, err);
}

/* --- memory --- */

/* Takes h over, unless it was only a trial. */
static enum rc install(
	struct hosts *hs, const struct actor *who, struct host *h, bool new_bmc, struct err *err) {
	enum rc rc = RC_OK;
	if (who->dry_run)
		return RC_OK;
	if (new_bmc && hs->started)
		rc = poller_set(hs->poller, h->id, &h->bmc, 0, err);
	pthread_mutex_lock(&hs->lock);
	if (!rc)
		rc = registry_put(hs, h, err);
	pthread_mutex_unlock(&hs->lock);
	if (!rc)
		h->bmc.password_sealed = NULL;
	return rc;
}

static bool name_is_taken(struct hosts *hs, const struct host *h) {
	bool taken = false;
	pthread_mutex_lock(&hs->lock);
	for (size_t i = 0; i < hs->count && !taken; i++) {
		const struct host *other = &hs->entries[i]->host;
		taken = strcmp(other->name, h->name) == 0 && strcmp(other->id, h->id) != 0;
	}
	pthread_mutex_unlock(&hs->lock);
	return taken;
}

/* --- applying a wish to a copy --- */

static enum rc apply_name(
	struct hosts *hs, struct host *h, const char *name, bool replace, struct err *err) {
	if (!name && !replace)
		return RC_OK;
	enum rc rc = settings_check_name(name ? name : "", err);
	if (rc)
		return rc;
	str_copy(h->name, sizeof(h->name), name);
	if (name_is_taken(hs, h))
		return err_field(err, RC_EXISTS, "/name", "another host is called %s", name);
	return RC_OK;
}

static enum rc apply_labels(struct host *h, const char *labels, bool replace, struct err *err) {
	if (!labels && !replace)
		return RC_OK;
	if (!str_copy(h->labels, sizeof(h->labels), labels ? labels : ""))
		return err_field(err, RC_INVALID, "/labels", "must have at most %zu bytes as JSON",
			sizeof(h->labels) - 1);
	return RC_OK;
}

/* Seals anew only what differs, so that the same wish twice is no change. */
static enum rc apply_password(
	struct hosts *hs, struct host *h, const char *password, bool *changed, struct err *err) {
	auto_free char *old = NULL;
	if (h->bmc.password_sealed &&
		secret_unseal(hs->secret_key, h->bmc.password_sealed, &old, NULL) == RC_OK) {
		bool same = strcmp(old, password) == 0;
		secret_wipe(old, strlen(old));
		if (same)
			return RC_OK;
	}
	free(h->bmc.password_sealed);
	h->bmc.password_sealed = NULL;
	*changed = true;
	return secret_seal(hs->secret_key, password, &h->bmc.password_sealed, err);
}

static void drop_password(struct host *h, bool *changed) {
	*changed |= h->bmc.password_sealed != NULL;
	free(h->bmc.password_sealed);
	h->bmc.password_sealed = NULL;
}

static enum rc apply_bmc(struct hosts *hs, struct host *h, const struct host_change *c,
	bool replace, bool *changed, struct err *err) {
	struct bmc_settings wish = {.present = false};
	if (!c->set_bmc && !replace)
		return RC_OK;
	if (c->set_bmc)
		wish = c->bmc;
	enum rc rc = settings_normalise(&wish, err);
	if (rc)
		return rc;
	bool other_url = strcmp(wish.url, h->bmc.url) != 0;
	*changed = !settings_are_same(&wish, &h->bmc);
	wish.password_sealed = h->bmc.password_sealed;
	h->bmc = wish;
	if (!wish.present) {
		drop_password(h, changed);
		return RC_OK;
	}
	if (c->bmc_password)
		return apply_password(hs, h, c->bmc_password, changed, err);
	/* Whoever may change the URL must not learn the password by it. */
	if (other_url && h->bmc.password_sealed)
		return err_field(err, RC_INVALID, "/bmc/password",
			"must be given again, since the URL changes");
	return RC_OK;
}

static enum rc apply(struct hosts *hs, struct host *h, const struct host_change *c, bool replace,
	bool *new_bmc, struct err *err) {
	enum rc rc = apply_name(hs, h, c->name, replace, err);
	if (!rc)
		rc = apply_labels(h, c->labels, replace, err);
	if (!rc)
		rc = apply_bmc(hs, h, c, replace, new_bmc, err);
	return rc;
}

static void give(struct host *out, const struct host *h) {
	if (!out)
		return;
	*out = *h;
	out->bmc.password_sealed = NULL;
}

/* --- create, update, delete --- */

static enum rc check_version(const struct host *h, uint32_t if_version, struct err *err) {
	if (if_version != VERSION_ANY && if_version != h->config_version)
		return err_set(err, RC_PRECONDITION, "the host was changed meanwhile");
	return RC_OK;
}

static enum rc check_free(struct hosts *hs, const struct host *h, struct err *err) {
	pthread_mutex_lock(&hs->lock);
	bool exists = hosts_find(hs, h->id), full = hs->count == HOST_MAX;
	pthread_mutex_unlock(&hs->lock);
	if (exists)
		return err_field(err, RC_EXISTS, "/id", "there is a host of this id");
	if (full)
		return err_set(err, RC_FULL, "there are %d hosts already", HOST_MAX);
	return RC_OK;
}

static enum rc create(struct hosts *hs, const struct actor *who, struct host *h,
	const struct host_change *c, struct host *out, struct err *err) {
	struct change ch = {.who = who, .action = "host.create", .what = "created"};
	bool new_bmc = false;
	enum rc rc = check_free(hs, h, err);
	if (!rc)
		rc = apply(hs, h, c, true, &new_bmc, err);
	if (!rc)
		rc = store_new_host(hs, &ch, h, err);
	if (rc)
		return rc;
	give(out, h);
	return install(hs, who, h, new_bmc, err);
}

enum rc hosts_create(struct hosts *hs, const struct actor *who, const char *id,
	const struct host_change *c, struct host *out, struct err *err) {
	struct host h = {.bmc = {.vendor = BMC_VENDOR_AUTO}};
	if (id && !id_is_uuid(id))
		return err_field(err, RC_INVALID, "/id", "must be a UUID");
	if (id)
		str_copy(h.id, sizeof(h.id), id);
	else
		id_uuid(h.id);
	pthread_mutex_lock(&hs->changing);
	h.config_version = version_first(hs->deleted_version);
	enum rc rc = create(hs, who, &h, c, out, err);
	pthread_mutex_unlock(&hs->changing);
	free(h.bmc.password_sealed);
	return rc;
}

static enum rc update(struct hosts *hs, const struct actor *who, struct host *h,
	const struct host_change *c, bool replace, struct host *out, struct err *err) {
	struct change ch = {.who = who, .action = "host.update", .what = "updated"};
	struct host before = *h;
	bool new_bmc = false;
	enum rc rc = check_version(h, c->if_version, err);
	if (!rc)
		rc = apply(hs, h, c, replace, &new_bmc, err);
	if (rc)
		return rc;
	bool changed = new_bmc || strcmp(before.name, h->name) != 0 ||
		strcmp(before.labels, h->labels) != 0;
	if (changed) {
		h->config_version++;
		rc = store_host(hs, &ch, h, err);
	}
	if (rc)
		return rc;
	give(out, h);
	return changed ? install(hs, who, h, new_bmc, err) : RC_OK;
}

enum rc hosts_update(struct hosts *hs, const struct actor *who, const char *id,
	const struct host_change *c, bool replace, struct host *out, struct err *err) {
	struct host h = {0};
	pthread_mutex_lock(&hs->changing);
	enum rc rc = registry_copy(hs, id, &h, err);
	if (!rc)
		rc = update(hs, who, &h, c, replace, out, err);
	pthread_mutex_unlock(&hs->changing);
	free(h.bmc.password_sealed);
	return rc;
}

static enum rc check_removal(
	struct hosts *hs, const char *id, uint32_t if_version, struct host *h, struct err *err) {
	enum rc rc = hosts_get(hs, id, h, NULL, err);
	if (!rc && h->local)
		rc = err_set(err, RC_CONFLICT, "the host that the service runs on stays");
	return rc ? rc : check_version(h, if_version, err);
}

static enum rc remove_host(struct hosts *hs, const struct actor *who, const char *id,
	uint32_t if_version, struct err *err) {
	struct change ch = {.who = who, .action = "host.delete", .what = "deleted"};
	struct host h;
	enum rc rc = check_removal(hs, id, if_version, &h, err);
	if (!rc)
		rc = change_begin(hs, &ch, id, err);
	if (!rc)
		rc = change_end(hs, &ch, db_host_delete(ch.c, id, err), err);
	if (rc || who->dry_run)
		return rc;
	if (h.config_version > hs->deleted_version)
		hs->deleted_version = h.config_version;
	rc = poller_set(hs->poller, id, NULL, 0, err);
	pthread_mutex_lock(&hs->lock);
	registry_remove(hs, id);
	pthread_mutex_unlock(&hs->lock);
	return rc;
}

enum rc hosts_delete(struct hosts *hs, const struct actor *who, const char *id, uint32_t if_version,
	struct err *err) {
	pthread_mutex_lock(&hs->changing);
	enum rc rc = remove_host(hs, who, id, if_version, err);
	pthread_mutex_unlock(&hs->changing);
	return rc;
}

/* --- baselines --- */

static enum rc check_watts(
	int64_t mw, enum baseline_kind kind, const char *field, struct err *err) {
	char pointer[64];
	if (mw >= 0 && mw <= POWER_MAX_MW)
		return RC_OK;
	snprintf(pointer, sizeof(pointer), "/%s/%s", baseline_kind_name(kind), field);
	return err_field(err, RC_INVALID, pointer, "must be between 0 and %lld W",
		(long long)(POWER_MAX_MW / 1000));
}

static enum rc check_baselines(
	const struct baseline *const wishes[BASELINE_KIND_COUNT_], struct err *err) {
	enum rc rc = RC_OK;
	for (int i = 0; !rc && i < BASELINE_KIND_COUNT_; i++) {
		const enum baseline_kind kind = (enum baseline_kind)i;
		const struct baseline *b = wishes[i];
		if (!b || !b->known)
			continue;
		rc = check_watts(b->power_mw, kind, "w", err);
		if (!rc && b->uncertainty_mw != NONE)
			rc = check_watts(b->uncertainty_mw, kind, "uncertainty_w", err);
	}
	return rc;
}

/* When it was found apart, so that a declaration made twice is no change. */
static bool is_same(const struct baseline *a, const struct baseline *b) {
	if (!a->known || !b->known)
		return a->known == b->known;
	return a->source == b->source && a->power_mw == b->power_mw &&
		a->uncertainty_mw == b->uncertainty_mw && a->source == BASELINE_DECLARED;
}

static bool apply_baselines(
	struct host *h, const struct baseline *const wishes[BASELINE_KIND_COUNT_]) {
	bool changed = false;
	for (int i = 0; i < BASELINE_KIND_COUNT_; i++) {
		if (!wishes[i] || is_same(&h->baselines[i], wishes[i]))
			continue;
		h->baselines[i] = *wishes[i];
		changed = true;
	}
	return changed;
}

static enum rc store_baselines(
	struct hosts *hs, struct change *ch, const struct host *h, struct err *err) {
	enum rc rc = change_begin(hs, ch, h->id, err);
	if (rc)
		return rc;
	rc = db_host_put(ch->c, h, NULL, err);
	for (int i = 0; !rc && i < BASELINE_KIND_COUNT_; i++)
		rc = db_baseline_put(ch->c, h->id, (enum baseline_kind)i, &h->baselines[i], err);
	return change_end(hs, ch, rc, err);
}

static enum rc set_baselines(struct hosts *hs, const struct actor *who, struct host *h,
	const struct baseline *const wishes[BASELINE_KIND_COUNT_], uint32_t if_version,
	struct err *err) {
	struct change ch = {.who = who, .action = "host.set_baseline", .what = "baseline"};
	enum rc rc = check_version(h, if_version, err);
	if (rc || !apply_baselines(h, wishes))
		return rc;
	h->config_version++;
	rc = store_baselines(hs, &ch, h, err);
	return rc ? rc : install(hs, who, h, false, err);
}

enum rc hosts_set_baselines(struct hosts *hs, const struct actor *who, const char *host_id,
	const struct baseline *const wishes[BASELINE_KIND_COUNT_], uint32_t if_version,
	struct host *out, struct err *err) {
	struct host h = {0};
	enum rc rc = check_baselines(wishes, err);
	if (rc)
		return rc;
	pthread_mutex_lock(&hs->changing);
	rc = registry_copy(hs, host_id, &h, err);
	if (!rc)
		rc = set_baselines(hs, who, &h, wishes, if_version, err);
	pthread_mutex_unlock(&hs->changing);
	if (!rc)
		give(out, &h);
	free(h.bmc.password_sealed);
	return rc;
}

enum rc hosts_set_baseline(struct hosts *hs, const struct actor *who, const char *host_id,
	enum baseline_kind kind, const struct baseline *b, struct err *err) {
	const struct baseline *wishes[BASELINE_KIND_COUNT_] = {NULL};
	wishes[kind] = b;
	return hosts_set_baselines(hs, who, host_id, wishes, VERSION_ANY, NULL, err);
}
