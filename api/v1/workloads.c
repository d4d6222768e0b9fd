/* /workloads: the catalogue and one's own; also how a workload reads in JSON. */
#include <stdio.h>
#include <string.h>

#include "api/v1/workload_json.h"
#include "base/id.h"
#include "base/parse.h"
#include "core/bench.h"

void workload_render(struct jsonw *w, const struct workload *l) {
	enum workload_pattern p = l->pattern;
	jsonw_str(w, "pattern", workload_pattern_name(p));
	if (p == PATTERN_IDLE)
		return;
	jsonw_uint(w, "block_bytes", l->block_bytes);
	jsonw_uint(w, "iodepth", l->iodepth);
	jsonw_uint(w, "jobs", l->jobs);
	if (p == PATTERN_RW || p == PATTERN_RANDRW)
		jsonw_uint(w, "read_pct", l->read_pct);
	jsonw_uint(w, "size_bytes", l->size_bytes);
	jsonw_uint(w, "rate_bytes_per_s", l->rate_bytes_per_s);
	jsonw_bool(w, "direct", l->direct);
}

struct workload_body {
	char pattern[16];
	int64_t block_bytes, iodepth, jobs, read_pct, size_bytes, rate_bytes_per_s;
	bool direct;
};

enum rc workload_decode(
	const json_t *object, const char *base, struct workload *out, struct err *err) {
	static const struct json_in_field fields[] = {
		{"pattern", JSON_IN_STR, offsetof(struct workload_body, pattern), .size = 16,
			.required = true},
		{"block_bytes", JSON_IN_INT, offsetof(struct workload_body, block_bytes),
			.min = 512, .max = 16 << 20},
		{"iodepth", JSON_IN_INT, offsetof(struct workload_body, iodepth), .min = 1,
			.max = 1024},
		{"jobs", JSON_IN_INT, offsetof(struct workload_body, jobs), .min = 1, .max = 64},
		{"read_pct", JSON_IN_INT, offsetof(struct workload_body, read_pct), .min = 0,
			.max = 100},
		{"size_bytes", JSON_IN_INT, offsetof(struct workload_body, size_bytes), .min = 0,
			.max = INT64_MAX},
		{"rate_bytes_per_s", JSON_IN_INT, offsetof(struct workload_body, rate_bytes_per_s),
			.min = 0, .max = INT64_MAX},
		{"direct", JSON_IN_BOOL, offsetof(struct workload_body, direct), .min = 0},
	};
	struct workload_body b = {
		.block_bytes = 4096, .iodepth = 1, .jobs = 1, .read_pct = 50, .direct = true};
	enum workload_pattern pattern;
	char pointer[96];
	enum rc rc = json_in_fields(object, base, fields, array_len(fields), &b, err);
	if (rc != RC_OK)
		return rc;
	snprintf(pointer, sizeof(pointer), "%s/pattern", base);
	if (!workload_pattern_from_name(b.pattern, &pattern))
		return err_field(err, RC_INVALID, pointer,
			"must be read, write, randread, randwrite, rw, randrw or idle");
	*out = (struct workload){
		.pattern = (uint8_t)pattern,
		.block_bytes = (uint32_t)b.block_bytes,
		.iodepth = (uint16_t)b.iodepth,
		.jobs = (uint16_t)b.jobs,
		.read_pct = (uint8_t)b.read_pct,
		.size_bytes = (uint64_t)b.size_bytes,
		.rate_bytes_per_s = (uint64_t)b.rate_bytes_per_s,
		.direct = b.direct,
	};
	return workload_check(out, base, err);
}

static void render_resource(struct jsonw *w, const struct workload *l) {
	jsonw_object(w, NULL);
	jsonw_str(w, "id", l->name);
	jsonw_str(w, "name", l->name);
	jsonw_strf(w, "href", "/api/v1/workloads/%s", l->name);
	jsonw_bool(w, "builtin", l->builtin);
	workload_render(w, l);
	jsonw_object_end(w);
}

