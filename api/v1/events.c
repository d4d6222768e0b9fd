/* /events, as a log or as a stream, and /audit. */
#include <stdio.h>
#include <string.h>

#include "api/v1/events.h"
#include "api/v1/live.h"
#include "base/log.h"
#include "base/parse.h"
#include "core/events.h"

#define REPLAY_MAX 1000
#define BLOCK_BYTES_MAX (16 * 1024)

static void render_event(struct jsonw *w, const struct event *e) {
	jsonw_object(w, NULL);
	jsonw_strf(w, "id", "%lld", (long long)e->id);
	jsonw_strf(w, "href", "/api/v1/events?cursor=%lld&limit=1", (long long)e->id - 1);
	jsonw_time(w, "at", e->at_ms);
	jsonw_str(w, "type", event_type_name(e->type));
	jsonw_str(w, "severity", event_type_severity(e->type));
	if (e->object[0])
		jsonw_strf(w, "object", "/api/v1%s", e->object);
	else
		jsonw_null(w, "object");
	render_text_or_null(w, "actor", e->actor);
	if (e->data)
		jsonw_raw(w, "data", e->data, strlen(e->data));
	else
		jsonw_null(w, "data");
	jsonw_object_end(w);
}

/* WHATWG HTML, server-sent events: id, event, data, and an empty line. */
static void render_block(struct buf *out, const struct event *e) {
	struct jsonw w;
	buf_printf(out, "id: %lld\nevent: %s\ndata: ", (long long)e->id, event_type_name(e->type));
	jsonw_init(&w, out);
	render_event(&w, e);
	buf_adds(out, "\n\n");
}

/* What a reader is told who cannot have the events after `after` and before `next`. */
static void render_gap(struct buf *out, int64_t after, int64_t next) {
	buf_printf(out, "event: gap\ndata: {\"after\":\"%lld\",\"next\":\"%lld\"}\n\n",
		(long long)after, (long long)next);
}

/* An event too large for a block, which none should be, is told as a gap. */
void events_to_channel(void *arg, const struct event *e) {
	struct api *api = arg;
	struct buf block;
	buf_init(&block, BLOCK_BYTES_MAX);
	render_block(&block, e);
	if (buf_status(&block, NULL) != RC_OK) {
		buf_reset(&block);
		render_gap(&block, e->id - 1, e->id + 1);
	}
	http_channel_publish_id(api->events, e->id, buf_str(&block), block.len);
	http_channel_publish_id(live_channel(api->live), e->id, buf_str(&block), block.len);
	buf_release(&block);
}

/* --- the log ---------------------------------------------------------------------------------- */

static bool list_event(void *arg, const struct event *e) {
	struct page *p = arg;
	char cursor[24];
	if (!page_room(p))
		return false;
	render_event(&p->w, e);
	snprintf(cursor, sizeof(cursor), "%lld", (long long)e->id);
	page_item_done(p, cursor);
	return true;
}

/* Clients that poll name the last event that they have seen. One that was never is a fault, and
 * not silence: the store may be another's, or of an older backup. */
static enum rc check_seen(struct core *core, int64_t after, struct err *err) {
	int64_t first, last;
	enum rc rc = after ? events_range(core->events, &first, &last, err) : RC_OK;
	if (rc == RC_OK && after && after > last)
		rc = err_field(err, RC_INVALID, "cursor", "is beyond the last event, %lld",
			(long long)last);
	return rc;
}

static enum http_next answer_log(
	struct http_request *q, struct http_response *r, struct core *core) {
	struct page p;
	struct err err = {0};
	int64_t after = 0;
	enum rc rc = page_begin_numbered(&p, q, r, &after, &err);
	if (rc == RC_OK)
		rc = check_seen(core, after, &err);
	if (rc == RC_OK)
		rc = events_list(core->events, after, p.limit + 1, list_event, &p, &err);
	if (rc != RC_OK)
		return http_fail(q, r, &err);
	page_end(&p);
	return HTTP_DONE;
}

/* --- the stream ------------------------------------------------------------------------------- */

struct replay {
	struct buf text;
	int64_t last;
};

static bool replay_event(void *arg, const struct event *e) {
	struct replay *re = arg;
	render_block(&re->text, e);
	re->last = e->id;
	return true;
}

/* The first id to replay: after + 1, unless that is gone, too far back, or of another life of the
 * store, from which a backup was brought back. */
static int64_t replay_from(int64_t after, int64_t first, int64_t last) {
	if (after > last)
		return last + 1;
	int64_t from = after + 1 > first ? after + 1 : first;
	return from > last - REPLAY_MAX ? from : last - REPLAY_MAX + 1;
}

