/* /accounts and /tokens. Only an administrator sees others' accounts. */
#include <stdio.h>
#include <string.h>

#include "api/v1/v1.h"
#include "base/parse.h"
#include "core/accounts.h"
#include "base/secret.h"

static void render_account(struct jsonw *w, const struct account *a) {
	jsonw_object(w, NULL);
	jsonw_str(w, "id", a->id);
	jsonw_strf(w, "href", "/api/v1/accounts/%s", a->id);
	jsonw_str(w, "name", a->name);
	jsonw_str(w, "role", role_name(a->role));
	jsonw_bool(w, "enabled", a->enabled);
	jsonw_time(w, "created_at", a->created_ms);
	jsonw_object_end(w);
}

static enum http_next answer_account(struct http_response *r, const struct account *a, int status) {
	struct jsonw w;
	jsonw_init(&w, &r->body);
	render_account(&w, a);
	http_set_etag(r, a->config_version, UINT64_MAX);
	r->status = status;
	return HTTP_DONE;
}

static bool list_account(void *arg, const struct account *a) {
	struct page *p = arg;
	if (!page_room(p))
		return false;
	render_account(&p->w, a);
	page_item_done(p, a->name);
	return true;
}

uint64_t v1_accounts_version(void *ctx, const struct http_request *q unused_arg) {
	return accounts_version(api_of(ctx)->core->accounts);
}

enum http_next accounts_list(struct http_request *q, struct http_response *r, void *ctx) {
	struct core *core = api_of(ctx)->core;
	struct page p;
	struct err err = {0};
	enum rc rc = page_begin(&p, q, r, NULL, &err);
	if (rc == RC_OK)
		rc = accounts_each(core->accounts, p.cursor, p.limit + 1, list_account, &p, &err);
	if (rc != RC_OK)
		return http_fail(q, r, &err);
	page_end(&p);
	return HTTP_DONE;
}

static bool is_administrator(const struct http_request *q) {
	return http_actor(q)->role == ROLE_ADMINISTRATOR;
}

/* What one may not see does not exist for one. */
static enum rc find_account(
	struct core *core, const struct http_request *q, struct account *out, struct err *err) {
	const char *id = http_param(q, "id");
	if (!is_administrator(q) && strcmp(id, http_actor(q)->account_id) != 0)
		return err_set(err, RC_NOT_FOUND, "there is no account with this id");
	return accounts_get(core->accounts, id, out, err);
}

enum http_next account_get(struct http_request *q, struct http_response *r, void *ctx) {
	struct account a;
	struct err err = {0};
	if (query_check(q, NULL, &err) != RC_OK ||
		find_account(api_of(ctx)->core, q, &a, &err) != RC_OK)
		return http_fail(q, r, &err);
	return answer_account(r, &a, 200);
}

struct account_body {
	char name[65], password[ACCOUNTS_PASSWORD_MAX + 1], role[16];
	char current_password[ACCOUNTS_PASSWORD_MAX + 1];
	bool enabled, has_name, has_password, has_role, has_enabled, has_current;
};

static enum rc decode_account(const struct http_request *q, bool create, struct account_body *b,
	struct account_change *change, struct err *err) {
	const struct json_in_field fields[] = {
		{"name", JSON_IN_STR, offsetof(struct account_body, name), .size = 65,
			.required = create,
			.seen_offset = JSON_IN_SEEN(struct account_body, has_name)},
		{"password", JSON_IN_STR, offsetof(struct account_body, password),
			.size = ACCOUNTS_PASSWORD_MAX + 1, .required = create,
			.seen_offset = JSON_IN_SEEN(struct account_body, has_password)},
		{"role", JSON_IN_STR, offsetof(struct account_body, role), .size = 16,
			.required = create,
			.seen_offset = JSON_IN_SEEN(struct account_body, has_role)},
		{"enabled", JSON_IN_BOOL, offsetof(struct account_body, enabled),
			.seen_offset = JSON_IN_SEEN(struct account_body, has_enabled)},
		{"current_password", JSON_IN_STR, offsetof(struct account_body, current_password),
			.size = ACCOUNTS_PASSWORD_MAX + 1,
			.seen_offset = JSON_IN_SEEN(struct account_body, has_current)},
	};
	json_t *body = NULL;
	enum rc rc = v1_body(q, &body, err);
	if (rc == RC_OK)
		rc = json_in_fields(
			body, "", fields, array_len(fields) - create, b, err); /* not of new ones */
	json_decref(body);
	if (rc != RC_OK)
		return rc;
	*change = (struct account_change){.name = b->has_name ? b->name : NULL,
		.password = b->has_password ? b->password : NULL,
		.current_password = b->has_current ? b->current_password : NULL,
		.enabled = b->has_enabled ? b->enabled : -1};
	if (b->has_role && !role_from_name(b->role, &change->role))
		return err_field(
			err, RC_INVALID, "/role", "must be ReadOnly, Operator or Administrator");
	return RC_OK;
}