static bool list_workload(void *arg, const struct workload *l) {
	struct page *p = arg;
	if (strcmp(l->name, p->cursor) <= 0 && p->cursor[0])
		return true;
	if (!page_room(p))
		return false;
	render_resource(&p->w, l);
	page_item_done(p, l->name);
	return true;
}

/* The catalogue comes whole on the first page, one's own follow by name. */
enum http_next workloads_list(struct http_request *q, struct http_response *r, void *ctx) {
	struct core *core = api_of(ctx)->core;
	struct page p;
	struct err err = {0};
	size_t n;
	const struct workload *builtins = workload_builtins(&n);
	if (page_begin(&p, q, r, NULL, &err) != RC_OK)
		return http_fail(q, r, &err);
	for (size_t i = 0; p.cursor[0] == '\0' && i < n; i++)
		render_resource(&p.w, &builtins[i]);
	enum rc rc = bench_workload_each(core->bench, list_workload, &p, &err);
	page_end(&p);
	return rc == RC_OK ? HTTP_DONE : http_fail(q, r, &err);
}

static enum http_next answer_workload(
	struct http_response *r, const struct workload *l, int status) {
	struct jsonw w;
	jsonw_init(&w, &r->body);
	render_resource(&w, l);
	if (!l->builtin)
		http_set_etag(r, l->config_version, UINT64_MAX);
	r->status = status;
	return HTTP_DONE;
}

enum http_next workload_get(struct http_request *q, struct http_response *r, void *ctx) {
	struct workload l;
	struct err err = {0};
	if (query_check(q, NULL, &err) != RC_OK ||
		bench_workload_find(api_of(ctx)->core->bench, http_param(q, "name"), &l, &err) !=
			RC_OK)
		return http_fail(q, r, &err);
	return answer_workload(r, &l, 200);
}

static enum rc read_own(const struct http_request *q, struct workload *l, struct err *err) {
	const char *name = http_param(q, "name");
	json_t *body = NULL;
	enum rc rc = v1_body(q, &body, err);
	if (rc == RC_OK)
		rc = workload_decode(body, "", l, err);
	json_decref(body);
	if (rc == RC_OK && (!id_is_name(name) || !str_copy(l->name, sizeof(l->name), name)))
		rc = err_set(err, RC_INVALID,
			"a workload's name is 1 to 64 letters, digits, dots, dashes or underlines");
	return rc;
}

static enum rc check_conditions(
	struct core *core, const struct http_request *q, uint32_t *if_version, struct err *err) {
	struct workload l = {.config_version = 0};
	enum rc rc = bench_workload_find(core->bench, http_param(q, "name"), &l, err);
	if (rc != RC_OK && rc != RC_NOT_FOUND)
		return rc;
	return http_check_conditions(q, rc == RC_OK, l.config_version, if_version, err);
}

enum http_next workload_put(struct http_request *q, struct http_response *r, void *ctx) {
	struct core *core = api_of(ctx)->core;
	struct workload l;
	struct err err = {0};
	uint32_t if_version;
	bool created = false;
	if (read_own(q, &l, &err) != RC_OK ||
		check_conditions(core, q, &if_version, &err) != RC_OK ||
		bench_workload_put(core->bench, http_actor(q), &l, if_version, &created, &err) !=
			RC_OK)
		return http_fail(q, r, &err);
	if (created)
		snprintf(r->location, sizeof(r->location), "/api/v1/workloads/%s", l.name);
	return answer_workload(r, &l, created ? 201 : 200);
}

enum http_next workload_delete(struct http_request *q, struct http_response *r, void *ctx) {
	struct core *core = api_of(ctx)->core;
	struct err err = {0};
	uint32_t if_version;
	if (query_check(q, NULL, &err) != RC_OK ||
		check_conditions(core, q, &if_version, &err) != RC_OK ||
		bench_workload_delete(core->bench, http_actor(q), http_param(q, "name"), if_version,
			&err) != RC_OK)
		return http_fail(q, r, &err);
	r->status = 204;
	return HTTP_DONE;
}
