/* /power-changes: one wish for many drives, as a task. */
#include <stdio.h>
#include <string.h>

#include "api/v1/v1.h"
#include "base/parse.h"
#include "core/power.h"
#include "core/tasks.h"

/* --- rendering -------------------------------------------------------------------------------- */

static void render_head(struct jsonw *w, const struct task *t) {
	jsonw_str(w, "id", t->id);
	jsonw_strf(w, "href", "/api/v1/power-changes/%s", t->id);
	jsonw_strf(w, "task", "/api/v1/tasks/%s", t->id);
	task_render(w, t);
}

static void render_desired(struct jsonw *w, const struct power_change *change) {
	if (change->clear) {
		jsonw_null(w, "desired");
		return;
	}
	jsonw_object(w, "desired");
	wish_render(w, &change->wish);
	if (change->expires_ms != NONE)
		jsonw_time(w, "expires_at", change->expires_ms);
	jsonw_object_end(w);
}

static bool render_drive(void *arg, unsigned position unused_arg, const struct task_target *t) {
	struct jsonw *w = arg;
	jsonw_object(w, NULL);
	jsonw_str(w, "drive", strrchr(t->object, '/') + 1);
	target_render(w, t);
	jsonw_object_end(w);
	return true;
}

static void open_change(
	struct jsonw *w, struct buf *out, const struct task *t, const struct power_change *change) {
	jsonw_init(w, out);
	jsonw_object(w, NULL);
	render_head(w, t);
	render_desired(w, change);
	jsonw_array(w, "drives");
}

static void close_change(struct jsonw *w) {
	jsonw_array_end(w);
	jsonw_object_end(w);
}

struct showing {
	struct jsonw w;
	struct buf *out;
	struct power_change change;
	struct task t;
};

/* What stands before the rows is of the moment that they are of. */
static bool show_row(void *arg, unsigned position, const struct task_target *t) {
	struct showing *s = arg;
	if (position == 0)
		open_change(&s->w, s->out, &s->t, &s->change);
	return render_drive(&s->w, position, t);
}

/* Answers with the change as it is now: there is no change without a drive. */
static enum rc show(struct http_response *r, struct core *core, const char *id, struct err *err) {
	struct showing s = {.out = &r->body};
	enum rc rc = power_change_get(core->power, id, &s.change, err);
	if (rc == RC_OK)
		rc = tasks_targets(core->tasks, id, 0, TASK_MAX_TARGETS, &s.t, show_row, &s, err);
	if (rc != RC_OK)
		return rc;
	close_change(&s.w);
	task_set_etag(r, &s.t);
	return RC_OK;
}

/* --- reading ---------------------------------------------------------------------------------- */

/* What is asked for. */
struct request {
	struct power_change change;
	unsigned count;
	char drives[TASK_MAX_TARGETS][DRIVE_ID_SIZE];
	bool too_many;
};

static bool is_named(const struct request *rq, const char *id) {
	for (unsigned i = 0; i < rq->count; i++)
		if (strcmp(rq->drives[i], id) == 0)
			return true;
	return false;
}

static enum rc add_drive(struct core *core, const json_t *v, struct request *rq, struct err *err) {
	const char *id = json_string_value(v);
	char pointer[32];
	struct drive d;
	snprintf(pointer, sizeof(pointer), "/drives/%u", rq->count);
	if (!id)
		return err_field(err, RC_INVALID, pointer, "must be a string");
	if (drives_get(core->drives, id, &d, NULL, NULL, NULL) != RC_OK)
		return err_field(err, RC_INVALID, pointer, "there is no such drive");
	if (is_named(rq, id))
		return err_field(err, RC_INVALID, pointer, "is named twice");
	str_copy(rq->drives[rq->count++], DRIVE_ID_SIZE, id);
	return RC_OK;
}

static enum rc add_drives(
	struct core *core, const json_t *array, struct request *rq, struct err *err) {
	const size_t n = json_array_size(array);
	enum rc rc = RC_OK;
	if (n < 1 || n > TASK_MAX_TARGETS)
		return err_field(
			err, RC_INVALID, "/drives", "must name 1 to %d drives", TASK_MAX_TARGETS);
	for (size_t i = 0; i < n && rc == RC_OK; i++)
		rc = add_drive(core, json_array_get(array, i), rq, err);
	return rc;
}

static bool add_selected(void *arg, const struct drive *d, const char *labels unused_arg) {
	struct request *rq = arg;
	rq->too_many = rq->count == TASK_MAX_TARGETS;
	if (!rq->too_many)
		str_copy(rq->drives[rq->count++], DRIVE_ID_SIZE, d->id);
	return !rq->too_many;
}

static enum rc select_drives(
	struct core *core, const json_t *object, struct request *rq, struct err *err) {
	struct drive_selector s;
	const enum rc rc = selector_decode(core, object, "/selector", &s, err);
	if (rc != RC_OK)
		return rc;
	drives_select(core->drives, &s, add_selected, rq);
	if (rq->too_many)
		return err_field(err, RC_INVALID, "/selector", "selects more than %d drives",
			TASK_MAX_TARGETS);
	return rq->count ? RC_OK : err_field(err, RC_INVALID, "/selector", "selects no drive");
}

