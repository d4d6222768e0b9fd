#include <stdio.h>
#include <string.h>

#include "api/api_private.h"
#include "base/jsonw.h"

static const char *status_title(int status) {
	static const struct {
		int status;
		const char *title;
	} titles[] = {
		{400, "Bad Request"},
		{401, "Unauthorized"},
		{403, "Forbidden"},
		{404, "Not Found"},
		{405, "Method Not Allowed"},
		{406, "Not Acceptable"},
		{409, "Conflict"},
		{412, "Precondition Failed"},
		{413, "Content Too Large"},
		{415, "Unsupported Media Type"},
		{422, "Unprocessable Content"},
		{428, "Precondition Required"},
		{429, "Too Many Requests"},
		{501, "Not Implemented"},
		{502, "Bad Gateway"},
		{503, "Service Unavailable"},
		{504, "Gateway Timeout"},
		{507, "Insufficient Storage"},
	};
	for (size_t i = 0; i < array_len(titles); i++)
		if (titles[i].status == status)
			return titles[i].title;
	return "Internal Server Error";
}

/* Query parameters have no pointer: RFC 9457 leaves extensions to us. */
static void render_fault(struct jsonw *w, const char *field, const char *msg) {
	jsonw_object(w, NULL);
	jsonw_str(w, field[0] == '/' ? "pointer" : "parameter", field);
	jsonw_str(w, "detail", msg);
	jsonw_object_end(w);
}

static void render_faults(struct jsonw *w, const struct err *err) {
	const char *field, *msg;
	size_t at = 0;
	jsonw_array(w, "errors");
	render_fault(w, err->field, err->msg);
	while (err_next(err, &at, &field, &msg))
		render_fault(w, field, msg);
	jsonw_array_end(w);
}

/* RFC 9457 section 3.1. */
void api_problem(
	struct http_response *r, const struct http_request *q, int status, const struct err *err) {
	struct jsonw w;
	buf_reset(&r->body);
	jsonw_init(&w, &r->body);
	r->content_type = "application/problem+json";
	jsonw_object(&w, NULL);
	jsonw_strf(&w, "type", "urn:drivewatt:problem:%s", rc_name(err->rc));
	jsonw_str(&w, "title", status_title(status));
	jsonw_int(&w, "status", status);
	if (err->field[0])
		jsonw_strf(&w, "detail", "%s: %s", err->field, err->msg);
	else
		jsonw_str(&w, "detail", err->msg);
	if (err->field[0])
		render_faults(&w, err);
	if (err->nvme_status)
		jsonw_strf(&w, "nvme_status", "0x%04x", err->nvme_status);
	const struct actor *a = q ? http_actor(q) : NULL;
	if (a && a->request_id[0])
		jsonw_str(&w, "request_id", a->request_id);
	jsonw_object_end(&w);
}
