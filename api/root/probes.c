/* Probes and the files that describe the service. */
#include <string.h>

#include "api/root/root.h"
#include "base/asset.h"
#include "base/jsonw.h"

enum http_next healthz(
	struct http_request *q unused_arg, struct http_response *r, void *ctx unused_arg) {
	buf_adds(&r->body, "{\"status\":\"ok\"}");
	return HTTP_DONE;
}

static const char *const store_words[STORE_STATE_COUNT_] = {
	[STORE_OK] = "ok",
	[STORE_FULL] = "full",
	[STORE_READ_ONLY] = "read_only",
	[STORE_FAILING] = "failing",
};

/* A store that cannot be written degrades but does not take readiness away: reads and power
 * control go on. */
enum http_next readyz(struct http_request *q unused_arg, struct http_response *r, void *ctx) {
	struct api *api = api_of(ctx);
	const bool workers = api->config.ready(api->config.ready_arg);
	enum store_state control, samples;
	struct jsonw w;
	core_store_states(api->core, &control, &samples);
	const bool ready = workers && control != STORE_FAILING && samples != STORE_FAILING;
	const bool whole = control == STORE_OK && samples == STORE_OK;
	jsonw_init(&w, &r->body);
	jsonw_object(&w, NULL);
	jsonw_str(&w, "control_store", store_words[control]);
	jsonw_str(&w, "samples_store", store_words[samples]);
	jsonw_str(&w, "workers", workers ? "ok" : "failing");
	jsonw_str(&w, "status", !ready ? "not_ready" : whole ? "ready" : "degraded");
	jsonw_object_end(&w);
	r->status = ready ? 200 : 503;
	return HTTP_DONE;
}

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
