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

static bool check(struct jsonw *w, const char *name, bool good) {
	jsonw_str(w, name, good ? "ok" : "failing");
	return good;
}

/* A store that cannot write does not take readiness away: reads and power control go on. */
enum http_next readyz(struct http_request *q unused_arg, struct http_response *r, void *ctx) {
	struct api *api = api_of(ctx);
	struct jsonw w;
	bool ready = true, control, samples;
	core_stores_open(api->core, &control, &samples);
	jsonw_init(&w, &r->body);
	jsonw_object(&w, NULL);
	ready &= check(&w, "control_store", control);
	ready &= check(&w, "samples_store", samples);
	ready &= check(&w, "workers", api->config.ready(api->config.ready_arg));
	jsonw_str(&w, "status", ready ? "ready" : "not_ready");
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
