/* /hosts: settings and baselines. */
#include <stdio.h>
#include <string.h>

#include "api/v1/v1.h"
#include "base/clock.h"
#include "base/parse.h"
#include "core/hosts.h"

/* --- rendering -------------------------------------------------------------------------------- */

static void render_bmc(struct jsonw *w, const struct bmc_settings *b) {
	if (!b->present) {
		jsonw_null(w, "bmc");
		return;
	}
	jsonw_object(w, "bmc");
	jsonw_str(w, "url", b->url);
	render_text_or_null(w, "username", b->username);
	jsonw_str(w, "vendor", b->vendor);
	jsonw_bool(w, "allow_plaintext", b->allow_plaintext);
	jsonw_object(w, "tls");
	jsonw_str(w, "verify", bmc_tls_name(b->tls));
	render_text_or_null(w, "ca_file", b->ca_file);
	render_text_or_null(w, "fingerprint_sha256", b->fingerprint_sha256);
	render_text_or_null(w, "ciphers", b->ciphers);
	jsonw_object_end(w);
	jsonw_object_end(w);
}

static void render_host(struct jsonw *w, const struct host *h) {
	jsonw_object(w, NULL);
	jsonw_str(w, "id", h->id);
	jsonw_strf(w, "href", "/api/v1/hosts/%s", h->id);
	jsonw_str(w, "name", h->name);
	jsonw_bool(w, "local", h->local);
	render_labels(w, h->labels);
	render_bmc(w, &h->bmc);
	jsonw_object_end(w);
}

static enum http_next answer_host(struct http_response *r, const struct host *h, int status) {
	struct jsonw w;
	jsonw_init(&w, &r->body);
	render_host(&w, h);
	http_set_etag(r, h->config_version, UINT64_MAX);
	r->status = status;
	return HTTP_DONE;
}

static bool list_host(void *arg, const struct host *h, const struct host_power *power unused_arg) {
	struct page *p = arg;
	if (!page_room(p))
		return false;
	render_host(&p->w, h);
	page_item_done(p, h->id);
	return true;
}

uint64_t v1_hosts_version(void *ctx, const struct http_request *q unused_arg) {
	return hosts_version(api_of(ctx)->core->hosts);
}

enum http_next hosts_list(struct http_request *q, struct http_response *r, void *ctx) {
	struct core *core = api_of(ctx)->core;
	struct page p;
	struct err err = {0};
	if (page_begin(&p, q, r, NULL, &err) != RC_OK)
		return http_fail(q, r, &err);
	hosts_each(core->hosts, p.cursor, list_host, &p);
	page_end(&p);
	return HTTP_DONE;
}

const char *host_of(struct core *core, const struct http_request *q) {
	return hosts_resolve(core->hosts, http_param(q, "id"));
}

enum http_next host_get(struct http_request *q, struct http_response *r, void *ctx) {
	struct core *core = api_of(ctx)->core;
	struct host h;
	struct err err = {0};
	if (query_check(q, NULL, &err) != RC_OK ||
		hosts_get(core->hosts, host_of(core, q), &h, NULL, &err) != RC_OK)
		return http_fail(q, r, &err);
	return answer_host(r, &h, 200);
}

/* --- settings --------------------------------------------------------------------------------- */

struct tls_body {
	char verify[8], ca_file[256], fingerprint_sha256[97], ciphers[128];
};

struct bmc_body {
	char url[256], username[64], password[256], vendor[16];
	const json_t *tls;
	bool allow_plaintext, has_password;
};

struct host_body {
	char name[65], label_text[512];
	const json_t *labels, *bmc;
	bool has_name, has_bmc;
	struct bmc_body bmc_body;
};

