#include "http/answer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "http/mhd.h"

struct bytes *bytes_new_owned(char *owned, size_t len) {
	struct bytes *b = bytes_new_static(owned, len);
	if (b)
		b->owned = owned;
	else
		free(owned);
	return b;
}

struct bytes *bytes_new_static(const char *data, size_t len) {
	struct bytes *b = calloc(1, sizeof(*b));
	if (!b)
		return NULL;
	b->refs = 1;
	b->data = data;
	b->len = len;
	return b;
}

struct bytes *bytes_ref(struct bytes *b) {
	atomic_fetch_add_explicit(&b->refs, 1, memory_order_relaxed);
	return b;
}

void bytes_unref(struct bytes *b) {
	if (!b || atomic_fetch_sub_explicit(&b->refs, 1, memory_order_acq_rel) > 1)
		return;
	free(b->owned);
	free(b);
}

static bool add(struct MHD_Response *r, const char *name, const char *value) {
	return !value || !value[0] || mhd_response_header(r, name, value);
}

static bool add_number(struct MHD_Response *r, const char *name, int value) {
	char text[16];
	snprintf(text, sizeof(text), "%d", value);
	return !value || mhd_response_header(r, name, text);
}

static bool add_flags(struct MHD_Response *r, const struct answer_head *h) {
	const struct {
		bool on;
		const char *name;
		const char *value;
	} flags[] = {
		{true, "X-Content-Type-Options", "nosniff"},
		{true, "Cache-Control", h->no_store ? "no-store" : "no-cache"},
		{h->varies, "Vary", "Accept, Accept-Encoding, Authorization"},
		{h->gzip, "Content-Encoding", "gzip"},
		{h->replayed, "Idempotency-Replayed", "true"},
		{h->dry_run, "Dry-Run", "true"},
		{h->challenge, "WWW-Authenticate", "Basic realm=\"drivewatt\", charset=\"UTF-8\""},
		{h->challenge, "WWW-Authenticate", "Bearer realm=\"drivewatt\""},
		{h->close, "Connection", "close"},
	};
	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		if (flags[i].on && !mhd_response_header(r, flags[i].name, flags[i].value))
			return false;
	}
	return true;
}

static bool add_headers(struct MHD_Response *r, const struct answer_head *h) {
	return add(r, "Content-Type", h->content_type) && add(r, "ETag", h->etag) &&
		add(r, "Location", h->location) && add(r, "Allow", h->allow) &&
		add(r, "X-Request-Id", h->request_id) &&
		add_number(r, "Retry-After", h->retry_after_s) && add_flags(r, h);
}

/* Takes response and bytes over. */
static struct answer *make(
	const struct answer_head *head, struct MHD_Response *response, struct bytes *bytes) {
	struct answer *a = calloc(1, sizeof(*a));
	if (!a || !response || !add_headers(response, head)) {
		if (response)
			mhd_response_unref(response);
		bytes_unref(bytes);
		free(a);
		return NULL;
	}
	a->refs = 1;
	a->status = head->status;
	a->response = response;
	a->bytes = bytes;
	a->content_type = head->content_type;
	a->gzip = head->gzip;
	a->varies = head->varies;
	snprintf(a->etag, sizeof(a->etag), "%s", head->etag ? head->etag : "");
	return a;
}

struct answer *answer_new(const struct answer_head *head, struct bytes *bytes) {
	return make(head, mhd_response(bytes), bytes);
}

struct answer *answer_new_stream(const struct answer_head *head, struct http_stream *s) {
	return make(head, mhd_response_stream(s), NULL);
}

static struct answer_head head_of(const struct answer *a, const char *request_id) {
	return (struct answer_head){
		.status = a->status,
		.content_type = a->content_type,
		.etag = a->etag,
		.request_id = request_id,
		.gzip = a->gzip,
		.varies = a->varies,
	};
}

struct answer *answer_with_id(const struct answer *a, const char *request_id) {
	struct answer_head head = head_of(a, request_id);
	return answer_new(&head, a->bytes ? bytes_ref(a->bytes) : NULL);
}

struct answer *answer_not_modified(const struct answer *a, const char *request_id) {
	struct answer_head head = head_of(a, request_id);
	head.status = 304;
	head.content_type = NULL;
	head.gzip = false;
	return answer_new(&head, NULL);
}

struct answer *answer_ref(struct answer *a) {
	atomic_fetch_add_explicit(&a->refs, 1, memory_order_relaxed);
	return a;
}

void answer_unref(struct answer *a) {
	if (!a || atomic_fetch_sub_explicit(&a->refs, 1, memory_order_acq_rel) > 1)
		return;
	mhd_response_unref(a->response);
	bytes_unref(a->bytes);
	free(a);
}