struct change_body {
	const json_t *drives, *selector, *desired;
	bool has_desired;
};

static enum rc fill(
	struct core *core, const struct change_body *b, struct request *rq, struct err *err) {
	if (!b->has_desired)
		return err_field(err, RC_INVALID, "/desired", "is required; null ends it");
	if (!b->drives == !b->selector)
		return err_field(err, RC_INVALID, "/drives", "give either drives or a selector");
	rq->change.clear = !b->desired;
	rq->change.wish = (struct power_wish){.state = -1, .limit_mw = NONE};
	rq->change.expires_ms = NONE;
	const enum rc rc = b->desired
		? wish_decode(b->desired, "/desired", &rq->change.wish, &rq->change.expires_ms, err)
		: RC_OK;
	if (rc != RC_OK)
		return rc;
	return b->drives ? add_drives(core, b->drives, rq, err)
			 : select_drives(core, b->selector, rq, err);
}

static enum rc read_request(
	struct core *core, const struct http_request *q, struct request *rq, struct err *err) {
	static const struct json_in_field fields[] = {
		{"drives", JSON_IN_ARRAY, offsetof(struct change_body, drives), .min = 0},
		{"selector", JSON_IN_OBJECT, offsetof(struct change_body, selector), .min = 0},
		{"desired", JSON_IN_OBJECT, offsetof(struct change_body, desired), .nullable = true,
			.seen_offset = JSON_IN_SEEN(struct change_body, has_desired)},
	};
	struct change_body b = {0};
	json_t *body = NULL;
	enum rc rc = v1_body(q, &body, err);
	if (rc == RC_OK)
		rc = json_in_fields(body, "", fields, array_len(fields), &b, err);
	if (rc == RC_OK)
		rc = fill(core, &b, rq, err);
	json_decref(body);
	return rc;
}

/* --- handlers --------------------------------------------------------------------------------- */

static bool list_change(void *arg, const struct task *t) {
	struct page *p = arg;
	if (!page_room(p))
		return false;
	jsonw_object(&p->w, NULL);
	render_head(&p->w, t);
	jsonw_object_end(&p->w);
	page_item_done(p, t->id);
	return true;
}

enum http_next power_changes_list(struct http_request *q, struct http_response *r, void *ctx) {
	static const char *const allowed[] = {"state", NULL};
	struct page p;
	struct err err = {0};
	int state;
	enum rc rc = task_read_state(q, &state, &err);
	if (rc == RC_OK)
		rc = page_begin(&p, q, r, allowed, &err);
	if (rc == RC_OK)
		rc = tasks_list(api_of(ctx)->core->tasks, state, POWER_TASK_KIND, p.cursor,
			p.limit + 1, list_change, &p, &err);
	if (rc != RC_OK)
		return http_fail(q, r, &err);
	page_end(&p);
	return HTTP_DONE;
}

/* What it would make of each drive. */
static void show_tried(struct http_response *r, struct core *core, const struct actor *who,
	const struct request *rq, const struct task *t) {
	struct task_target target;
	struct jsonw w;
	open_change(&w, &r->body, t, &rq->change);
	for (unsigned i = 0; i < rq->count; i++) {
		power_change_try(core->power, who, &rq->change, rq->drives[i], &target);
		render_drive(&w, i, &target);
	}
	close_change(&w);
}

static enum rc create(struct core *core, const struct http_request *q, struct http_response *r,
	const struct actor *who, struct task *t, struct err *err) {
	auto_free struct request *rq = calloc(1, sizeof(*rq));
	if (!rq)
		return err_set(err, RC_NOMEM, "memory is out");
	enum rc rc = read_request(core, q, rq, err);
	if (rc == RC_OK)
		rc = power_change_submit(core->power, who, &rq->change,
			(const char(*)[DRIVE_ID_SIZE])rq->drives, rq->count, t, err);
	if (rc == RC_OK && who->dry_run)
		show_tried(r, core, who, rq, t);
	else if (rc == RC_OK)
		rc = show(r, core, t->id, err);
	return rc;
}

enum http_next power_change_create(struct http_request *q, struct http_response *r, void *ctx) {
	struct core *core = api_of(ctx)->core;
	struct creation c;
	struct task t;
	struct err err = {0};
	enum rc rc = creation_begin(&c, q, core, &err);
	if (rc == RC_OK)
		rc = c.made ? show(r, core, c.made, &err) : create(core, q, r, &c.who, &t, &err);
	if (rc != RC_OK)
		return http_fail(q, r, &err);
	r->status = 202;
	r->replayed = c.made != NULL;
	snprintf(r->location, sizeof(r->location), "/api/v1/power-changes/%s",
		c.made ? c.made : t.id);
	return HTTP_DONE;
}

enum http_next power_change_show(struct http_request *q, struct http_response *r, void *ctx) {
	struct err err = {0};
	if (query_check(q, NULL, &err) != RC_OK ||
		show(r, api_of(ctx)->core, http_param(q, "id"), &err) != RC_OK)
		return http_fail(q, r, &err);
	return HTTP_DONE;
}