static enum rc decode_tls(const json_t *object, struct bmc_settings *out, struct err *err) {
	static const struct json_in_field fields[] = {
		{"verify", JSON_IN_STR, offsetof(struct tls_body, verify), .size = 8},
		{"ca_file", JSON_IN_STR, offsetof(struct tls_body, ca_file), .size = 256,
			.nullable = true},
		{"fingerprint_sha256", JSON_IN_STR, offsetof(struct tls_body, fingerprint_sha256),
			.size = 97, .nullable = true},
		{"ciphers", JSON_IN_STR, offsetof(struct tls_body, ciphers), .size = 128,
			.nullable = true},
	};
	struct tls_body b = {.verify = "ca"};
	enum bmc_tls verify;
	enum rc rc = json_in_fields(object, "/bmc/tls", fields, array_len(fields), &b, err);
	if (rc != RC_OK)
		return rc;
	if (!bmc_tls_from_name(b.verify, &verify))
		return err_field(err, RC_INVALID, "/bmc/tls/verify", "must be ca, pin or none");
	out->tls = (uint8_t)verify;
	str_copy(out->ca_file, sizeof(out->ca_file), b.ca_file);
	str_copy(out->ciphers, sizeof(out->ciphers), b.ciphers);
	if (!str_copy(
		    out->fingerprint_sha256, sizeof(out->fingerprint_sha256), b.fingerprint_sha256))
		return err_field(err, RC_INVALID, "/bmc/tls/fingerprint_sha256",
			"must be 64 hexadecimal digits");
	return RC_OK;
}

static enum rc decode_bmc(
	const json_t *object, struct bmc_body *b, struct bmc_settings *out, struct err *err) {
	static const struct json_in_field fields[] = {
		{"url", JSON_IN_STR, offsetof(struct bmc_body, url), .size = 256, .required = true},
		{"username", JSON_IN_STR, offsetof(struct bmc_body, username), .size = 64,
			.nullable = true},
		{"password", JSON_IN_STR, offsetof(struct bmc_body, password), .size = 256,
			.nullable = true,
			.seen_offset = JSON_IN_SEEN(struct bmc_body, has_password)},
		{"vendor", JSON_IN_STR, offsetof(struct bmc_body, vendor), .size = 16},
		{"allow_plaintext", JSON_IN_BOOL, offsetof(struct bmc_body, allow_plaintext),
			.min = 0},
		{"tls", JSON_IN_OBJECT, offsetof(struct bmc_body, tls), .nullable = true},
	};
	str_copy(b->vendor, sizeof(b->vendor), "auto");
	enum rc rc = json_in_fields(object, "/bmc", fields, array_len(fields), b, err);
	if (rc != RC_OK)
		return rc;
	*out = (struct bmc_settings){
		.present = true, .allow_plaintext = b->allow_plaintext, .tls = BMC_TLS_CA};
	str_copy(out->url, sizeof(out->url), b->url);
	str_copy(out->username, sizeof(out->username), b->username);
	str_copy(out->vendor, sizeof(out->vendor), b->vendor);
	return b->tls ? decode_tls(b->tls, out, err) : RC_OK;
}

static enum rc fill_change(struct host_body *b, struct host_change *change, struct err *err) {
	enum rc rc = RC_OK;
	change->name = b->has_name ? b->name : NULL;
	if (b->labels) {
		rc = json_in_labels(
			b->labels, "/labels", b->label_text, sizeof(b->label_text), err);
		change->labels = b->label_text;
	}
	change->set_bmc = b->has_bmc;
	if (rc == RC_OK && b->bmc)
		rc = decode_bmc(b->bmc, &b->bmc_body, &change->bmc, err);
	if (b->bmc_body.has_password)
		change->bmc_password = b->bmc_body.password;
	return rc;
}

/* change borrows from b. */
static enum rc decode_host(const struct http_request *q, bool name_needed, struct host_body *b,
	struct host_change *change, struct err *err) {
	const struct json_in_field fields[] = {
		{"name", JSON_IN_STR, offsetof(struct host_body, name), .size = 65,
			.required = name_needed,
			.seen_offset = JSON_IN_SEEN(struct host_body, has_name)},
		{"labels", JSON_IN_OBJECT, offsetof(struct host_body, labels), .min = 0},
		{"bmc", JSON_IN_OBJECT, offsetof(struct host_body, bmc), .nullable = true,
			.seen_offset = JSON_IN_SEEN(struct host_body, has_bmc)},
	};
	json_t *body = NULL;
	enum rc rc = v1_body(q, &body, err);
	if (rc == RC_OK)
		rc = json_in_fields(body, "", fields, array_len(fields), b, err);
	if (rc == RC_OK)
		rc = fill_change(b, change, err);
	json_decref(body);
	return rc;
}

