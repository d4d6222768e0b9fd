/* /benchmarks: asking for a run, watching it, its documents. */
#include <stdio.h>
#include <string.h>

#include "api/v1/workload_json.h"
#include "base/id.h"
#include "base/parse.h"
#include "core/bench.h"
#include "core/drive.h"

#define RUNTIME_DEFAULT_S 30

/* --- rendering -------------------------------------------------------------------------------- */

static void render_workload_of(struct jsonw *w, const struct workload *l) {
	if (l->name[0]) {
		jsonw_str(w, "workload", l->name);
		return;
	}
	jsonw_object(w, "workload");
	workload_render(w, l);
	jsonw_object_end(w);
}

static void render_run(struct jsonw *w, const struct run *run) {
	const struct run_spec *s = &run->spec;
	jsonw_str(w, "id", run->id);
	jsonw_strf(w, "href", "/api/v1/benchmarks/%s", run->id);
	jsonw_str(w, "state", run_state_name(run->state));
	jsonw_double(w, "progress", run->progress);
	render_text_or_null(w, "reason", run->reason);
	jsonw_str(w, "owner", run->owner);
	jsonw_time(w, "created_at", run->created_ms);
	jsonw_time(w, "started_at", run->started_ms);
	jsonw_time(w, "ended_at", run->ended_ms);
	jsonw_bool(w, "recorded", !run->unrecorded);
	render_int_or_null(w, "live_read_bytes_per_s", run->read_bytes_per_s);
	render_int_or_null(w, "live_write_bytes_per_s", run->write_bytes_per_s);
	jsonw_array(w, "drives");
	for (unsigned i = 0; i < s->drive_count; i++)
		jsonw_str(w, NULL, s->drives[i]);
	jsonw_array_end(w);
	render_workload_of(w, &s->workload);
	render_int_or_null(w, "power_state", s->power_state < 0 ? NONE : s->power_state);
	jsonw_uint(w, "runtime_s", s->runtime_s);
	jsonw_uint(w, "ramp_s", s->ramp_s);
	render_int_or_null(
		w, "max_write_bytes", s->max_write_bytes ? (int64_t)s->max_write_bytes : NONE);
	render_labels(w, s->labels);
}

/* What was asked of a run never changes, nor does anything once it is over and stored. */
#define RUN_VERSION 1

/* result: JSON text; NULL: none. */
static void answer_run(
	struct http_response *r, const struct run *run, const char *result, size_t len) {
	struct jsonw w;
	jsonw_init(&w, &r->body);
	jsonw_object(&w, NULL);
	render_run(&w, run);
	if (result)
		jsonw_raw(&w, "result", result, len);
	else
		jsonw_null(&w, "result");
	jsonw_object_end(&w);
	if (run_state_is_final(run->state) && !run->unrecorded)
		http_set_etag(r, RUN_VERSION, UINT64_MAX);
}

/* Answers with the run as it is now. */
static enum rc find_run(
	struct http_response *r, struct core *core, const char *id, struct err *err) {
	auto_free struct run *run = calloc(1, sizeof(*run));
	auto_free char *result = NULL;
	size_t len = 0;
	if (!run)
		return err_set(err, RC_NOMEM, "memory is out");
	enum rc rc = bench_get(core->bench, id, run, err);
	if (rc != RC_OK)
		return rc;
	rc = bench_document(core->bench, id, RUN_DOCUMENT_RESULT, &result, &len, err);
	if (rc != RC_OK && rc != RC_NOT_FOUND)
		return rc;
	answer_run(r, run, result, len);
	return RC_OK;
}

static enum http_next answer_accepted(struct http_response *r, const char *id) {
	r->status = 202;
	snprintf(r->location, sizeof(r->location), "/api/v1/benchmarks/%s", id);
	return HTTP_DONE;
}

/* --- the list --------------------------------------------------------------------------------- */

static bool list_run(void *arg, const struct run *run) {
	struct page *p = arg;
	if (!page_room(p))
		return false;
	jsonw_object(&p->w, NULL);
	render_run(&p->w, run);
	jsonw_object_end(&p->w);
	page_item_done(p, run->id);
	return true;
}