static enum rc create_account(struct core *core, const struct http_request *q,
	const struct actor *who, struct account *a, struct err *err) {
	struct account_body b = {0};
	struct account_change change;
	enum rc rc = decode_account(q, true, &b, &change, err);
	if (rc == RC_OK)
		rc = accounts_create(core->accounts, who, &change, a, err);
	secret_wipe(&b, sizeof(b));
	return rc;
}

enum http_next account_create(struct http_request *q, struct http_response *r, void *ctx) {
	struct core *core = api_of(ctx)->core;
	struct creation c;
	struct account a;
	struct err err = {0};
	enum rc rc = creation_begin(&c, q, core, &err);
	if (rc == RC_OK)
		rc = c.made ? accounts_get(core->accounts, c.made, &a, &err)
			    : create_account(core, q, &c.who, &a, &err);
	if (rc != RC_OK)
		return http_fail(q, r, &err);
	r->replayed = c.made != NULL;
	snprintf(r->location, sizeof(r->location), "/api/v1/accounts/%s", a.id);
	return answer_account(r, &a, 201);
}

static enum rc patch_account(
	struct core *core, struct http_request *q, struct account *a, struct err *err) {
	struct account_body b = {0};
	struct account_change change = {0};
	enum rc rc = find_account(core, q, a, err);
	if (rc == RC_OK)
		rc = decode_account(q, false, &b, &change, err);
	bool own = b.has_password && !b.has_name && !b.has_role && !b.has_enabled;
	if (rc == RC_OK && !is_administrator(q) && !own)
		rc = err_set(
			err, RC_FORBIDDEN, "only the password of one's own account may change");
	if (rc == RC_OK)
		rc = http_check_conditions(q, true, a->config_version, &change.if_version, err);
	if (rc == RC_OK)
		rc = accounts_update(
			core->accounts, http_actor(q), http_param(q, "id"), &change, a, err);
	secret_wipe(&b, sizeof(b));
	return rc;
}

enum http_next account_patch(struct http_request *q, struct http_response *r, void *ctx) {
	struct account a;
	struct err err = {0};
	if (patch_account(api_of(ctx)->core, q, &a, &err) != RC_OK)
		return http_fail(q, r, &err);
	return answer_account(r, &a, 200);
}

enum http_next account_delete(struct http_request *q, struct http_response *r, void *ctx) {
	struct core *core = api_of(ctx)->core;
	struct account a;
	struct err err = {0};
	uint32_t if_version;
	if (query_check(q, NULL, &err) != RC_OK || find_account(core, q, &a, &err) != RC_OK ||
		http_check_conditions(q, true, a.config_version, &if_version, &err) != RC_OK ||
		accounts_delete(core->accounts, http_actor(q), a.id, if_version, &err) != RC_OK)
		return http_fail(q, r, &err);
	r->status = 204;
	return HTTP_DONE;
}

/* --- tokens ----------------------------------------------------------------------------------- */

#define TOKEN_VERSION 1 /* nothing about a token changes, and its id never comes again */

static void render_token(struct jsonw *w, const struct token *t, const char *secret) {
	jsonw_object(w, NULL);
	jsonw_str(w, "id", t->id);
	jsonw_strf(w, "href", "/api/v1/tokens/%s", t->id);
	jsonw_str(w, "name", t->name);
	jsonw_str(w, "account", t->account_id);
	jsonw_str(w, "role", role_name(t->role));
	jsonw_time(w, "created_at", t->created_ms);
	jsonw_time(w, "expires_at", t->expires_ms);
	if (secret)
		jsonw_str(w, "token", secret);
	jsonw_object_end(w);
}

static bool list_token(void *arg, const struct token *t) {
	struct page *p = arg;
	if (!page_room(p))
		return false;
	render_token(&p->w, t, NULL);
	page_item_done(p, t->id);
	return true;
}

