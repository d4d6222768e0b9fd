#include "http/reply.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/metrics.h"
#include "base/parse.h"
#include "http/cache.h"
#include "http/etag.h"
#include "http/gzip.h"
#include "http/request_impl.h"
#include "http/server_impl.h"

#define ERROR_MAX_BYTES (16 * 1024)
#define CACHED_TARGET_MAX 1024
#define RETRY_AFTER_S 1
#define JSON_TYPE "application/json"

/* --- the cache --- */

struct cache_key {
	char text[2 + CACHED_TARGET_MAX + 1];
};

/* The form comes first: a target may end in anything. */
static bool key_of(const struct http_request *q, struct cache_key *key) {
	key->text[0] = (char)('0' + q->variant);
	key->text[1] = q->takes_gzip ? 'z' : ' ';
	return str_copy(key->text + 2, sizeof(key->text) - 2, q->text);
}

static void take_version(struct http_request *q) {
	q->has_version = q->is_read && q->route->version;
	if (q->has_version)
		q->version = q->route->version(q->match.tree->ctx, q);
}

static bool is_unmodified(const struct http_request *q, const char *etag) {
	if (!q->is_read || !etag[0])
		return false;
	const char *list = http_header(q, "If-None-Match");
	return list && etag_list_has(list, etag);
}

/* What this request gets of an answer that is made for all; takes shared over. */
static struct answer *select_for(struct http_request *q, struct answer *shared) {
	const char *id = q->id_given ? q->request_id : NULL;
	const bool unmodified = is_unmodified(q, shared->etag);
	if (!id && !unmodified)
		return shared;
	struct answer *own =
		unmodified ? answer_not_modified(shared, id) : answer_with_id(shared, id);
	answer_unref(shared);
	return own;
}

bool reply_cached(struct http_request *q) {
	take_version(q);
	struct cache_key key;
	if (!q->has_version || !key_of(q, &key))
		return false;
	struct answer *shared = cache_get(q->server->cache, key.text, q->version);
	if (!shared)
		return false;
	q->answer = select_for(q, shared);
	q->built = q->answer;
	metric_add(METRIC_HTTP_FAST, q->built);
	return q->built;
}

/* --- building --- */

static bool is_cacheable(const struct http_request *q, const struct http_response *r) {
	return q->has_version && r->status == 200 && !r->no_store && !r->stream;
}

/* Handlers need not name a tag where the route has a version. */
static void default_etag(struct http_request *q, struct http_response *r) {
	if (is_cacheable(q, r) && !r->etag[0])
		snprintf(r->etag, sizeof(r->etag), "\"v%08" PRIx32 "-%" PRIx64 "-%u\"",
			q->server->nonce, q->version, q->variant);
}

static size_t body_len(const struct http_response *r) {
	return r->asset ? r->asset_len : r->body.len;
}

/* Nothing was made that could be found, or changed that could be matched, later. */
static void normalise_dry(struct http_response *r) {
	if (r->status == 201 || r->status == 202)
		r->status = 200;
	r->etag[0] = '\0';
	r->location[0] = '\0';
}

static void normalise(struct http_request *q, struct http_response *r) {
	bool has_body = r->stream || body_len(r);
	if (!r->status)
		r->status = has_body ? 200 : 204;
	if (!r->content_type)
		r->content_type = r->stream ? "text/event-stream" : JSON_TYPE;
	if (!has_body)
		r->content_type = NULL;
	default_etag(q, r);
	if (q->dry_run)
		normalise_dry(r);
}

static struct answer_head head_of(struct http_request *q, const struct http_response *r) {
	return (struct answer_head){
		.status = r->status,
		.content_type = r->content_type,
		.etag = r->etag,
		.location = r->location,
		.allow = r->allow,
		.retry_after_s = r->retry_after_s,
		.replayed = r->replayed,
		.dry_run = q->dry_run,
		.no_store = r->no_store,
		.varies = q->is_read,
		.challenge = r->status == 401,
		.close = q->close || atomic_load(&q->server->stopping),
	};
}

