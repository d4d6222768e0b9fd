/* Pages, query parameters and small renderings. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "api/v1/v1.h"
#include "base/clock.h"
#include "base/parse.h"
#include "core/hosts.h"

#define CURSOR_SIZE (PAGE_PLACE_SIZE + 9)

/* What dispatch takes itself is never in the way. */
static bool listed(const char *const *names, const char *name) {
	if (strcmp(name, HTTP_DRY_RUN_PARAMETER) == 0)
		return true;
	for (; names && *names; names++)
		if (strcmp(*names, name) == 0)
			return true;
	return false;
}

enum rc query_check(const struct http_request *q, const char *const *allowed, struct err *err) {
	const char *name;
	for (unsigned i = 0; (name = http_query_name(q, i)) != NULL; i++)
		if (!listed(allowed, name))
			return err_field(
				err, RC_INVALID, name, "is not a query parameter of this resource");
	return RC_OK;
}

enum rc v1_body(const struct http_request *q, json_t **out, struct err *err) {
	enum rc rc = query_check(q, NULL, err);
	return rc == RC_OK ? json_in_body(q, out, err) : rc;
}

enum rc query_int(const struct http_request *q, const char *name, int64_t min, int64_t max,
	int64_t *out, struct err *err) {
	const char *text = http_query(q, name);
	return text ? parse_i64(text, min, max, out, name, err) : RC_OK;
}

enum rc query_bool(
	const struct http_request *q, const char *name, bool *out, bool *present, struct err *err) {
	const char *text = http_query(q, name);
	*present = text != NULL;
	return text ? parse_bool(text, out, name, err) : RC_OK;
}

enum rc query_host(
	const struct http_request *q, struct core *core, const char **id, struct err *err) {
	const char *text = http_query(q, "host");
	struct host host;
	*id = text ? hosts_resolve(core->hosts, text) : NULL;
	enum rc rc = text ? hosts_get(core->hosts, *id, &host, NULL, err) : RC_OK;
	return rc == RC_NOT_FOUND
		? err_field(err, RC_INVALID, "host", "there is no host with this id")
		: rc;
}

enum rc query_span(
	const struct http_request *q, int64_t *from_ms, int64_t *to_ms, struct err *err) {
	int64_t now = clock_wall_ms();
	const char *from = http_query(q, "from");
	const char *to = http_query(q, "to");
	enum rc rc = parse_time_ms(to ? to : "now", now, to_ms, "to", err);
	if (rc == RC_OK)
		rc = parse_time_ms(from ? from : "-24h", now, from_ms, "from", err);
	if (rc == RC_OK && *from_ms >= *to_ms)
		rc = err_field(err, RC_INVALID, "from", "must be before to");
	return rc;
}

/* FNV-1a over the list's path, whatever slashes it was asked with, and the place. */
static uint32_t check_of(const char *path, const char *place) {
	uint32_t h = 2166136261U;
	size_t len = strlen(path);
	while (len && path[len - 1] == '/')
		len--;
	for (size_t i = 0; i < len; i++)
		h = (h ^ (unsigned char)path[i]) * 16777619U;
	for (; *place; place++)
		h = (h ^ (unsigned char)*place) * 16777619U;
	return h;
}

static void cursor_write(const char *path, const char *place, char out[CURSOR_SIZE]) {
	snprintf(out, CURSOR_SIZE, "%s~%08" PRIx32, place, check_of(path, place));
}

static bool cursor_read(const char *path, const char *cursor, char place[PAGE_PLACE_SIZE]) {
	char again[CURSOR_SIZE];
	const char *tilde = strrchr(cursor, '~');
	const size_t len = tilde ? (size_t)(tilde - cursor) : 0;
	if (!len || len >= PAGE_PLACE_SIZE)
		return false;
	memcpy(place, cursor, len);
	place[len] = '\0';
	cursor_write(path, place, again);
	return strcmp(again, cursor) == 0;
}

static enum rc read_limit(
	struct page *p, const struct http_request *q, const char *const *allowed, struct err *err) {
	const char *name;
	int64_t limit = PAGE_LIMIT_DEFAULT;
	*p = (struct page){.path = http_path(q)};
	for (unsigned i = 0; (name = http_query_name(q, i)) != NULL; i++)
		if (strcmp(name, "limit") != 0 && strcmp(name, "cursor") != 0 &&
			!listed(allowed, name))
			return err_field(
				err, RC_INVALID, name, "is not a query parameter of this resource");
	enum rc rc = query_int(q, "limit", 1, PAGE_LIMIT_MAX, &limit, err);
	p->limit = (int)limit;
	return rc;
}

static void open_items(struct page *p, struct http_response *r) {
	jsonw_init(&p->w, &r->body);
	jsonw_object(&p->w, NULL);
	jsonw_array(&p->w, "items");
}

enum rc page_begin(struct page *p, const struct http_request *q, struct http_response *r,
	const char *const *allowed, struct err *err) {
	const char *cursor = http_query(q, "cursor");
	enum rc rc = read_limit(p, q, allowed, err);
	if (rc == RC_OK && cursor && !cursor_read(p->path, cursor, p->cursor))
		rc = err_field(err, RC_INVALID, "cursor", "is not a cursor of this list");
	if (rc == RC_OK)
		open_items(p, r);
	return rc;
}

enum rc page_begin_numbered(struct page *p, const struct http_request *q, struct http_response *r,
	int64_t *place, struct err *err) {
	enum rc rc = read_limit(p, q, NULL, err);
	p->numbered = true;
	if (rc == RC_OK)
		rc = query_int(q, "cursor", 0, INT64_MAX, place, err);
	if (rc == RC_OK)
		open_items(p, r);
	return rc;
}

bool page_room(struct page *p) {
	p->more = p->count >= p->limit;
	return !p->more;
}

void page_item_done(struct page *p, const char *place) {
	p->count++;
	str_copy(p->last, sizeof(p->last), place);
}

void page_items_end(struct page *p) {
	char cursor[CURSOR_SIZE];
	cursor_write(p->path, p->last, cursor);
	jsonw_array_end(&p->w);
	jsonw_str(&p->w, "next", !p->more ? NULL : p->numbered ? p->last : cursor);
}

void page_end(struct page *p) {
	page_items_end(p);
	jsonw_object_end(&p->w);
}

void render_uw(struct jsonw *w, const char *key, int64_t uw) {
	if (uw == NONE)
		jsonw_null(w, key);
	else
		jsonw_double(w, key, (double)uw / 1e6);
}

void render_int_or_null(struct jsonw *w, const char *key, int64_t v) {
	if (v == NONE)
		jsonw_null(w, key);
	else
		jsonw_int(w, key, v);
}

void render_labels(struct jsonw *w, const char *labels) {
	if (labels[0])
		jsonw_raw(w, "labels", labels, strlen(labels));
	else
		jsonw_raw(w, "labels", "{}", 2);
}

void render_text_or_null(struct jsonw *w, const char *key, const char *text) {
	jsonw_str(w, key, text[0] ? text : NULL);
}