enum http_next tokens_list(struct http_request *q, struct http_response *r, void *ctx) {
	struct core *core = api_of(ctx)->core;
	struct page p;
	struct err err = {0};
	const char *whose = is_administrator(q) ? NULL : http_actor(q)->account_id;
	enum rc rc = page_begin(&p, q, r, NULL, &err);
	if (rc == RC_OK)
		rc = accounts_token_each(
			core->accounts, whose, p.cursor, p.limit + 1, list_token, &p, &err);
	if (rc != RC_OK)
		return http_fail(q, r, &err);
	page_end(&p);
	return HTTP_DONE;
}

static enum rc find_token(
	struct core *core, const struct http_request *q, struct token *out, struct err *err) {
	enum rc rc = accounts_token_get(core->accounts, http_param(q, "id"), out, err);
	if (rc == RC_OK && !is_administrator(q) &&
		strcmp(out->account_id, http_actor(q)->account_id) != 0)
		rc = err_set(err, RC_NOT_FOUND, "there is no token with this id");
	return rc;
}

enum http_next token_get(struct http_request *q, struct http_response *r, void *ctx) {
	struct token t;
	struct err err = {0};
	struct jsonw w;
	if (query_check(q, NULL, &err) != RC_OK ||
		find_token(api_of(ctx)->core, q, &t, &err) != RC_OK)
		return http_fail(q, r, &err);
	jsonw_init(&w, &r->body);
	render_token(&w, &t, NULL);
	http_set_etag(r, TOKEN_VERSION, UINT64_MAX);
	return HTTP_DONE;
}

struct token_body {
	char name[65], role[16], expires_at[40];
};

static enum rc decode_token(const struct http_request *q, struct token_body *b, enum role *role,
	int64_t *expires_ms, struct err *err) {
	static const struct json_in_field fields[] = {
		{"name", JSON_IN_STR, offsetof(struct token_body, name), .size = 65,
			.required = true},
		{"role", JSON_IN_STR, offsetof(struct token_body, role), .size = 16},
		{"expires_at", JSON_IN_STR, offsetof(struct token_body, expires_at), .size = 40,
			.nullable = true},
	};
	json_t *body = NULL;
	enum rc rc = v1_body(q, &body, err);
	if (rc == RC_OK)
		rc = json_in_fields(body, "", fields, array_len(fields), b, err);
	json_decref(body);
	if (rc != RC_OK)
		return rc;
	*role = http_actor(q)->role;
	*expires_ms = NONE;
	if (b->role[0] && !role_from_name(b->role, role))
		return err_field(
			err, RC_INVALID, "/role", "must be ReadOnly, Operator or Administrator");
	return b->expires_at[0] ? parse_time_ms(b->expires_at, 0, expires_ms, "/expires_at", err)
				: RC_OK;
}

enum http_next token_create(struct http_request *q, struct http_response *r, void *ctx) {
	struct token_body b = {0};
	struct token t;
	struct err err = {0};
	struct jsonw w;
	char secret[SECRET_TOKEN_SIZE];
	enum role role;
	int64_t expires_ms;
	if (decode_token(q, &b, &role, &expires_ms, &err) != RC_OK ||
		accounts_token_create(api_of(ctx)->core->accounts, http_actor(q), b.name, role,
			expires_ms, &t, secret, &err) != RC_OK)
		return http_fail(q, r, &err);
	jsonw_init(&w, &r->body);
	/* One that opens nothing is shown to nobody. */
	render_token(&w, &t, http_actor(q)->dry_run ? NULL : secret);
	secret_wipe(secret, sizeof(secret));
	snprintf(r->location, sizeof(r->location), "/api/v1/tokens/%s", t.id);
	r->status = 201;
	r->no_store = true;
	return HTTP_DONE;
}

enum http_next token_delete(struct http_request *q, struct http_response *r, void *ctx) {
	struct core *core = api_of(ctx)->core;
	struct token t;
	struct err err = {0};
	uint32_t if_version;
	if (query_check(q, NULL, &err) != RC_OK || find_token(core, q, &t, &err) != RC_OK ||
		http_check_conditions(q, true, TOKEN_VERSION, &if_version, &err) != RC_OK ||
		accounts_token_delete(core->accounts, http_actor(q), t.id, &err) != RC_OK)
		return http_fail(q, r, &err);
	r->status = 204;
	return HTTP_DONE;
}
