/* /drives/{id}/power and what shall hold there: /drives/{id}/power/desired. */
#include <stdio.h>
#include <string.h>

#include "api/v1/v1.h"
#include "core/power.h"

/* --- rendering -------------------------------------------------------------------------------- */

static void render_rank(struct jsonw *w, const char *key, int8_t rank) {
	render_int_or_null(w, key, rank < 0 ? NONE : rank);
}

static void render_power_state(struct jsonw *w, const struct power_state *s) {
	jsonw_object(w, NULL);
	jsonw_uint(w, "state", s->state);
	render_uw(w, "max_w", s->max_uw);
	jsonw_bool(w, "operational", s->operational);
	render_int_or_null(w, "entry_latency_us", s->entry_latency_us);
	render_int_or_null(w, "exit_latency_us", s->exit_latency_us);
	render_uw(w, "idle_w", s->idle_uw);
	render_uw(w, "active_w", s->active_uw);
	render_int_or_null(w, "active_workload", s->active_workload ? s->active_workload : NONE);
	render_rank(w, "relative_read_throughput", s->relative_read_throughput);
	render_rank(w, "relative_read_latency", s->relative_read_latency);
	render_rank(w, "relative_write_throughput", s->relative_write_throughput);
	render_rank(w, "relative_write_latency", s->relative_write_latency);
	jsonw_object_end(w);
}

void render_power_table(struct jsonw *w, const char *key, const struct power_table *t) {
	jsonw_array(w, key);
	for (unsigned i = 0; i < t->count; i++)
		render_power_state(w, &t->states[i]);
	jsonw_array_end(w);
}

static void render_claim(struct jsonw *w, const struct claim *c) {
	jsonw_object(w, NULL);
	jsonw_str(w, "id", c->id);
	jsonw_str(w, "kind", claim_kind_name(c->kind));
	jsonw_str(w, "owner", c->owner);
	wish_render(w, &c->wish);
	jsonw_time(w, "created_at", c->created_ms);
	jsonw_time(w, "expires_at", c->expires_ms);
	jsonw_object_end(w);
}

static void render_effective(struct jsonw *w, const struct power_effective *e) {
	if (e->state < 0 && e->limit_mw == NONE) {
		jsonw_null(w, "effective");
		return;
	}
	jsonw_object(w, "effective");
	render_int_or_null(w, "state", e->state < 0 ? NONE : e->state);
	jsonw_milli(w, "limit_w", e->limit_mw);
	jsonw_bool(w, "capped", e->capped);
	jsonw_bool(w, "unsatisfiable", e->unsatisfiable);
	jsonw_object_end(w);
}

static const char *holder_of(const struct power_view *v) {
	return v->effective.holder >= 0 ? v->claims[v->effective.holder].owner : NULL;
}

static void render_measured(struct jsonw *w, const struct drive *d) {
	bool known = d->measured_mw != INT32_MIN;
	jsonw_milli(w, "measured_w", known ? d->measured_mw : JSONW_NONE);
	jsonw_str(w, "measured_source", known ? quality_name(d->measured_quality) : NULL);
	jsonw_str(w, "measured_reason", known ? NULL : "the drive has no power meter of its own");
}

static void render_power(struct jsonw *w, const struct drive *d, const struct power_view *v) {
	jsonw_object(w, NULL);
	jsonw_str(w, "id", d->id);
	jsonw_strf(w, "href", "/api/v1/drives/%s/power", d->id);
	render_int_or_null(w, "state", v->observed_state < 0 ? NONE : v->observed_state);
	jsonw_str(w, "state_reason", v->last.rc == RC_OK ? NULL : v->last.msg);
	render_power_table(w, "states", &v->table);
	jsonw_milli(w, "limit_w", v->limit_mw);
	jsonw_milli(w, "observed_limit_w", v->observed_limit_mw);
	jsonw_str(w, "limit_by", v->table.count ? power_means_name(v->table.limits.means) : NULL);
	render_measured(w, d);
	render_effective(w, &v->effective);
	jsonw_array(w, "claims");
	for (unsigned i = 0; i < v->claim_count; i++)
		render_claim(w, &v->claims[i]);
	jsonw_array_end(w);
	jsonw_str(w, "held_by", holder_of(v));
	jsonw_bool(w, "in_sync", v->in_sync);
	jsonw_null(w, "apst");
	jsonw_time(w, "read_at", v->read_ms);
	jsonw_bool(w, "simulated", d->kind == DRIVE_SIMULATED);
	jsonw_object_end(w);
}

enum http_next drive_power_get(struct http_request *q, struct http_response *r, void *ctx) {
	struct core *core = api_of(ctx)->core;
	struct power_view v;
	struct drive d;
	struct err err = {0};
	struct jsonw w;
	if (query_check(q, NULL, &err) != RC_OK ||
		drives_get(core->drives, http_param(q, "id"), &d, NULL, NULL, &err) != RC_OK ||
		power_view_get(core->power, d.id, &v, &err) != RC_OK)
		return http_fail(q, r, &err);
	jsonw_init(&w, &r->body);
	render_power(&w, &d, &v);
	http_set_etag(r, v.config_version, v.observed_version);
	return HTTP_DONE;
}

/* --- desired ---------------------------------------------------------------------------------- */

