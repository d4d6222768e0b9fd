#include "http/request_impl.h"

#include <string.h>

#include "http/accept.h"
#include "http/stream.h"
#include "http/mhd.h"

struct http_request *request_new(
	struct http_server *server, struct MHD_Connection *conn, const char *raw_target) {
	const char *raw = target_origin(raw_target);
	size_t len = strlen(raw);
	size_t path_len = strcspn(raw, "?");
	struct http_request *q =
		calloc(1, sizeof(*q) + len + 1 + path_len + 1 + target_scratch_size(len));
	if (!q)
		return NULL;
	q->refs = 1;
	q->server = server;
	q->conn = conn;
	memcpy(q->text, raw, len + 1);
	q->path = q->text + len + 1;
	memcpy(q->path, raw, path_len);
	q->scratch = q->path + path_len + 1;
	return q;
}

struct http_request *request_ref(struct http_request *q) {
	atomic_fetch_add(&q->refs, 1);
	return q;
}

void request_unref(struct http_request *q) {
	if (!q || atomic_fetch_sub(&q->refs, 1) > 1)
		return;
	if (q->user_free)
		q->user_free(q->user);
	answer_unref(q->answer);
	http_stream_free(q->r.stream);
	buf_release(&q->r.body);
	buf_release(&q->body);
	free(q);
}

const char *request_id(struct http_request *q) {
	if (!q->request_id[0])
		id_uuid(q->request_id);
	return q->request_id;
}

const char *http_method(const struct http_request *q) {
	return q->method;
}

const char *http_path(const struct http_request *q) {
	return q->path;
}

const char *http_param(const struct http_request *q, const char *name) {
	int i = q->route ? route_param(q->route, name) : -1;
	return i < 0 ? NULL : q->match.params[i];
}

const char *http_query(const struct http_request *q, const char *name) {
	return target_arg(&q->target, name);
}

const char *http_query_name(const struct http_request *q, unsigned n) {
	return n < q->target.arg_count ? q->target.args[n].name : NULL;
}

const char *http_header(const struct http_request *q, const char *name) {
	return mhd_header(q->conn, name);
}

const char *http_body(const struct http_request *q, size_t *len) {
	*len = q->body.len;
	return buf_str(&q->body);
}

const struct actor *http_actor(const struct http_request *q) {
	return &q->actor;
}

bool http_accepts(const struct http_request *q, const char *media_type) {
	return accept_prefers(http_header(q, "Accept"), media_type);
}

void http_set_user(struct http_request *q, void *user, void (*free_fn)(void *user)) {
	if (q->user_free && q->user != user)
		q->user_free(q->user);
	q->user = user;
	q->user_free = free_fn;
}

void *http_user(const struct http_request *q) {
	return q->user;
}
