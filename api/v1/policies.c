/* /policies: standing wishes for the drives that a selector fits. */
#include <stdio.h>
#include <string.h>

#include "api/v1/v1.h"
#include "base/parse.h"
#include "core/power.h"

#define PRIORITY_MAX 1000

static void render_policy(struct jsonw *w, const struct policy_view *v) {
	const struct policy *p = &v->policy;
	jsonw_object(w, NULL);
	jsonw_str(w, "id", p->name);
	jsonw_str(w, "name", p->name);
	jsonw_strf(w, "href", "/api/v1/policies/%s", p->name);
	jsonw_int(w, "priority", p->priority);
	selector_render(w, "selector", &p->selector);
	jsonw_object(w, "desired");
	wish_render(w, &p->wish);
	jsonw_object_end(w);
	jsonw_object(w, "drives");
	jsonw_uint(w, "selected", v->selected);
	jsonw_uint(w, "holding", v->holding);
	jsonw_uint(w, "in_sync", v->in_sync);
	jsonw_uint(w, "unable", v->unable);
	jsonw_object_end(w);
	jsonw_time(w, "created_at", p->created_ms);
	jsonw_time(w, "changed_at", p->changed_ms);
	jsonw_object_end(w);
}

static bool list_policy(void *arg, const struct policy_view *v) {
	struct page *p = arg;
	if (!page_room(p))
		return false;
	render_policy(&p->w, v);
	page_item_done(p, v->policy.name);
	return true;
}

enum http_next policies_list(struct http_request *q, struct http_response *r, void *ctx) {
	struct page p;
	struct err err = {0};
	if (page_begin(&p, q, r, NULL, &err) != RC_OK)
		return http_fail(q, r, &err);
	power_policy_each(api_of(ctx)->core->power, p.cursor, list_policy, &p);
	page_end(&p);
	return HTTP_DONE;
}

static enum http_next answer_policy(
	struct http_response *r, struct core *core, const struct policy_view *v, int status) {
	struct jsonw w;
	jsonw_init(&w, &r->body);
	render_policy(&w, v);
	http_set_etag(r, v->policy.config_version, power_policies_version(core->power));
	r->status = status;
	return HTTP_DONE;
}

enum http_next policy_get(struct http_request *q, struct http_response *r, void *ctx) {
	struct core *core = api_of(ctx)->core;
	struct policy_view v;
	struct err err = {0};
	if (query_check(q, NULL, &err) != RC_OK ||
		power_policy_get(core->power, http_param(q, "name"), &v, &err) != RC_OK)
		return http_fail(q, r, &err);
	return answer_policy(r, core, &v, 200);
}

struct policy_body {
	int64_t priority;
	const json_t *selector, *desired;
};

static enum rc decode_policy(
	struct core *core, const json_t *body, struct policy *out, struct err *err) {
	static const struct json_in_field fields[] = {
		{"priority", JSON_IN_INT, offsetof(struct policy_body, priority),
			.min = -PRIORITY_MAX, .max = PRIORITY_MAX},
		{"selector", JSON_IN_OBJECT, offsetof(struct policy_body, selector),
			.required = true},
		{"desired", JSON_IN_OBJECT, offsetof(struct policy_body, desired),
			.required = true},
	};
	struct policy_body b = {0};
	enum rc rc = json_in_fields(body, "", fields, array_len(fields), &b, err);
	if (rc == RC_OK)
		rc = selector_decode(core, b.selector, "/selector", &out->selector, err);
	if (rc == RC_OK)
		rc = wish_decode(b.desired, "/desired", &out->wish, NULL, err);
	out->priority = (int32_t)b.priority;
	return rc;
}

static enum rc read_policy(
	struct core *core, const struct http_request *q, struct policy *out, struct err *err) {
	json_t *body = NULL;
	if (!str_copy(out->name, sizeof(out->name), http_param(q, "name")))
		return err_set(err, RC_INVALID, "a policy's name has at most 64 characters");
	enum rc rc = v1_body(q, &body, err);
	if (rc == RC_OK)
		rc = decode_policy(core, body, out, err);
	json_decref(body);
	return rc;
}

static enum rc check_conditions(
	struct core *core, const struct http_request *q, uint32_t *if_version, struct err *err) {
	struct policy_view v;
	struct err none;
	const bool found = power_policy_get(core->power, http_param(q, "name"), &v, &none) == RC_OK;
	return http_check_conditions(
		q, found, found ? v.policy.config_version : 0, if_version, err);
}

enum http_next policy_put(struct http_request *q, struct http_response *r, void *ctx) {
	struct core *core = api_of(ctx)->core;
	struct policy_view v;
	struct policy policy = {0};
	struct err err = {0};
	uint32_t if_version;
	bool created = false;
	if (read_policy(core, q, &policy, &err) != RC_OK ||
		check_conditions(core, q, &if_version, &err) != RC_OK ||
		power_policy_put(core->power, http_actor(q), &policy, if_version, &created, &err) !=
			RC_OK)
		return http_fail(q, r, &err);
	power_policy_view(core->power, &policy, &v);
	if (created)
		snprintf(r->location, sizeof(r->location), "/api/v1/policies/%s", policy.name);
	return answer_policy(r, core, &v, created ? 201 : 200);
}

enum http_next policy_delete(struct http_request *q, struct http_response *r, void *ctx) {
	struct core *core = api_of(ctx)->core;
	struct err err = {0};
	uint32_t if_version;
	if (query_check(q, NULL, &err) != RC_OK ||
		check_conditions(core, q, &if_version, &err) != RC_OK ||
		power_policy_delete(core->power, http_actor(q), http_param(q, "name"), if_version,
			&err) != RC_OK)
		return http_fail(q, r, &err);
	r->status = 204;
	return HTTP_DONE;
}
