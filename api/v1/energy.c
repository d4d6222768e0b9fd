/* Histories of power and energy, and the raw samples of any series. */
#include <stdio.h>
#include <string.h>

#include "api/v1/v1.h"
#include "base/clock.h"
#include "base/id.h"
#include "base/parse.h"
#include "core/drive.h"
#include "core/energy.h"
#include "core/hosts.h"

#define DAY_MS INT64_C(86400000)
#define SAMPLES_LIMIT_DEFAULT 10000
#define SAMPLES_LIMIT_MAX 40000

/* --- histories -------------------------------------------------------------------------------- */

struct history_query {
	int64_t from_ms, to_ms, step_ms;
	const char *tz;
};

static enum rc read_step(const struct http_request *q, int64_t *step_ms, struct err *err) {
	const char *step = http_query(q, "step");
	*step_ms = 0;
	if (!step || strcmp(step, "auto") == 0)
		return RC_OK;
	return parse_duration_ms(step, step_ms, "step", err);
}

static enum rc read_history_query(
	const struct http_request *q, struct history_query *out, struct err *err) {
	static const char *const allowed[] = {"from", "to", "step", "tz", NULL};
	enum rc rc = query_check(q, allowed, err);
	if (rc == RC_OK)
		rc = query_span(q, &out->from_ms, &out->to_ms, err);
	if (rc == RC_OK)
		rc = read_step(q, &out->step_ms, err);
	out->tz = http_query(q, "tz");
	if (rc == RC_OK && out->tz && out->step_ms != DAY_MS)
		rc = err_field(err, RC_INVALID, "tz", "needs step=1d");
	return rc;
}

static void render_kwh(struct jsonw *w, const char *key, int64_t mj, bool known) {
	if (known)
		jsonw_double(w, key, (double)mj / 3.6e9);
	else
		jsonw_null(w, key);
}

static void render_points(struct jsonw *w, const struct energy_history *h) {
	jsonw_array(w, "points");
	for (size_t i = 0; i < h->count; i++) {
		const struct energy_point *p = &h->points[i];
		jsonw_object(w, NULL);
		jsonw_time(w, "at", p->at_ms);
		jsonw_milli(w, "avg_w", p->avg_milli);
		jsonw_milli(w, "min_w", p->min_milli);
		jsonw_milli(w, "max_w", p->max_milli);
		render_kwh(w, "energy_kwh", p->energy_mj, p->covered_ms > 0);
		jsonw_milli(w, "covered_s", p->covered_ms);
		jsonw_object_end(w);
	}
	jsonw_array_end(w);
}

static void render_history(
	struct jsonw *w, const char *id, const char *href, const struct energy_history *h) {
	jsonw_object(w, NULL);
	jsonw_str(w, "id", id);
	jsonw_str(w, "href", href);
	jsonw_strf(w, "series", "%lld", (long long)h->series.id);
	jsonw_str(w, "unit", "W");
	jsonw_str(w, "quality", quality_name(h->series.key.quality));
	jsonw_bool(w, "simulated", h->series.key.quality == QUALITY_SIMULATED);
	render_text_or_null(w, "source", h->series.source);
	jsonw_time(w, "from", h->from_ms);
	jsonw_time(w, "to", h->to_ms);
	jsonw_milli(w, "step_s", h->step_ms);
	render_points(w, h);
	jsonw_object(w, "total");
	render_kwh(w, "energy_kwh", h->energy_mj, h->covered_ms > 0);
	jsonw_milli(w, "covered_s", h->covered_ms);
	jsonw_milli(w, "expected_s", h->expected_ms);
	jsonw_null(w, "cost");
	jsonw_str(w, "cost_reason", "there is no tariff");
	jsonw_object_end(w);
	jsonw_object_end(w);
}

static void csv_milli(struct buf *out, int64_t v) {
	if (v != NONE)
		buf_printf(out, "%.3f", (double)v / 1000.0);
	buf_addc(out, ',');
}

/* A point without a reading has empty cells, never zeros. */
static void render_csv(struct buf *out, const struct energy_history *h) {
	char at[32];
	buf_adds(out, "at,avg_w,min_w,max_w,energy_kwh,covered_s,quality\r\n");
	for (size_t i = 0; i < h->count; i++) {
		const struct energy_point *p = &h->points[i];
		format_time(p->at_ms, at);
		buf_printf(out, "%s,", at);
		csv_milli(out, p->avg_milli);
		csv_milli(out, p->min_milli);
		csv_milli(out, p->max_milli);
		if (p->covered_ms > 0)
			buf_printf(out, "%.9f", (double)p->energy_mj / 3.6e9);
		buf_printf(out, ",%.3f,%s\r\n", (double)p->covered_ms / 1000.0,
			quality_name(h->series.key.quality));
	}
}

