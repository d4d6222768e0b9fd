/* /tasks: changes of many things, with a row per target. */
#include <stdio.h>
#include <string.h>

#include "api/v1/v1.h"
#include "base/parse.h"
#include "core/power.h"
#include "core/tasks.h"

/* --- rendering -------------------------------------------------------------------------------- */

static double progress_of(const struct task *t) {
	const unsigned open = t->counts[TARGET_WAITING] + t->counts[TARGET_RUNNING];
	return t->total ? (double)(t->total - open) / t->total : 1;
}

void task_render(struct jsonw *w, const struct task *t) {
	jsonw_str(w, "state", task_state_name(t->state));
	jsonw_bool(w, "cancelling", t->cancelling);
	jsonw_double(w, "progress", progress_of(t));
	jsonw_str(w, "owner", t->who.name);
	jsonw_object(w, "targets");
	jsonw_uint(w, "total", t->total);
	for (enum target_state s = TARGET_WAITING; s < TARGET_STATE_COUNT_; s++)
		jsonw_uint(w, target_state_name(s), t->counts[s]);
	jsonw_object_end(w);
	jsonw_time(w, "created_at", t->created_ms);
	jsonw_time(w, "started_at", t->started_ms);
	jsonw_time(w, "ended_at", t->ended_ms);
}

void target_render(struct jsonw *w, const struct task_target *t) {
	const bool ended = t->state >= TARGET_COMPLETED;
	jsonw_strf(w, "href", "/api/v1%s", t->object);
	jsonw_str(w, "state", target_state_name(t->state));
	jsonw_str(w, "outcome", ended && t->state != TARGET_CANCELLED ? rc_name(t->outcome) : NULL);
	render_text_or_null(w, "reason", t->reason);
	render_int_or_null(w, "nvme_status", t->nvme_status ? t->nvme_status : NONE);
	if (t->result[0])
		jsonw_raw(w, "result", t->result, strlen(t->result));
	else
		jsonw_null(w, "result");
	jsonw_time(w, "started_at", t->started_ms);
	jsonw_time(w, "ended_at", t->ended_ms);
}

static void render_whole(struct jsonw *w, const struct task *t) {
	jsonw_object(w, NULL);
	jsonw_str(w, "id", t->id);
	jsonw_strf(w, "href", "/api/v1/tasks/%s", t->id);
	jsonw_str(w, "kind", t->kind);
	if (strcmp(t->kind, POWER_TASK_KIND) == 0)
		jsonw_strf(w, "resource", "/api/v1/power-changes/%s", t->id);
	else
		jsonw_null(w, "resource");
	task_render(w, t);
	jsonw_object_end(w);
}

/* What was asked of a task never changes, nor does anything once it is over. */
void task_set_etag(struct http_response *r, const struct task *t) {
	if (task_state_is_final(t->state))
		http_set_etag(r, 1, UINT64_MAX);
}

static enum http_next answer_task(struct http_response *r, const struct task *t, int status) {
	struct jsonw w;
	jsonw_init(&w, &r->body);
	render_whole(&w, t);
	task_set_etag(r, t);
	r->status = status;
	return HTTP_DONE;
}

/* --- handlers --------------------------------------------------------------------------------- */

enum rc task_read_state(const struct http_request *q, int *state, struct err *err) {
	const char *name = http_query(q, "state");
	enum task_state s;
	*state = -1;
	if (!name)
		return RC_OK;
	if (!task_state_from_name(name, &s))
		return err_field(err, RC_INVALID, "state", "is not a state of a task");
	*state = (int)s;
	return RC_OK;
}

static bool list_task(void *arg, const struct task *t) {
	struct page *p = arg;
	if (!page_room(p))
		return false;
	render_whole(&p->w, t);
	page_item_done(p, t->id);
	return true;
}

enum http_next tasks_list_get(struct http_request *q, struct http_response *r, void *ctx) {
	static const char *const allowed[] = {"state", "kind", NULL};
	struct page p;
	struct err err = {0};
	int state;
	enum rc rc = task_read_state(q, &state, &err);
	if (rc == RC_OK)
		rc = page_begin(&p, q, r, allowed, &err);
	if (rc == RC_OK)
		rc = tasks_list(api_of(ctx)->core->tasks, state, http_query(q, "kind"), p.cursor,
			p.limit + 1, list_task, &p, &err);
	if (rc != RC_OK)
		return http_fail(q, r, &err);
	page_end(&p);
	return HTTP_DONE;
}

enum http_next task_get(struct http_request *q, struct http_response *r, void *ctx) {
	struct task t;
	struct err err = {0};
	if (query_check(q, NULL, &err) != RC_OK ||
		tasks_get(api_of(ctx)->core->tasks, http_param(q, "id"), &t, &err) != RC_OK)
		return http_fail(q, r, &err);
	return answer_task(r, &t, 200);
}

enum http_next task_cancel(struct http_request *q, struct http_response *r, void *ctx) {
	struct task t;
	struct err err = {0};
	if (query_check(q, NULL, &err) != RC_OK ||
		tasks_cancel(api_of(ctx)->core->tasks, http_actor(q), http_param(q, "id"), &t,
			&err) != RC_OK)
		return http_fail(q, r, &err);
	return answer_task(r, &t, 202);
}

static bool list_target(void *arg, unsigned position, const struct task_target *t) {
	struct page *p = arg;
	char cursor[16];
	if (!page_room(p))
		return false;
	jsonw_object(&p->w, NULL);
	jsonw_strf(&p->w, "id", "%u", position);
	target_render(&p->w, t);
	jsonw_object_end(&p->w);
	snprintf(cursor, sizeof(cursor), "%u", position + 1);
	page_item_done(p, cursor);
	return true;
}

enum http_next task_targets_get(struct http_request *q, struct http_response *r, void *ctx) {
	struct page p;
	struct task task;
	struct err err = {0};
	int64_t from = 0;
	enum rc rc = page_begin(&p, q, r, NULL, &err);
	if (rc == RC_OK && p.cursor[0])
		rc = parse_i64(p.cursor, 0, TASK_MAX_TARGETS, &from, "cursor", &err);
	if (rc == RC_OK)
		rc = tasks_targets(api_of(ctx)->core->tasks, http_param(q, "id"), (unsigned)from,
			p.limit + 1, &task, list_target, &p, &err);
	if (rc != RC_OK)
		return http_fail(q, r, &err);
	page_end(&p);
	return HTTP_DONE;
}
