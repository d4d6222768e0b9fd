#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/parse.h"
#include "base/thread.h"
#include "core/bmc/adaptor.h"
#include "core/bmc/registry.h"
#include "db/hosts.h"

#define SPREAD_MS 20 /* between the first requests to two BMCs at start */

/* --- the registry --- */

/* Where the id is or belongs. */
static size_t place_of(const struct hosts *hs, const char *id) {
	size_t low = 0, high = hs->count;
	while (low < high) {
		size_t mid = (low + high) / 2;
		if (strcmp(hs->entries[mid]->host.id, id) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

struct host_entry *hosts_find(struct hosts *hs, const char *id) {
	size_t at = place_of(hs, id);
	if (at < hs->count && strcmp(hs->entries[at]->host.id, id) == 0)
		return hs->entries[at];
	return NULL;
}

static void never_read(const struct hosts *hs, struct host_entry *e) {
	uint64_t observed_version = e->power.observed_version + 1;
	host_power_init(&e->power);
	e->power.observed_version = observed_version;
	str_copy(e->power.reason, sizeof(e->power.reason),
		e->host.bmc.present ? "not_read_yet" : "no_meter");
	registry_know(hs, e, "");
	resolution_init(&e->resolution);
	e->counter_mj = e->counter_fed_ns = e->inlet_fed_ns = NONE;
}

static struct host_entry *entry_new(struct hosts *hs, const char *id) {
	struct host_entry *e = hs->count < HOST_MAX ? calloc(1, sizeof(*e)) : NULL;
	if (!e)
		return NULL;
	size_t at = place_of(hs, id);
	memmove(hs->entries + at + 1, hs->entries + at,
		(hs->count - at) * sizeof(struct host_entry *));
	e->power.observed_version = clock_first_version();
	hs->entries[at] = e;
	hs->count++;
	return e;
}

enum rc registry_put(struct hosts *hs, const struct host *h, struct err *err) {
	struct host_entry *e = hosts_find(hs, h->id);
	bool fresh = !e;
	if (fresh)
		e = entry_new(hs, h->id);
	if (!e)
		return err_set(err, RC_FULL, "there are %d hosts already", HOST_MAX);
	bool other_bmc = strcmp(e->host.bmc.url, h->bmc.url) != 0;
	free(e->host.bmc.password_sealed);
	e->host = *h;
	if (fresh || other_bmc)
		never_read(hs, e);
	hs->version++;
	return RC_OK;
}

static void entry_free(struct host_entry *e) {
	free(e->host.bmc.password_sealed);
	free(e);
}

void registry_remove(struct hosts *hs, const char *id) {
	size_t at = place_of(hs, id);
	entry_free(hs->entries[at]);
	hs->count--;
	memmove(hs->entries + at, hs->entries + at + 1,
		(hs->count - at) * sizeof(struct host_entry *));
	hs->version++;
}

static bool own_password(struct host *h) {
	if (!h->bmc.password_sealed)
		return true;
	h->bmc.password_sealed = strdup(h->bmc.password_sealed);
	return h->bmc.password_sealed;
}

enum rc registry_copy(struct hosts *hs, const char *id, struct host *out, struct err *err) {
	enum rc rc = RC_OK;
	pthread_mutex_lock(&hs->lock);
	const struct host_entry *e = hosts_find(hs, id);
	if (!e)
		rc = err_set(err, RC_NOT_FOUND, "no such host");
	else
		*out = e->host;
	if (!rc && !own_password(out))
		rc = err_set(err, RC_NOMEM, "no memory for a host");
	pthread_mutex_unlock(&hs->lock);
	return rc;
}

/* --- life --- */

struct loading {
	struct hosts *hs;
	enum rc rc;
	struct err *err;
};

static bool load_one(void *arg, const struct host *stored) {
	struct loading *l = arg;
	struct host h = *stored;
	h.local = strcmp(h.id, l->hs->local_id) == 0;
	if (!own_password(&h))
		l->rc = err_set(l->err, RC_NOMEM, "no memory for a host");
	else
		l->rc = registry_put(l->hs, &h, l->err);
	if (l->rc)
		free(h.bmc.password_sealed);
	return !l->rc;
}

static enum rc load(struct hosts *hs, struct err *err) {
	struct loading l = {.hs = hs, .err = err};
	struct db_conn *c;
	enum rc rc = db_read_begin(hs->db, &c, err);
	if (rc)
		return rc;
	rc = db_host_each(c, load_one, &l, err);
	db_read_end(c);
	return rc ? rc : l.rc;
}

/* The host that the daemon runs on, written at its first start. */
static enum rc ensure_local(struct hosts *hs, const char *name, struct err *err) {
	if (hosts_find(hs, hs->local_id))
		return RC_OK;
	struct host h = {.local = true, .config_version = 1};
	str_copy(h.id, sizeof(h.id), hs->local_id);
	str_copy(h.name, sizeof(h.name), name);
	str_copy(h.bmc.vendor, sizeof(h.bmc.vendor), BMC_VENDOR_AUTO);
	struct db_conn *c;
	enum rc rc = db_write_begin(hs->db, &c, err);
	if (rc)
		return rc;
	rc = db_host_put(c, &h, NULL, err);
	if (rc) {
		db_write_abort(c);
		return rc;
	}
	rc = db_write_commit(c, err);
	return rc ? rc : registry_put(hs, &h, err);
}

static void on_reading(void *arg, const char *host_id, const struct host_power *p) {
	hosts_reading(arg, host_id, p);
}

static struct poller *make_poller(struct hosts *hs, const struct hosts_config *config,
	struct httpc *httpc, struct timers *timers, struct err *err) {
	struct poller_config c = {
		.httpc = httpc,
		.timers = timers,
		.jobs = hs->jobs,
		.energy = hs->energy,
		.events = hs->events,
		.period_ms = config->meter_ms,
		.reading = on_reading,
		.arg = hs,
	};
	memcpy(c.secret_key, config->secret_key, sizeof(c.secret_key));
	struct poller *p = poller_new(&c, err);
	secret_wipe(c.secret_key, sizeof(c.secret_key));
	return p;
}

struct hosts *hosts_new(const struct hosts_config *config, struct db *control,
	struct events *events, struct energy *energy, struct httpc *httpc, struct timers *timers,
	struct pool *jobs, struct err *err) {
	struct hosts *hs = calloc(1, sizeof(*hs));
	if (!hs) {
		err_set(err, RC_NOMEM, "no memory for the hosts");
		return NULL;
	}
	hs->db = control;
	hs->events = events;
	hs->energy = energy;
	hs->jobs = jobs;
	hs->observe_only = config->observe_only;
	hs->meter_ms = config->meter_ms;
	hs->version = clock_first_version();
	str_copy(hs->local_id, sizeof(hs->local_id), config->local_id);
	memcpy(hs->secret_key, config->secret_key, sizeof(hs->secret_key));
	pthread_mutex_init(&hs->changing, NULL);
	pthread_mutex_init(&hs->lock, NULL);
	cond_init(&hs->jobs_done);
	hs->poller = make_poller(hs, config, httpc, timers, err);
	if (hs->poller && !load(hs, err) && !ensure_local(hs, config->local_name, err))
		return hs;
	hosts_free(hs);
	return NULL;
}

void registry_job_begins(struct hosts *hs) {
	pthread_mutex_lock(&hs->lock);
	hs->jobs_open++;
	pthread_mutex_unlock(&hs->lock);
}

void registry_job_ends(struct hosts *hs) {
	pthread_mutex_lock(&hs->lock);
	if (!--hs->jobs_open)
		pthread_cond_broadcast(&hs->jobs_done);
	pthread_mutex_unlock(&hs->lock);
}

static void wait_for_jobs(struct hosts *hs) {
	pthread_mutex_lock(&hs->lock);
	while (hs->jobs_open)
		pthread_cond_wait(&hs->jobs_done, &hs->lock);
	pthread_mutex_unlock(&hs->lock);
}

void hosts_free(struct hosts *hs) {
	if (!hs)
		return;
	poller_free(hs->poller);
	wait_for_jobs(hs);
	for (size_t i = 0; i < hs->count; i++)
		entry_free(hs->entries[i]);
	pthread_cond_destroy(&hs->jobs_done);
	pthread_mutex_destroy(&hs->lock);
	pthread_mutex_destroy(&hs->changing);
	secret_wipe(hs->secret_key, sizeof(hs->secret_key));
	free(hs);
}

enum rc hosts_start(struct hosts *hs, struct err *err) {
	enum rc rc = RC_OK;
	pthread_mutex_lock(&hs->changing);
	for (size_t i = 0; !rc && i < hs->count; i++) {
		const struct host *h = &hs->entries[i]->host;
		rc = poller_set(hs->poller, h->id, &h->bmc, (int64_t)i * SPREAD_MS, err);
	}
	hs->started = true;
	pthread_mutex_unlock(&hs->changing);
	return rc ? rc : poller_start(hs->poller, err);
}

/* --- asking --- */

const char *hosts_resolve(struct hosts *hs, const char *id_or_alias) {
	return strcmp(id_or_alias, "local") == 0 ? hs->local_id : id_or_alias;
}

uint64_t hosts_version(struct hosts *hs) {
	pthread_mutex_lock(&hs->lock);
	uint64_t version = hs->version;
	pthread_mutex_unlock(&hs->lock);
	return version;
}

static void show(const struct host_entry *e, struct host *h, struct host_power *p) {
	*h = e->host;
	h->bmc.password_sealed = NULL;
	if (p)
		*p = e->power;
}

void hosts_each(struct hosts *hs, const char *after,
	bool (*visit)(void *arg, const struct host *h, const struct host_power *p), void *arg) {
	bool more = true;
	pthread_mutex_lock(&hs->lock);
	for (size_t i = after ? place_of(hs, after) : 0; more && i < hs->count; i++) {
		struct host h;
		if (after && strcmp(hs->entries[i]->host.id, after) == 0)
			continue;
		show(hs->entries[i], &h, NULL);
		more = visit(arg, &h, &hs->entries[i]->power);
	}
	pthread_mutex_unlock(&hs->lock);
}

enum rc hosts_get(struct hosts *hs, const char *id, struct host *out, struct host_power *power,
	struct err *err) {
	pthread_mutex_lock(&hs->lock);
	const struct host_entry *e = hosts_find(hs, id);
	if (e)
		show(e, out, power);
	pthread_mutex_unlock(&hs->lock);
	return e ? RC_OK : err_set(err, RC_NOT_FOUND, "no such host");
}

unsigned hosts_components(
	struct hosts *hs, const char *id, struct host_component out[HOST_COMPONENT_MAX]) {
	pthread_mutex_lock(&hs->lock);
	unsigned n = strcmp(id, hs->local_id) == 0 ? hs->component_count : 0;
	memcpy(out, hs->components, n * sizeof(out[0]));
	pthread_mutex_unlock(&hs->lock);
	return n;
}