/* The power history of one object of a host; an object that has no samples yet has no series. */
static enum http_next answer_history(struct http_request *q, struct http_response *r,
	struct core *core, const char *host_id, const char *object, const char *id) {
	struct history_query hq;
	struct energy_history h = {0};
	struct series s;
	struct err err = {0};
	struct jsonw w;
	enum rc rc = read_history_query(q, &hq, &err);
	if (rc == RC_OK)
		rc = energy_find(core->energy, host_id, object, QUANTITY_POWER, &s, &err);
	if (rc == RC_NOT_FOUND)
		err_set(&err, rc, "there is no power reading of it yet");
	if (rc == RC_OK)
		rc = energy_query(
			core->energy, s.id, hq.from_ms, hq.to_ms, hq.step_ms, hq.tz, &h, &err);
	if (rc != RC_OK)
		return http_fail(q, r, &err);
	if (http_accepts(q, "text/csv")) {
		r->content_type = "text/csv; charset=utf-8";
		render_csv(&r->body, &h);
	} else {
		jsonw_init(&w, &r->body);
		render_history(&w, id, http_path(q), &h);
	}
	energy_history_release(&h);
	return HTTP_DONE;
}

enum http_next host_energy_get(struct http_request *q, struct http_response *r, void *ctx) {
	struct core *core = api_of(ctx)->core;
	struct host h;
	struct err err = {0};
	const char *id = hosts_resolve(core->hosts, http_param(q, "id"));
	if (hosts_get(core->hosts, id, &h, NULL, &err) != RC_OK)
		return http_fail(q, r, &err);
	return answer_history(q, r, core, h.id, "host", h.id);
}

enum http_next drive_energy_get(struct http_request *q, struct http_response *r, void *ctx) {
	struct core *core = api_of(ctx)->core;
	struct drive d;
	struct err err = {0};
	if (drives_get(core->drives, http_param(q, "id"), &d, NULL, NULL, &err) != RC_OK)
		return http_fail(q, r, &err);
	return answer_history(q, r, core, core->host_id, d.id, d.id);
}

/* --- series ----------------------------------------------------------------------------------- */

static void render_series(struct jsonw *w, const struct series *s) {
	jsonw_strf(w, "id", "%lld", (long long)s->id);
	jsonw_strf(w, "href", "/api/v1/series/%lld", (long long)s->id);
	jsonw_str(w, "host", s->key.host_id);
	jsonw_str(w, "object", s->key.object);
	jsonw_str(w, "quantity", quantity_name(s->key.quantity));
	jsonw_str(w, "unit", quantity_unit(s->key.quantity));
	jsonw_str(w, "quality", quality_name(s->key.quality));
	render_text_or_null(w, "source", s->source);
	jsonw_time(w, "first_at", s->first_ms);
	jsonw_time(w, "last_at", s->last_ms);
}

static bool list_series(void *arg, const struct series *s) {
	struct page *p = arg;
	char cursor[24];
	if (!page_room(p))
		return false;
	jsonw_object(&p->w, NULL);
	render_series(&p->w, s);
	jsonw_object_end(&p->w);
	snprintf(cursor, sizeof(cursor), "%lld", (long long)s->id);
	page_item_done(p, cursor);
	return true;
}

static enum rc read_series_filter(struct core *core, const struct http_request *q,
	const char **host, int *quantity, struct err *err) {
	const char *name = http_query(q, "quantity");
	enum quantity found;
	*host = http_query(q, "host");
	if (*host)
		*host = hosts_resolve(core->hosts, *host);
	*quantity = -1;
	if (!name)
		return RC_OK;
	if (!quantity_from_name(name, &found))
		return err_field(err, RC_INVALID, "quantity", "is not a quantity that is kept");
	*quantity = (int)found;
	return RC_OK;
}

/* Series outlive their host: only a host that is not there and has none is a fault. */
static enum rc check_series_host(
	struct core *core, const struct http_request *q, const struct page *p, struct err *err) {
	const char *id;
	return p->count || p->cursor[0] ? RC_OK : query_host(q, core, &id, err);
}

