/* Limits of hosts' power: what was wished is recorded, what became of it too. */
#include <stdio.h>
#include <stdlib.h>

#include "base/jsonw.h"
#include "base/log.h"
#include "base/parse.h"
#include "core/bmc/registry.h"

#define LIMIT_MAX_MW INT64_C(1000000000)

/* Who waits for a change. */
struct limit_wait {
	struct hosts *hs;
	struct actor who;
	char host_id[HOST_ID_SIZE];
	int64_t limit_mw;
	hosts_limit_fn *fn;
	void *arg;
	struct limit_outcome outcome;
	bool recorded;
};

/* --- checks --- */

static enum rc check_value(int64_t limit_mw, struct err *err) {
	if (limit_mw == NONE)
		return RC_OK;
	if (limit_mw <= 0 || limit_mw > LIMIT_MAX_MW || limit_mw % 1000)
		return err_field(err, RC_INVALID, "/limit_w",
			"must be a whole number of watts from 1 to %lld, or null",
			(long long)(LIMIT_MAX_MW / 1000));
	return RC_OK;
}

/* By what the BMC said last. What it says now is checked again when it is asked. */
static enum rc check_range(const struct host_power *p, int64_t limit_mw, struct err *err) {
	bool below = p->limit_min_mw != NONE && limit_mw < p->limit_min_mw;
	bool above = p->limit_max_mw != NONE && limit_mw > p->limit_max_mw;
	if (limit_mw == NONE || (!below && !above))
		return RC_OK;
	return err_field(err, RC_INVALID, "/limit_w", "must be %s %.0f W",
		below ? "at least" : "at most",
		(double)(below ? p->limit_min_mw : p->limit_max_mw) / 1000);
}

static enum rc check(struct hosts *hs, const struct actor *who, const char *host_id,
	int64_t limit_mw, uint32_t if_version, struct err *err) {
	struct host h = {0};
	struct host_power p;
	enum rc rc = hs->observe_only && !who->dry_run
		? err_set(err, RC_FORBIDDEN, "the service only observes, it changes nothing")
		: check_value(limit_mw, err);
	if (!rc)
		rc = hosts_get(hs, host_id, &h, &p, err);
	if (!rc && if_version != VERSION_ANY && if_version != h.config_version)
		rc = err_set(err, RC_PRECONDITION, "the host was changed meanwhile");
	if (!rc && !h.bmc.present)
		rc = err_set(err, RC_UNSUPPORTED, "the host has no BMC");
	return rc ? rc : check_range(&p, limit_mw, err);
}

/* --- the record --- */

static void put_facts(const struct limit_wait *w, const struct limit_outcome *o, struct buf *out) {
	struct jsonw j;
	buf_init(out, 1024);
	jsonw_init(&j, out);
	jsonw_object(&j, NULL);
	jsonw_milli(&j, "wished_w", w->limit_mw);
	if (o && o->known)
		jsonw_milli(&j, "limit_w", o->limit_mw);
	if (o && o->err.rc)
		jsonw_str(&j, "reason", o->err.msg);
	jsonw_object_end(&j);
}

static enum rc note(
	struct limit_wait *w, const struct limit_outcome *o, const char *data, struct err *err) {
	const char *outcome = o ? rc_name(o->err.rc) : "intent";
	char object[EVENT_OBJECT_SIZE];
	struct db_conn *c;
	enum rc rc = db_write_begin(w->hs->db, &c, err);
	if (rc)
		return rc;
	snprintf(object, sizeof(object), "/hosts/%s", w->host_id);
	rc = events_audit(c, &w->who, "host.set_limit", object, outcome, data, err);
	if (!rc && o)
		rc = events_add(w->hs->events, c,
			o->err.rc ? EVENT_HOST_LIMIT_REFUSED : EVENT_HOST_LIMIT, &w->who, object,
			data, err);
	if (rc) {
		db_write_abort(c);
		return rc;
	}
	rc = db_write_commit(c, err);
	if (!rc)
		events_publish(w->hs->events);
	return rc;
}

/* o NULL: what is going to be tried. Without the store it is tried all the same. */
static void record(struct limit_wait *w, const struct limit_outcome *o) {
	struct err err = {0};
	struct buf data;
	put_facts(w, o, &data);
	if (note(w, o, buf_str(&data), &err)) {
		log_err(LOG_LEVEL_WARNING, "hosts", "recording a limit", &err);
		w->recorded = false;
	}
	buf_release(&data);
}

/* --- the end --- */

static void keep(struct limit_wait *w) {
	struct hosts *hs = w->hs;
	pthread_mutex_lock(&hs->lock);
	struct host_entry *e = hosts_find(hs, w->host_id);
	if (e && w->outcome.known) {
		e->power.limit_mw = w->outcome.limit_mw;
		e->power.observed_version++;
		hs->version++;
	}
	pthread_mutex_unlock(&hs->lock);
}

static void finish(void *arg) {
	struct limit_wait *w = arg;
	struct hosts *hs = w->hs;
	keep(w);
	record(w, &w->outcome);
	const struct host_limit_outcome o = {.err = w->outcome.err, .recorded = w->recorded};
	w->fn(w->arg, &o);
	free(w);
	registry_job_ends(hs);
}

/* Whoever tells may not wait for the store. */
static void on_outcome(void *arg, const struct limit_outcome *o) {
	struct limit_wait *w = arg;
	w->outcome = *o;
	if (!pool_submit(w->hs->jobs, finish, w))
		finish(w);
}

/* --- the beginning --- */

static enum rc begin(struct limit_wait *w, struct err *err) {
	struct hosts *hs = w->hs;
	registry_job_begins(hs);
	record(w, NULL);
	enum rc rc = poller_set_limit(hs->poller, w->host_id, w->limit_mw, on_outcome, w, err);
	if (!rc)
		return RC_OK;
	err_set(&w->outcome.err, rc, "%s", err->msg);
	record(w, &w->outcome);
	registry_job_ends(hs);
	return rc;
}

/* What would be tried was checked, and nobody waits for a BMC. */
static enum rc try_limit(hosts_limit_fn *fn, void *arg) {
	const struct host_limit_outcome o = {.recorded = false};
	fn(arg, &o);
	return RC_OK;
}

enum rc hosts_set_limit(struct hosts *hs, const struct actor *who, const char *host_id,
	int64_t limit_mw, uint32_t if_version, hosts_limit_fn *fn, void *arg, struct err *err) {
	struct err why = {0};
	enum rc rc = check(hs, who, host_id, limit_mw, if_version, &why);
	if (!rc && who->dry_run)
		return try_limit(fn, arg);
	struct limit_wait *w = rc ? NULL : calloc(1, sizeof(*w));
	if (!rc && !w)
		rc = err_set(&why, RC_NOMEM, "no memory for a change");
	if (w) {
		*w = (struct limit_wait){.hs = hs,
			.who = *who,
			.limit_mw = limit_mw,
			.fn = fn,
			.arg = arg,
			.recorded = true};
		str_copy(w->host_id, sizeof(w->host_id), host_id);
		rc = begin(w, &why);
	}
	if (rc)
		free(w);
	if (rc && err)
		*err = why;
	return rc;
}