static enum rc read_state(const struct http_request *q, int *state, struct err *err) {
	const char *name = http_query(q, "state");
	enum run_state s;
	*state = -1;
	if (!name)
		return RC_OK;
	if (!run_state_from_name(name, &s))
		return err_field(err, RC_INVALID, "state", "is not a state of a benchmark");
	*state = (int)s;
	return RC_OK;
}

/* Results outlive their drives: only a drive that was never here is a fault. */
static enum rc check_drive(
	struct core *core, const char *id, const struct page *p, struct err *err) {
	struct drive d;
	if (!id || p->count || p->cursor[0] ||
		drives_get(core->drives, id, &d, NULL, NULL, err) == RC_OK)
		return RC_OK;
	return err_field(err, RC_INVALID, "drive",
		"there is no drive with this id, and no benchmark of one");
}

enum http_next benchmarks_list(struct http_request *q, struct http_response *r, void *ctx) {
	static const char *const allowed[] = {"state", "drive", NULL};
	struct core *core = api_of(ctx)->core;
	const char *drive = http_query(q, "drive");
	struct page p;
	struct err err = {0};
	int state;
	enum rc rc = read_state(q, &state, &err);
	if (rc == RC_OK)
		rc = page_begin(&p, q, r, allowed, &err);
	if (rc == RC_OK)
		rc = bench_list(
			core->bench, state, drive, p.cursor, p.limit + 1, list_run, &p, &err);
	if (rc == RC_OK)
		rc = check_drive(core, drive, &p, &err);
	if (rc != RC_OK)
		return http_fail(q, r, &err);
	page_end(&p);
	return HTTP_DONE;
}

/* --- asking ----------------------------------------------------------------------------------- */

struct benchmark_body {
	const json_t *drives, *selector, *workload, *confirm_destructive, *confirm_in_use, *labels;
	int64_t power_state, runtime_s, ramp_s, max_write_bytes;
	bool override_signature, has_power_state;
};

static const struct json_in_field body_fields[] = {
	{"drives", JSON_IN_ARRAY, offsetof(struct benchmark_body, drives), .min = 0},
	{"selector", JSON_IN_OBJECT, offsetof(struct benchmark_body, selector), .min = 0},
	{"workload", JSON_IN_ANY, offsetof(struct benchmark_body, workload), .required = true},
	{"power_state", JSON_IN_INT, offsetof(struct benchmark_body, power_state), .min = 0,
		.max = POWER_STATES_MAX - 1, .nullable = true},
	{"runtime_s", JSON_IN_INT, offsetof(struct benchmark_body, runtime_s), .min = 1,
		.max = 86400},
	{"ramp_s", JSON_IN_INT, offsetof(struct benchmark_body, ramp_s), .min = 0, .max = 3600},
	{"confirm_destructive", JSON_IN_ARRAY, offsetof(struct benchmark_body, confirm_destructive),
		.min = 0},
	{"confirm_in_use", JSON_IN_ARRAY, offsetof(struct benchmark_body, confirm_in_use),
		.min = 0},
	{"override_signature", JSON_IN_BOOL, offsetof(struct benchmark_body, override_signature),
		.min = 0},
	{"max_write_bytes", JSON_IN_INT, offsetof(struct benchmark_body, max_write_bytes), .min = 1,
		.max = INT64_MAX, .nullable = true},
	{"labels", JSON_IN_OBJECT, offsetof(struct benchmark_body, labels), .min = 0},
};

/* An array of short strings into rows of `row` bytes. */
static enum rc read_strings(const json_t *array, const char *pointer, char *rows, size_t row,
	uint16_t *count, struct err *err) {
	size_t n = json_array_size(array);
	if (n > RUN_MAX_DRIVES)
		return err_field(
			err, RC_INVALID, pointer, "has more than %d elements", RUN_MAX_DRIVES);
	for (size_t i = 0; i < n; i++) {
		const char *s = json_string_value(json_array_get(array, i));
		char at[96];
		snprintf(at, sizeof(at), "%s/%zu", pointer, i);
		if (!s)
			return err_field(err, RC_INVALID, at, "must be a string");
		if (!str_copy(rows + i * row, row, s))
			return err_field(
				err, RC_INVALID, at, "must be at most %zu bytes long", row - 1);
	}
	*count = (uint16_t)n;
	return RC_OK;
}

struct selected {
	struct run_spec *spec;
	bool too_many;
};