/* The body, compressed where that is asked for and pays; r and head are changed to tell. */
static struct bytes *take_bytes(
	struct http_request *q, struct http_response *r, struct answer_head *head) {
	size_t len = body_len(r);
	const char *data = r->asset ? r->asset : buf_str(&r->body);
	size_t gzip_len;
	bool wanted = q->takes_gzip && !r->no_store && gzip_suits(r->content_type, len);
	char *gzip = wanted ? gzip_compress(data, len, &gzip_len) : NULL;
	if (gzip) {
		etag_mark_gzip(r->etag, sizeof(r->etag));
		head->gzip = true;
		return bytes_new_owned(gzip, gzip_len);
	}
	if (r->asset)
		return bytes_new_static(r->asset, r->asset_len);
	return bytes_new_owned(buf_take(&r->body, NULL), len);
}

static struct answer *build_bytes(
	struct http_request *q, struct http_response *r, struct answer_head *head) {
	if (!body_len(r))
		return answer_new(head, NULL);
	struct bytes *bytes = take_bytes(q, r, head);
	return bytes ? answer_new(head, bytes) : NULL;
}

static void build_shared(struct http_request *q, struct http_response *r) {
	struct answer_head head = head_of(q, r);
	struct answer *shared = build_bytes(q, r, &head);
	struct cache_key key;
	if (!shared)
		return;
	if (!head.close && key_of(q, &key))
		cache_put(q->server->cache, key.text, q->version, shared);
	q->answer = select_for(q, shared);
}

static void build_own(struct http_request *q, struct http_response *r) {
	struct answer_head head = head_of(q, r);
	head.request_id = request_id(q);
	if (r->stream && q->is_head) {
		http_stream_free(r->stream);
		r->stream = NULL;
		q->answer = answer_new(&head, NULL);
	} else if (r->stream) {
		struct http_stream *s = r->stream;
		r->stream = NULL;
		stream_attach(s, q->conn);
		q->answer = answer_new_stream(&head, s);
	} else if (r->status == 200 && is_unmodified(q, r->etag)) {
		head.status = 304;
		head.content_type = NULL;
		q->answer = answer_new(&head, NULL);
	} else {
		q->answer = build_bytes(q, r, &head);
	}
}

/* A handler's writer ran over the route's answer_max, or streams are many. */
static enum rc check_response(struct http_request *q, struct http_response *r, struct err *err) {
	if (buf_status(&r->body, err)) {
		log_err(LOG_LEVEL_ERROR, "http", q->path, err);
		return err_set(err, RC_INTERNAL, "the answer is too large");
	}
	const struct stream_owner owner = {.who = q->actor, .checked = q->accounts_version};
	return r->stream ? stream_join(r->stream, &q->server->streams, &owner, err) : RC_OK;
}

void reply_build(struct http_request *q) {
	struct http_response *r = &q->r;
	struct err err;
	enum rc rc = check_response(q, r, &err);
	if (rc)
		reply_render_error(q, http_status_of(rc), &err);
	normalise(q, r);
	if (is_cacheable(q, r))
		build_shared(q, r);
	else
		build_own(q, r);
	q->built = true;
}

/* --- errors --- */

static void reset(struct http_response *r, size_t max) {
	http_stream_free(r->stream);
	buf_release(&r->body);
	*r = (struct http_response){.status = 0};
	buf_init(&r->body, max);
}

void reply_render_error(struct http_request *q, int status, const struct err *err) {
	struct http_response *r = &q->r;
	int retry_after_s = r->retry_after_s;
	reset(r, ERROR_MAX_BYTES);
	memcpy(q->actor.request_id, request_id(q), sizeof(q->actor.request_id));
	if (status == 405 && q->match.node)
		snprintf(r->allow, sizeof(r->allow), "%s", router_allow(q->match.node));
	if (status == 503 || status == 429)
		r->retry_after_s = retry_after_s ? retry_after_s : RETRY_AFTER_S;
	if (q->match.tree)
		q->match.tree->render_error(r, q, status, err);
	r->status = status;
}

void reply_error(struct http_request *q, int status, const struct err *err) {
	reply_render_error(q, status, err);
	reply_build(q);
}

enum http_next http_fail(
	struct http_request *q, unused_arg struct http_response *r, const struct err *err) {
	reply_render_error(q, http_status_of(err->rc), err);
	return HTTP_DONE;
}
