/* Probes and the files that describe the service. */
#include <string.h>

#include "api/root/root.h"
#include "base/asset.h"
#include "base/jsonw.h"
#include "core/privc.h"

enum http_next healthz(
	struct http_request *q unused_arg, struct http_response *r, void *ctx unused_arg) {
	buf_adds(&r->body, "{\"status\":\"ok\"}");
	return HTTP_DONE;
}

/* --- readiness -------------------------------------------------------------------------------- */

enum fault { FAULT_NONE, FAULT_DEGRADES, FAULT_STOPS };

struct part {
	const char *name, *word;
	enum fault fault;
	const char *detail; /* of a fault */
};

/* A store that cannot be written degrades but does not take readiness away: reads and power
 * control go on. */
static struct part store_part(const char *name, enum store_state state) {
	static const struct part parts[STORE_STATE_COUNT_] = {
		[STORE_OK] = {NULL, "ok", FAULT_NONE, NULL},
		[STORE_FULL] = {NULL, "full", FAULT_DEGRADES, "the disk is full"},
		[STORE_READ_ONLY] = {NULL, "read_only", FAULT_DEGRADES, "it cannot be written"},
		[STORE_FAILING] = {NULL, "failing", FAULT_STOPS, "it cannot be read"},
	};
	struct part p = parts[state];
	p.name = name;
	return p;
}

/* Simulated drives need it for benchmarks alone. */
static struct part helper_part(const struct core *core) {
	if (!core->privc || !privc_lost(core->privc))
		return (struct part){"helper", "ok", FAULT_NONE, NULL};
	return (struct part){"helper", "lost", core->sim ? FAULT_DEGRADES : FAULT_STOPS,
		core->sim ? "the privileged helper is gone: no benchmarks until a restart"
			  : "the privileged helper is gone: no drives and no benchmarks until a "
			    "restart"};
}

static struct part workers_part(struct api *api) {
	if (api->config.ready(api->config.ready_arg))
		return (struct part){"workers", "ok", FAULT_NONE, NULL};
	return (struct part){"workers", "failing", FAULT_STOPS, "the service starts or stops"};
}

static void render_reason(struct jsonw *w, const struct part *p) {
	jsonw_object(w, NULL);
	jsonw_str(w, "part", p->name);
	jsonw_str(w, "detail", p->detail);
	jsonw_object_end(w);
}

enum http_next readyz(struct http_request *q unused_arg, struct http_response *r, void *ctx) {
	static const char *const statuses[] = {"ready", "degraded", "not_ready"};
	struct api *api = api_of(ctx);
	enum store_state control, samples;
	enum fault worst = FAULT_NONE;
	struct jsonw w;
	core_store_states(api->core, &control, &samples);
	const struct part parts[] = {
		store_part("control_store", control),
		store_part("samples_store", samples),
		helper_part(api->core),
		workers_part(api),
	};
	jsonw_init(&w, &r->body);
	jsonw_object(&w, NULL);
	for (size_t i = 0; i < array_len(parts); i++) {
		jsonw_str(&w, parts[i].name, parts[i].word);
		worst = parts[i].fault > worst ? parts[i].fault : worst;
	}
	jsonw_str(&w, "status", statuses[worst]);
	jsonw_array(&w, "reasons");
	for (size_t i = 0; i < array_len(parts); i++) {
		if (parts[i].fault)
			render_reason(&w, &parts[i]);
	}
	jsonw_array_end(&w);
	jsonw_object_end(&w);
	r->status = worst == FAULT_STOPS ? 503 : 200;
	return HTTP_DONE;
}

/* --- files ------------------------------------------------------------------------------------ */

static enum http_next answer_asset(struct http_request *q, struct http_response *r,
	const char *path, const char *content_type) {
	struct err err = {0};
	for (const struct asset *a = asset_table; a->path; a++) {
		if (strcmp(a->path, path) != 0)
			continue;
		r->content_type = content_type;
		r->asset = (const char *)a->data;
		r->asset_len = *a->len;
		return HTTP_DONE;
	}
	err_set(&err, RC_NOT_FOUND, "%s is not part of this build", path);
	return http_fail(q, r, &err);
}

enum http_next openapi_yaml(struct http_request *q, struct http_response *r, void *ctx unused_arg) {
	return answer_asset(q, r, "openapi.yaml", "application/yaml");
}

enum http_next openapi_json(struct http_request *q, struct http_response *r, void *ctx unused_arg) {
	return answer_asset(q, r, "openapi.json", "application/json");
}

enum http_next index_page(struct http_request *q, struct http_response *r, void *ctx unused_arg) {
	return answer_asset(q, r, "web/index.html", "text/html; charset=utf-8");
}