static bool select_drive(void *arg, const struct drive *d, const char *labels unused_arg) {
	struct selected *s = arg;
	s->too_many = s->spec->drive_count == RUN_MAX_DRIVES;
	if (!s->too_many)
		str_copy(s->spec->drives[s->spec->drive_count++], DRIVE_ID_SIZE, d->id);
	return !s->too_many;
}

static enum rc read_selector(
	struct core *core, const json_t *object, struct run_spec *spec, struct err *err) {
	struct drive_selector selector;
	struct selected s = {.spec = spec};
	enum rc rc = selector_decode(core, object, "/selector", &selector, err);
	if (rc != RC_OK)
		return rc;
	drives_select(core->drives, &selector, select_drive, &s);
	if (s.too_many)
		return err_field(err, RC_INVALID, "/selector", "selects more than %d drives",
			RUN_MAX_DRIVES);
	if (spec->drive_count == 0)
		return err_field(err, RC_INVALID, "/selector", "selects no drive");
	return RC_OK;
}

static enum rc read_drives(
	struct core *core, const struct benchmark_body *b, struct run_spec *spec, struct err *err) {
	if (!b->drives == !b->selector)
		return err_field(err, RC_INVALID, "/drives", "give either drives or a selector");
	if (b->selector)
		return read_selector(core, b->selector, spec, err);
	if (json_array_size(b->drives) == 0)
		return err_field(err, RC_INVALID, "/drives", "must name at least one drive");
	return read_strings(
		b->drives, "/drives", spec->drives[0], DRIVE_ID_SIZE, &spec->drive_count, err);
}

static enum rc read_workload(
	struct core *core, const json_t *v, struct workload *out, struct err *err) {
	if (json_is_object(v))
		return workload_decode(v, "/workload", out, err);
	if (!json_is_string(v))
		return err_field(err, RC_INVALID, "/workload",
			"must be the name of a workload or an object");
	enum rc rc = bench_workload_find(core->bench, json_string_value(v), out, err);
	if (rc == RC_NOT_FOUND)
		return err_field(err, RC_INVALID, "/workload", "there is no workload of this name");
	return rc;
}

static enum rc fill_spec(
	struct core *core, const struct benchmark_body *b, struct run_spec *spec, struct err *err) {
	enum rc rc = read_drives(core, b, spec, err);
	if (rc == RC_OK)
		rc = read_workload(core, b->workload, &spec->workload, err);
	if (rc == RC_OK)
		rc = read_strings(b->confirm_destructive, "/confirm_destructive",
			spec->confirm_destructive[0], sizeof(spec->confirm_destructive[0]),
			&spec->confirm_count, err);
	if (rc == RC_OK)
		rc = read_strings(b->confirm_in_use, "/confirm_in_use", spec->confirm_in_use[0],
			sizeof(spec->confirm_in_use[0]), &spec->confirm_in_use_count, err);
	if (rc == RC_OK && b->labels)
		rc = json_in_labels(b->labels, "/labels", spec->labels, sizeof(spec->labels), err);
	spec->power_state = (int8_t)b->power_state;
	spec->runtime_s = (uint32_t)b->runtime_s;
	spec->ramp_s = (uint32_t)b->ramp_s;
	spec->max_write_bytes = (uint64_t)b->max_write_bytes;
	spec->override_signature = b->override_signature;
	return rc;
}

static enum rc read_spec(
	struct core *core, const struct http_request *q, struct run_spec *spec, struct err *err) {
	struct benchmark_body b = {.power_state = -1, .runtime_s = RUNTIME_DEFAULT_S};
	json_t *body = NULL;
	enum rc rc = v1_body(q, &body, err);
	if (rc == RC_OK)
		rc = json_in_fields(body, "", body_fields, array_len(body_fields), &b, err);
	if (rc == RC_OK)
		rc = fill_spec(core, &b, spec, err);
	json_decref(body);
	return rc;
}

static enum http_next submit_new(struct http_request *q, struct http_response *r, struct core *core,
	const struct actor *who) {
	auto_free struct run_spec *spec = calloc(1, sizeof(*spec));
	auto_free struct run *run = calloc(1, sizeof(*run));
	struct err err = {0};
	if (!spec || !run)
		err_set(&err, RC_NOMEM, "memory is out");
	if (!spec || !run || read_spec(core, q, spec, &err) != RC_OK ||
		bench_submit(core->bench, who, spec, run, &err) != RC_OK)
		return http_fail(q, r, &err);
	answer_run(r, run, NULL, 0);
	return answer_accepted(r, run->id);
}