/* What the reader missed, or a note that some of it is no longer kept. */
static enum rc fill_replay(struct core *core, int64_t after, struct replay *re, struct err *err) {
	int64_t first = 0, last = 0;
	enum rc rc = events_range(core->events, &first, &last, err);
	int64_t from = replay_from(after, first, last);
	if (rc == RC_OK && from != after + 1)
		render_gap(&re->text, after, from);
	if (rc == RC_OK)
		rc = events_list(core->events, from - 1, REPLAY_MAX, replay_event, re, err);
	if (rc == RC_OK && buf_status(&re->text, NULL) != RC_OK) {
		/* Rather none of it than what was cut somewhere. */
		buf_reset(&re->text);
		render_gap(&re->text, after, re->last + 1);
	}
	return rc;
}

static enum rc begin_stream(
	struct api *api, const struct http_request *q, struct http_response *r, struct err *err) {
	static const char *const allowed[] = {"samples", NULL};
	const char *seen = http_header(q, "Last-Event-ID");
	struct replay re = {0};
	int64_t after = 0;
	bool samples = false, present;
	enum rc rc = query_check(q, allowed, err);
	if (rc == RC_OK)
		rc = query_bool(q, "samples", &samples, &present, err);
	if (rc == RC_OK && seen)
		rc = parse_i64(seen, 0, INT64_MAX, &after, "Last-Event-ID", err);
	if (rc != RC_OK)
		return rc;
	/* Subscribed before the rows are read, so that none falls between. */
	struct http_stream *s =
		http_stream_new(samples ? live_channel(api->live) : api->events, err);
	if (!s)
		return err->rc;
	buf_init(&re.text, HTTP_REPLAY_MAX_BYTES);
	buf_adds(&re.text, ": drivewatt events\n\n");
	if (seen)
		rc = fill_replay(api->core, after, &re, err);
	if (rc == RC_OK)
		rc = http_stream_replay(s, buf_str(&re.text), re.text.len, re.last, err);
	if (rc == RC_OK)
		r->stream = s;
	else
		http_stream_free(s);
	buf_release(&re.text);
	return rc;
}

enum http_next events_get(struct http_request *q, struct http_response *r, void *ctx) {
	struct api *api = api_of(ctx);
	struct err err = {0};
	if (!http_accepts(q, "text/event-stream"))
		return answer_log(q, r, api->core);
	if (begin_stream(api, q, r, &err) != RC_OK)
		return http_fail(q, r, &err);
	r->content_type = "text/event-stream";
	r->no_store = true;
	return HTTP_DONE;
}

/* --- audit ------------------------------------------------------------------------------------ */

static bool list_audit(void *arg, const struct audit_entry *a) {
	struct page *p = arg;
	char id[24];
	if (!page_room(p))
		return false;
	snprintf(id, sizeof(id), "%lld", (long long)a->id);
	jsonw_object(&p->w, NULL);
	jsonw_str(&p->w, "id", id);
	jsonw_strf(&p->w, "href", "/api/v1/audit?cursor=%lld&limit=1", (long long)a->id + 1);
	jsonw_time(&p->w, "at", a->at_ms);
	jsonw_str(&p->w, "actor", a->actor);
	render_text_or_null(&p->w, "address", a->address);
	render_text_or_null(&p->w, "request_id", a->request_id);
	jsonw_str(&p->w, "action", a->action);
	render_text_or_null(&p->w, "object", a->object);
	jsonw_str(&p->w, "outcome", a->outcome);
	if (a->detail)
		jsonw_raw(&p->w, "detail", a->detail, strlen(a->detail));
	else
		jsonw_null(&p->w, "detail");
	jsonw_object_end(&p->w);
	page_item_done(p, id);
	return true;
}

static bool take_id(void *arg, const struct audit_entry *a) {
	*(int64_t *)arg = a->id;
	return false;
}

/* As check_seen, of the entry before which a page begins. */
static enum rc check_before(struct core *core, int64_t before, struct err *err) {
	int64_t last = 0;
	if (before == INT64_MAX)
		return RC_OK;
	enum rc rc = events_audit_list(core->events, INT64_MAX, 1, take_id, &last, err);
	if (rc == RC_OK && before > last + 1)
		rc = err_field(err, RC_INVALID, "cursor", "is beyond the last entry, %lld",
			(long long)last);
	return rc;
}

enum http_next audit_list(struct http_request *q, struct http_response *r, void *ctx) {
	struct core *core = api_of(ctx)->core;
	struct page p;
	struct err err = {0};
	int64_t before = INT64_MAX;
	enum rc rc = page_begin_numbered(&p, q, r, &before, &err);
	if (rc == RC_OK)
		rc = check_before(core, before, &err);
	if (rc == RC_OK)
		rc = events_audit_list(core->events, before, p.limit + 1, list_audit, &p, &err);
	if (rc != RC_OK)
		return http_fail(q, r, &err);
	page_end(&p);
	return HTTP_DONE;
}
