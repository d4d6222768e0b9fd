/* Pages, query parameters and small renderings. */
#include <stdio.h>
#include <string.h>

#include "api/v1/v1.h"
#include "base/clock.h"
#include "base/parse.h"

static bool listed(const char *const *names, const char *name) {
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

enum rc page_begin(struct page *p, const struct http_request *q, struct http_response *r,
	const char *const *allowed, struct err *err) {
	const char *name;
	int64_t limit = PAGE_LIMIT_DEFAULT;
	*p = (struct page){.cursor = ""};
	for (unsigned i = 0; (name = http_query_name(q, i)) != NULL; i++)
		if (strcmp(name, "limit") != 0 && strcmp(name, "cursor") != 0 &&
			!listed(allowed, name))
			return err_field(
				err, RC_INVALID, name, "is not a query parameter of this list");
	enum rc rc = query_int(q, "limit", 1, PAGE_LIMIT_MAX, &limit, err);
	if (rc != RC_OK)
		return rc;
	p->limit = (int)limit;
	if (http_query(q, "cursor"))
		p->cursor = http_query(q, "cursor");
	if (strlen(p->cursor) >= sizeof(p->last))
		return err_field(err, RC_INVALID, "cursor", "is not a cursor of this list");
	jsonw_init(&p->w, &r->body);
	jsonw_object(&p->w, NULL);
	jsonw_array(&p->w, "items");
	return RC_OK;
}

bool page_room(struct page *p) {
	p->more = p->count >= p->limit;
	return !p->more;
}

void page_item_done(struct page *p, const char *cursor) {
	p->count++;
	str_copy(p->last, sizeof(p->last), cursor);
}

void page_end(struct page *p) {
	jsonw_array_end(&p->w);
	jsonw_str(&p->w, "next", p->more ? p->last : NULL);
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