static enum http_next submit_again(
	struct http_request *q, struct http_response *r, struct core *core, const char *id) {
	struct err err = {0};
	if (find_run(r, core, id, &err) != RC_OK)
		return http_fail(q, r, &err);
	r->replayed = true;
	return answer_accepted(r, id);
}

enum http_next benchmark_create(struct http_request *q, struct http_response *r, void *ctx) {
	struct core *core = api_of(ctx)->core;
	struct creation c;
	struct err err = {0};
	if (creation_begin(&c, q, core, &err) != RC_OK)
		return http_fail(q, r, &err);
	return c.made ? submit_again(q, r, core, c.made) : submit_new(q, r, core, &c.who);
}

/* --- one run ---------------------------------------------------------------------------------- */

enum http_next benchmark_get(struct http_request *q, struct http_response *r, void *ctx) {
	struct err err = {0};
	if (query_check(q, NULL, &err) != RC_OK ||
		find_run(r, api_of(ctx)->core, http_param(q, "id"), &err) != RC_OK)
		return http_fail(q, r, &err);
	return HTTP_DONE;
}

static enum rc delete_run(struct bench *bench, const struct http_request *q, struct err *err) {
	auto_free struct run *run = calloc(1, sizeof(*run));
	uint32_t if_version;
	if (!run)
		return err_set(err, RC_NOMEM, "memory is out");
	enum rc rc = bench_get(bench, http_param(q, "id"), run, err);
	if (rc == RC_OK)
		rc = http_check_conditions(q, true, RUN_VERSION, &if_version, err);
	return rc == RC_OK ? bench_delete(bench, http_actor(q), run->id, err) : rc;
}

enum http_next benchmark_delete(struct http_request *q, struct http_response *r, void *ctx) {
	struct err err = {0};
	if (query_check(q, NULL, &err) != RC_OK ||
		delete_run(api_of(ctx)->core->bench, q, &err) != RC_OK)
		return http_fail(q, r, &err);
	r->status = 204;
	return HTTP_DONE;
}

enum http_next benchmark_cancel(struct http_request *q, struct http_response *r, void *ctx) {
	struct core *core = api_of(ctx)->core;
	struct err err = {0};
	const char *id = http_param(q, "id");
	if (query_check(q, NULL, &err) != RC_OK ||
		bench_cancel(core->bench, http_actor(q), id, &err) != RC_OK ||
		find_run(r, core, id, &err) != RC_OK)
		return http_fail(q, r, &err);
	r->status = 202;
	return HTTP_DONE;
}

/* The members of ours stand before those of what is kept, which is an object with some. */
static void begin_series(struct buf *out, const char *id) {
	buf_printf(out, "{\"id\":\"%s\",\"href\":\"/api/v1/benchmarks/%s/series\",", id, id);
}

static enum http_next answer_document(
	struct http_request *q, struct http_response *r, void *ctx, enum run_document which) {
	struct core *core = api_of(ctx)->core;
	auto_free struct run *run = calloc(1, sizeof(*run));
	auto_free char *text = NULL;
	size_t len = 0;
	struct err err = {0};
	if (!run)
		err_set(&err, RC_NOMEM, "memory is out");
	if (!run || query_check(q, NULL, &err) != RC_OK ||
		bench_get(core->bench, http_param(q, "id"), run, &err) != RC_OK ||
		bench_document(core->bench, run->id, which, &text, &len, &err) != RC_OK)
		return http_fail(q, r, &err);
	size_t skip = which == RUN_DOCUMENT_SERIES;
	if (skip)
		begin_series(&r->body, run->id);
	buf_add(&r->body, text + skip, len - skip);
	return HTTP_DONE;
}

enum http_next benchmark_series_get(struct http_request *q, struct http_response *r, void *ctx) {
	return answer_document(q, r, ctx, RUN_DOCUMENT_SERIES);
}

enum http_next benchmark_fio_get(struct http_request *q, struct http_response *r, void *ctx) {
	return answer_document(q, r, ctx, RUN_DOCUMENT_FIO);
}