static void render_desired(
	struct http_response *r, const char *drive_id, const struct power_outcome *o) {
	struct jsonw w;
	jsonw_init(&w, &r->body);
	jsonw_object(&w, NULL);
	jsonw_str(&w, "id", drive_id);
	jsonw_strf(&w, "href", "/api/v1/drives/%s/power/desired", drive_id);
	wish_render(&w, &o->wish);
	jsonw_time(&w, "expires_at", o->expires_ms);
	render_int_or_null(
		&w, "effective_state", o->effective_state < 0 ? NONE : o->effective_state);
	render_int_or_null(&w, "observed_state", o->observed_state < 0 ? NONE : o->observed_state);
	jsonw_milli(&w, "limit_in_force_w", o->limit_mw);
	jsonw_milli(&w, "observed_limit_w", o->observed_limit_mw);
	jsonw_str(&w, "limit_by", power_means_name(o->limit_means));
	jsonw_bool(&w, "in_sync", o->in_sync);
	render_text_or_null(&w, "held_by", o->held_by);
	jsonw_bool(&w, "recorded", o->recorded);
	jsonw_object_end(&w);
}

enum http_next drive_desired_get(struct http_request *q, struct http_response *r, void *ctx) {
	struct core *core = api_of(ctx)->core;
	struct power_view v;
	struct claim claim;
	struct err err = {0};
	uint32_t version = 0;
	const char *id = http_param(q, "id");
	if (query_check(q, NULL, &err) != RC_OK ||
		power_desired_get(core->power, id, &claim, &version, &err) != RC_OK ||
		power_view_get(core->power, id, &v, &err) != RC_OK)
		return http_fail(q, r, &err);
	struct power_outcome o = {.wish = claim.wish,
		.expires_ms = claim.expires_ms,
		.effective_state = v.effective.state,
		.observed_state = v.observed_state,
		.observed_limit_mw = v.observed_limit_mw,
		.limit_mw = v.limit_mw,
		.limit_means = v.table.limits.means,
		.in_sync = v.in_sync,
		.recorded = v.recorded};
	if (holder_of(&v))
		snprintf(o.held_by, sizeof(o.held_by), "%s", holder_of(&v));
	render_desired(r, id, &o);
	http_set_etag(r, version, v.observed_version);
	return HTTP_DONE;
}

static enum rc decode_desired(const struct http_request *q, struct power_wish *wish,
	int64_t *expires_ms, struct err *err) {
	json_t *body = NULL;
	enum rc rc = v1_body(q, &body, err);
	if (rc == RC_OK)
		rc = wish_decode(body, "", wish, expires_ms, err);
	json_decref(body);
	return rc;
}

/* The outcome waits in the request for the continuation. */
static void desired_done(void *arg, const struct power_outcome *o);

static enum http_next answer_desired(struct http_request *q, struct http_response *r, void *ctx) {
	const struct power_outcome *o = http_user(q);
	struct power_view v;
	if (o->rc != RC_OK)
		return http_fail(q, r, &o->err);
	if (strcmp(http_method(q), "DELETE") == 0) {
		r->status = 204;
		return HTTP_DONE;
	}
	if (power_view_get(api_of(ctx)->core->power, http_param(q, "id"), &v, NULL) == RC_OK)
		http_set_etag(r, v.config_version, v.observed_version);
	render_desired(r, http_param(q, "id"), o);
	r->status = o->created ? 201 : 200;
	if (o->created)
		snprintf(r->location, sizeof(r->location), "%s", http_path(q));
	return HTTP_DONE;
}

static void desired_done(void *arg, const struct power_outcome *o) {
	struct http_request *q = arg;
	*(struct power_outcome *)http_user(q) = *o;
	http_resume(q, answer_desired);
}

static enum rc check_conditions(
	struct core *core, const struct http_request *q, uint32_t *if_version, struct err *err) {
	struct power_view v;
	enum rc rc = power_view_get(core->power, http_param(q, "id"), &v, err);
	return rc ? rc
		  : http_check_conditions(q, v.config_version != VERSION_ABSENT, v.config_version,
			    if_version, err);
}

static enum rc begin_outcome(struct http_request *q, struct err *err) {
	struct power_outcome *o = calloc(1, sizeof(*o));
	if (!o)
		return err_set(err, RC_NOMEM, "memory is out");
	http_set_user(q, o, free);
	return RC_OK;
}

enum http_next drive_desired_put(struct http_request *q, struct http_response *r, void *ctx) {
	struct core *core = api_of(ctx)->core;
	struct power_wish wish = {0};
	struct err err = {0};
	int64_t expires_ms;
	uint32_t if_version;
	if (decode_desired(q, &wish, &expires_ms, &err) == RC_OK &&
		check_conditions(core, q, &if_version, &err) == RC_OK &&
		begin_outcome(q, &err) == RC_OK &&
		power_set_desired(core->power, http_actor(q), http_param(q, "id"), &wish,
			expires_ms, if_version, desired_done, q, &err) == RC_OK)
		return HTTP_PENDING;
	return http_fail(q, r, &err);
}

enum http_next drive_desired_delete(struct http_request *q, struct http_response *r, void *ctx) {
	static const char *const allowed[] = {"leave", NULL};
	struct core *core = api_of(ctx)->core;
	struct err err = {0};
	bool leave = false, present;
	uint32_t if_version;
	if (query_check(q, allowed, &err) == RC_OK &&
		query_bool(q, "leave", &leave, &present, &err) == RC_OK &&
		check_conditions(core, q, &if_version, &err) == RC_OK &&
		begin_outcome(q, &err) == RC_OK &&
		power_clear_desired(core->power, http_actor(q), http_param(q, "id"), leave,
			if_version, desired_done, q, &err) == RC_OK)
		return HTTP_PENDING;
	return http_fail(q, r, &err);
}