enum http_next series_list(struct http_request *q, struct http_response *r, void *ctx) {
	static const char *const allowed[] = {"host", "object", "quantity", NULL};
	struct core *core = api_of(ctx)->core;
	struct page p;
	struct err err = {0};
	const char *host;
	int64_t after = 0;
	int quantity;
	enum rc rc = page_begin(&p, q, r, allowed, &err);
	if (rc == RC_OK)
		rc = read_series_filter(core, q, &host, &quantity, &err);
	if (rc == RC_OK && p.cursor[0])
		rc = parse_i64(p.cursor, 0, INT64_MAX, &after, "cursor", &err);
	if (rc == RC_OK)
		rc = energy_list(core->energy, host, http_query(q, "object"), quantity, after,
			p.limit + 1, list_series, &p, &err);
	if (rc == RC_OK)
		rc = check_series_host(core, q, &p, &err);
	if (rc != RC_OK)
		return http_fail(q, r, &err);
	page_end(&p);
	return HTTP_DONE;
}

static enum rc find_series(
	struct core *core, const struct http_request *q, struct series *out, struct err *err) {
	int64_t id;
	if (parse_i64(http_param(q, "id"), 1, INT64_MAX, &id, "", err) != RC_OK)
		return err_set(err, RC_NOT_FOUND, "there is no series with this id");
	return energy_get(core->energy, id, out, err);
}

enum http_next series_get(struct http_request *q, struct http_response *r, void *ctx) {
	struct series s;
	struct err err = {0};
	struct jsonw w;
	if (query_check(q, NULL, &err) != RC_OK ||
		find_series(api_of(ctx)->core, q, &s, &err) != RC_OK)
		return http_fail(q, r, &err);
	jsonw_init(&w, &r->body);
	jsonw_object(&w, NULL);
	render_series(&w, &s);
	jsonw_object_end(&w);
	return HTTP_DONE;
}

struct samples_ctx {
	struct jsonw w;
	struct buf *csv; /* NULL: JSON */
	int64_t limit, count, next_ms;
};

static bool list_sample(void *arg, const struct sample *s) {
	struct samples_ctx *c = arg;
	char at[32];
	if (c->count == c->limit) {
		c->next_ms = s->at_ms;
		return false;
	}
	c->count++;
	if (c->csv) {
		format_time(s->at_ms, at);
		buf_printf(c->csv, "%s,%.3f\r\n", at, (double)s->value_milli / 1000.0);
		return true;
	}
	jsonw_object(&c->w, NULL);
	jsonw_time(&c->w, "at", s->at_ms);
	jsonw_milli(&c->w, "value", s->value_milli);
	jsonw_object_end(&c->w);
	return true;
}

/* The cursor is the time of the next sample: two of one instant are one sample. */
static enum rc read_samples_query(const struct http_request *q, int64_t *from_ms, int64_t *to_ms,
	int64_t *limit, struct err *err) {
	static const char *const allowed[] = {"from", "to", "limit", "cursor", NULL};
	*limit = SAMPLES_LIMIT_DEFAULT;
	enum rc rc = query_check(q, allowed, err);
	if (rc == RC_OK)
		rc = query_span(q, from_ms, to_ms, err);
	if (rc == RC_OK)
		rc = query_int(q, "limit", 1, SAMPLES_LIMIT_MAX, limit, err);
	if (rc == RC_OK)
		rc = query_int(q, "cursor", *from_ms, *to_ms, from_ms, err);
	return rc;
}

static void begin_samples(struct samples_ctx *c, struct http_response *r, const struct series *s) {
	if (c->csv) {
		r->content_type = "text/csv; charset=utf-8";
		buf_printf(&r->body, "at,%s_%s\r\n", quantity_name(s->key.quantity),
			quality_name(s->key.quality));
		return;
	}
	jsonw_init(&c->w, &r->body);
	jsonw_object(&c->w, NULL);
	render_series(&c->w, s);
	jsonw_array(&c->w, "items");
}

static void end_samples(struct samples_ctx *c) {
	if (c->csv)
		return;
	jsonw_array_end(&c->w);
	if (c->next_ms)
		jsonw_strf(&c->w, "next", "%lld", (long long)c->next_ms);
	else
		jsonw_null(&c->w, "next");
	jsonw_object_end(&c->w);
}

enum http_next series_samples_get(struct http_request *q, struct http_response *r, void *ctx) {
	struct core *core = api_of(ctx)->core;
	struct samples_ctx c = {.csv = http_accepts(q, "text/csv") ? &r->body : NULL};
	struct series s;
	struct err err = {0};
	int64_t from_ms, to_ms;
	if (read_samples_query(q, &from_ms, &to_ms, &c.limit, &err) != RC_OK ||
		find_series(core, q, &s, &err) != RC_OK)
		return http_fail(q, r, &err);
	begin_samples(&c, r, &s);
	if (energy_raw(core->energy, s.id, from_ms, to_ms, list_sample, &c, &err) != RC_OK)
		return http_fail(q, r, &err);
	end_samples(&c);
	return HTTP_DONE;
}