static enum rc create_host(struct core *core, const struct http_request *q, const struct actor *who,
	struct host *h, struct err *err) {
	struct host_body b = {0};
	struct host_change change = {0};
	enum rc rc = decode_host(q, true, &b, &change, err);
	if (rc == RC_OK)
		rc = hosts_create(core->hosts, who, NULL, &change, h, err);
	secret_wipe(&b, sizeof(b));
	return rc;
}

enum http_next host_create(struct http_request *q, struct http_response *r, void *ctx) {
	struct core *core = api_of(ctx)->core;
	struct creation c;
	struct host h;
	struct err err = {0};
	enum rc rc = creation_begin(&c, q, core, &err);
	if (rc == RC_OK)
		rc = c.made ? hosts_get(core->hosts, c.made, &h, NULL, &err)
			    : create_host(core, q, &c.who, &h, &err);
	if (rc != RC_OK)
		return http_fail(q, r, &err);
	r->replayed = c.made != NULL;
	snprintf(r->location, sizeof(r->location), "/api/v1/hosts/%s", h.id);
	return answer_host(r, &h, 201);
}

static enum rc change_host(struct core *core, const struct http_request *q, bool replace,
	struct host *h, bool *created, struct err *err) {
	struct host_body b = {0};
	struct host_change change = {0};
	const char *id = host_of(core, q);
	*created = hosts_get(core->hosts, id, h, NULL, err) == RC_NOT_FOUND;
	if (*created && !replace)
		return RC_NOT_FOUND;
	enum rc rc = decode_host(q, replace, &b, &change, err);
	if (rc == RC_OK)
		rc = http_check_conditions(
			q, !*created, h->config_version, &change.if_version, err);
	if (rc == RC_OK)
		rc = *created
			? hosts_create(core->hosts, http_actor(q), id, &change, h, err)
			: hosts_update(core->hosts, http_actor(q), id, &change, replace, h, err);
	secret_wipe(&b, sizeof(b));
	return rc;
}

enum http_next host_put(struct http_request *q, struct http_response *r, void *ctx) {
	struct host h = {0};
	struct err err = {0};
	bool created;
	if (change_host(api_of(ctx)->core, q, true, &h, &created, &err) != RC_OK)
		return http_fail(q, r, &err);
	if (created)
		snprintf(r->location, sizeof(r->location), "/api/v1/hosts/%s", h.id);
	return answer_host(r, &h, created ? 201 : 200);
}

enum http_next host_patch(struct http_request *q, struct http_response *r, void *ctx) {
	struct host h = {0};
	struct err err = {0};
	bool created;
	if (change_host(api_of(ctx)->core, q, false, &h, &created, &err) != RC_OK)
		return http_fail(q, r, &err);
	return answer_host(r, &h, 200);
}

enum http_next host_delete(struct http_request *q, struct http_response *r, void *ctx) {
	struct core *core = api_of(ctx)->core;
	struct host h;
	struct err err = {0};
	uint32_t if_version;
	const char *id = host_of(core, q);
	if (query_check(q, NULL, &err) != RC_OK ||
		hosts_get(core->hosts, id, &h, NULL, &err) != RC_OK ||
		http_check_conditions(q, true, h.config_version, &if_version, &err) != RC_OK ||
		hosts_delete(core->hosts, http_actor(q), id, if_version, &err) != RC_OK)
		return http_fail(q, r, &err);
	r->status = 204;
	return HTTP_DONE;
}

/* --- baselines -------------------------------------------------------------------------------- */

static void render_baseline(struct jsonw *w, enum baseline_kind k, const struct baseline *b) {
	if (!b->known) {
		jsonw_null(w, baseline_kind_name(k));
		return;
	}
	jsonw_object(w, baseline_kind_name(k));
	jsonw_milli(w, "w", b->power_mw);
	jsonw_milli(w, "uncertainty_w", b->uncertainty_mw);
	jsonw_str(w, "source", baseline_source_name(b->source));
	jsonw_time(w, "at", b->at_ms);
	jsonw_object_end(w);
}

static enum http_next answer_baselines(struct http_response *r, const struct host *h) {
	struct jsonw w;
	jsonw_init(&w, &r->body);
	jsonw_object(&w, NULL);
	jsonw_str(&w, "id", h->id);
	jsonw_strf(&w, "href", "/api/v1/hosts/%s/baseline", h->id);
	for (int k = 0; k < BASELINE_KIND_COUNT_; k++)
		render_baseline(&w, (enum baseline_kind)k, &h->baselines[k]);
	jsonw_object_end(&w);
	http_set_etag(r, h->config_version, UINT64_MAX);
	return HTTP_DONE;
}

