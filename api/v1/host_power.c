/* /hosts/{id}/power: what the meter says, and the limit that the BMC holds the host to. */
#include <string.h>

#include "api/v1/v1.h"
#include "base/clock.h"
#include "core/hosts.h"

#define LIMIT_MAX_W 1000000

/* --- the reading ------------------------------------------------------------------------------ */

static double kwh(int64_t mj) {
	return (double)mj / 3.6e9;
}

static void render_supply(struct jsonw *w, const struct host_supply *s) {
	jsonw_object(w, NULL);
	jsonw_str(w, "name", s->name);
	render_text_or_null(w, "state", s->state);
	render_text_or_null(w, "redundancy", s->redundancy);
	jsonw_milli(w, "input_w", s->input_mw);
	jsonw_milli(w, "output_w", s->output_mw);
	jsonw_milli(w, "capacity_w", s->capacity_mw);
	jsonw_milli(w, "efficiency_pct", s->efficiency_mpct);
	jsonw_object_end(w);
}

static void render_components(struct jsonw *w, struct hosts *hosts, const char *id) {
	struct host_component parts[HOST_COMPONENT_MAX];
	unsigned n = hosts_components(hosts, id, parts);
	jsonw_array(w, "components");
	for (unsigned i = 0; i < n; i++) {
		jsonw_object(w, NULL);
		jsonw_str(w, "object", parts[i].object);
		jsonw_milli(w, "power_w", parts[i].power_mw);
		jsonw_str(w, "source", parts[i].source);
		jsonw_str(w, "quality", quality_name(parts[i].quality));
		jsonw_milli(w, "uncertainty_w", parts[i].uncertainty_mw);
		jsonw_time(w, "at", parts[i].at_ms);
		jsonw_object_end(w);
	}
	jsonw_array_end(w);
}

static const char *resolution_source(const struct host_power *p) {
	if (p->resolution_mw == NONE)
		return NULL;
	return p->resolution_declared ? "declared" : "readings";
}

/* Leaves the object open. */
static void render_host_power(
	struct jsonw *w, struct hosts *hosts, const struct host *h, const struct host_power *p) {
	bool read = p->at_ms != NONE;
	jsonw_object(w, NULL);
	jsonw_str(w, "id", h->id);
	jsonw_strf(w, "href", "/api/v1/hosts/%s/power", h->id);
	jsonw_milli(w, "power_w", p->power_mw);
	render_text_or_null(w, "reason", p->reason);
	render_text_or_null(w, "source", p->source);
	jsonw_str(w, "quality", read ? quality_name(p->quality) : NULL);
	jsonw_time(w, "at", p->at_ms);
	jsonw_milli(w, "age_s", read ? (clock_mono_ns() - p->at_mono_ns) / 1000000 : JSONW_NONE);
	jsonw_milli(w, "resolution_w", p->resolution_mw);
	jsonw_str(w, "resolution_source", resolution_source(p));
	jsonw_milli(w, "limit_w", p->limit_mw);
	jsonw_milli(w, "limit_min_w", p->limit_min_mw);
	jsonw_milli(w, "limit_max_w", p->limit_max_mw);
	jsonw_milli(w, "inlet_c", p->inlet_mc);
	jsonw_array(w, "supplies");
	for (unsigned i = 0; i < p->supply_count; i++)
		render_supply(w, &p->supplies[i]);
	jsonw_array_end(w);
	if (p->energy_counter_mj == NONE)
		jsonw_null(w, "energy_counter_kwh");
	else
		jsonw_double(w, "energy_counter_kwh", kwh(p->energy_counter_mj));
	jsonw_time(w, "energy_counter_since", p->energy_since_ms);
	jsonw_time(w, "energy_counter_reset_at", p->energy_reset_ms);
	render_components(w, hosts, h->id);
	render_text_or_null(w, "system_uuid", p->system_uuid);
	jsonw_str(w, "same_as", p->is_local && !h->local ? hosts_resolve(hosts, "local") : NULL);
	render_text_or_null(w, "host_interface", p->host_interface);
	jsonw_bool(w, "simulated", read && p->quality == QUALITY_SIMULATED);
}

enum http_next host_power_get(struct http_request *q, struct http_response *r, void *ctx) {
	struct core *core = api_of(ctx)->core;
	struct host h;
	struct host_power p;
	struct err err = {0};
	struct jsonw w;
	if (query_check(q, NULL, &err) != RC_OK ||
		hosts_get(core->hosts, host_of(core, q), &h, &p, &err) != RC_OK)
		return http_fail(q, r, &err);
	jsonw_init(&w, &r->body);
	render_host_power(&w, core->hosts, &h, &p);
	jsonw_object_end(&w);
	http_set_etag(r, h.config_version, p.observed_version);
	return HTTP_DONE;
}

/* --- the limit -------------------------------------------------------------------------------- */

struct limit_body {
	int64_t limit_mw;
};

static enum rc decode_limit(const struct http_request *q, int64_t *limit_mw, struct err *err) {
	static const struct json_in_field fields[] = {
		{"limit_w", JSON_IN_MILLI, offsetof(struct limit_body, limit_mw), .min = 0,
			.max = LIMIT_MAX_W, .required = true, .nullable = true},
	};
	struct limit_body b = {.limit_mw = NONE};
	json_t *body = NULL;
	enum rc rc = v1_body(q, &body, err);
	if (rc == RC_OK)
		rc = json_in_fields(body, "", fields, array_len(fields), &b, err);
	json_decref(body);
	*limit_mw = b.limit_mw;
	return rc;
}

/* The outcome waits in the request for the continuation. */
static enum http_next answer_limit(struct http_request *q, struct http_response *r, void *ctx) {
	struct core *core = api_of(ctx)->core;
	const struct host_limit_outcome *o = http_user(q);
	struct host h;
	struct host_power p;
	struct err err = o->err;
	struct jsonw w;
	if (err.rc != RC_OK || hosts_get(core->hosts, host_of(core, q), &h, &p, &err) != RC_OK)
		return http_fail(q, r, &err);
	jsonw_init(&w, &r->body);
	render_host_power(&w, core->hosts, &h, &p);
	jsonw_bool(&w, "recorded", o->recorded);
	jsonw_object_end(&w);
	http_set_etag(r, h.config_version, p.observed_version);
	return HTTP_DONE;
}

static void limit_done(void *arg, const struct host_limit_outcome *o) {
	struct http_request *q = arg;
	*(struct host_limit_outcome *)http_user(q) = *o;
	http_resume(q, answer_limit);
}

static enum rc begin_outcome(struct http_request *q, struct err *err) {
	struct host_limit_outcome *o = calloc(1, sizeof(*o));
	if (!o)
		return err_set(err, RC_NOMEM, "memory is out");
	http_set_user(q, o, free);
	return RC_OK;
}

enum http_next host_power_patch(struct http_request *q, struct http_response *r, void *ctx) {
	struct core *core = api_of(ctx)->core;
	struct host h;
	struct err err = {0};
	int64_t limit_mw;
	uint32_t if_version;
	if (decode_limit(q, &limit_mw, &err) == RC_OK &&
		hosts_get(core->hosts, host_of(core, q), &h, NULL, &err) == RC_OK &&
		http_check_conditions(q, true, h.config_version, &if_version, &err) == RC_OK &&
		begin_outcome(q, &err) == RC_OK &&
		hosts_set_limit(core->hosts, http_actor(q), h.id, limit_mw, if_version, limit_done,
			q, &err) == RC_OK)
		return HTTP_PENDING;
	return http_fail(q, r, &err);
}