enum http_next host_baseline_get(struct http_request *q, struct http_response *r, void *ctx) {
	struct core *core = api_of(ctx)->core;
	struct host h;
	struct err err = {0};
	if (query_check(q, NULL, &err) != RC_OK ||
		hosts_get(core->hosts, host_of(core, q), &h, NULL, &err) != RC_OK)
		return http_fail(q, r, &err);
	return answer_baselines(r, &h);
}

struct baseline_body {
	const json_t *kinds[BASELINE_KIND_COUNT_];
	bool seen[BASELINE_KIND_COUNT_];
};

struct declared_body {
	int64_t power_mw, uncertainty_mw;
};

static enum rc decode_declared(
	const json_t *object, const char *base, struct baseline *b, struct err *err) {
	static const struct json_in_field fields[] = {
		{"w", JSON_IN_MILLI, offsetof(struct declared_body, power_mw), .min = 0,
			.max = 100000, .required = true},
		{"uncertainty_w", JSON_IN_MILLI, offsetof(struct declared_body, uncertainty_mw),
			.min = 0, .max = 100000, .nullable = true},
	};
	struct declared_body d = {.uncertainty_mw = NONE};
	enum rc rc = json_in_fields(object, base, fields, array_len(fields), &d, err);
	*b = (struct baseline){.known = true,
		.source = BASELINE_DECLARED,
		.power_mw = d.power_mw,
		.uncertainty_mw = d.uncertainty_mw,
		.at_ms = clock_wall_ms()};
	return rc;
}

/* wishes point into out, but to nothing for a kind that the body does not name. */
static enum rc decode_baselines(const json_t *body, struct baseline out[BASELINE_KIND_COUNT_],
	const struct baseline *wishes[BASELINE_KIND_COUNT_], struct err *err) {
	struct baseline_body b = {0};
	struct json_in_field fields[BASELINE_KIND_COUNT_];
	for (int k = 0; k < BASELINE_KIND_COUNT_; k++)
		fields[k] = (struct json_in_field){
			.name = baseline_kind_name((enum baseline_kind)k),
			.type = JSON_IN_OBJECT,
			.offset = offsetof(struct baseline_body, kinds) +
				(size_t)k * sizeof(b.kinds[0]),
			.nullable = true,
			.seen_offset = offsetof(struct baseline_body, seen) + (size_t)k + 1};
	enum rc rc = json_in_fields(body, "", fields, BASELINE_KIND_COUNT_, &b, err);
	for (int k = 0; rc == RC_OK && k < BASELINE_KIND_COUNT_; k++) {
		char base[40];
		snprintf(base, sizeof(base), "/%s", fields[k].name);
		out[k] = (struct baseline){0};
		wishes[k] = b.seen[k] ? &out[k] : NULL;
		if (b.kinds[k])
			rc = decode_declared(b.kinds[k], base, &out[k], err);
	}
	return rc;
}

/* What the body names is declared or, as null, removed; the other kind stays as it is. */
static enum rc put_baselines(
	struct core *core, const struct http_request *q, struct host *h, struct err *err) {
	struct baseline declared[BASELINE_KIND_COUNT_];
	const struct baseline *wishes[BASELINE_KIND_COUNT_] = {NULL};
	json_t *body = NULL;
	uint32_t if_version;
	enum rc rc = v1_body(q, &body, err);
	if (rc == RC_OK)
		rc = decode_baselines(body, declared, wishes, err);
	json_decref(body);
	if (rc == RC_OK)
		rc = http_check_conditions(q, true, h->config_version, &if_version, err);
	if (rc == RC_OK)
		rc = hosts_set_baselines(
			core->hosts, http_actor(q), h->id, wishes, if_version, h, err);
	return rc;
}

enum http_next host_baseline_put(struct http_request *q, struct http_response *r, void *ctx) {
	struct core *core = api_of(ctx)->core;
	struct host h;
	struct err err = {0};
	if (hosts_get(core->hosts, host_of(core, q), &h, NULL, &err) != RC_OK ||
		put_baselines(core, q, &h, &err) != RC_OK)
		return http_fail(q, r, &err);
	return answer_baselines(r, &h);
}
