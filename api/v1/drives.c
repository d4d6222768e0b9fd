/* /drives: the list, one drive, its health and temperatures. */
#include <string.h>

#include "api/v1/v1.h"
#include "base/clock.h"
#include "core/drive.h"
#include "core/hosts.h"

static void render_milli32(struct jsonw *w, const char *key, int32_t v) {
	jsonw_milli(w, key, v == INT32_MIN ? JSONW_NONE : v);
}

static void render_state_or_null(struct jsonw *w, const char *key, int state) {
	render_int_or_null(w, key, state < 0 ? NONE : state);
}

static void render_identity(struct jsonw *w, const struct drive *d) {
	jsonw_str(w, "id", d->id);
	jsonw_strf(w, "href", "/api/v1/drives/%s", d->id);
	jsonw_str(w, "name", d->name);
	jsonw_str(w, "kind", drive_kind_name(d->kind));
	jsonw_str(w, "model", d->model);
	jsonw_str(w, "serial", d->serial);
	jsonw_bool(w, "serial_unique", d->serial_unique);
	render_text_or_null(w, "firmware", d->firmware);
	jsonw_uint(w, "capacity_bytes", d->capacity_bytes);
	jsonw_str(w, "transport", d->transport);
	render_text_or_null(w, "pci_address", strcmp(d->transport, "pcie") == 0 ? d->address : "");
	render_text_or_null(w, "address", d->address);
	render_text_or_null(w, "slot", d->slot);
	render_int_or_null(w, "numa_node", d->numa_node < 0 ? NONE : d->numa_node);
}

static void render_power_summary(struct jsonw *w, const struct drive *d) {
	jsonw_object(w, "power");
	jsonw_strf(w, "href", "/api/v1/drives/%s/power", d->id);
	render_state_or_null(w, "state", d->power_state);
	render_state_or_null(w, "effective_state", d->effective_state);
	jsonw_bool(w, "in_sync", d->in_sync);
	render_milli32(w, "measured_w", d->measured_mw);
	jsonw_str(w, "measured_quality",
		d->measured_mw == INT32_MIN ? NULL : quality_name(d->measured_quality));
	jsonw_object_end(w);
}

static void render_summary(
	struct jsonw *w, const struct drive *d, const char *labels, const char *host_id) {
	render_identity(w, d);
	jsonw_str(w, "host", host_id);
	render_labels(w, labels);
	jsonw_str(w, "state", drive_state_name(d->state));
	jsonw_bool(w, "in_use", d->in_use);
	jsonw_str(w, "health", d->health ? drive_health_name(d->health) : NULL);
	render_milli32(w, "temperature_c", d->temperature_mc);
	jsonw_bool(w, "simulated", d->kind == DRIVE_SIMULATED);
	jsonw_time(w, "seen_at", d->seen_ms);
	render_power_summary(w, d);
}

/* --- the list --------------------------------------------------------------------------------- */

struct drives_filter {
	const char *model, *host, *label_name, *label_value;
	char label[128];
	int64_t power_state; /* NONE: any */
	bool in_sync, by_in_sync;
};

struct drives_list_ctx {
	struct page page;
	struct drives_filter filter;
	const char *host_id;
};

static enum rc read_label(const struct http_request *q, struct drives_filter *f, struct err *err) {
	const char *text = http_query(q, "label");
	if (!text)
		return RC_OK;
	size_t len = strlen(text);
	char *colon = len < sizeof(f->label) ? memcpy(f->label, text, len + 1) : NULL;
	colon = colon ? strpbrk(f->label, ":=") : NULL;
	if (!colon)
		return err_field(err, RC_INVALID, "label", "must read name:value");
	*colon = '\0';
	f->label_name = f->label;
	f->label_value = colon + 1;
	return RC_OK;
}

static enum rc read_filter(
	const struct http_request *q, struct core *core, struct drives_filter *f, struct err *err) {
	f->power_state = NONE;
	f->model = http_query(q, "model");
	enum rc rc = query_host(q, core, &f->host, err);
	if (rc == RC_OK)
		rc = query_int(q, "power_state", 0, POWER_STATES_MAX - 1, &f->power_state, err);
	if (rc == RC_OK)
		rc = query_bool(q, "in_sync", &f->in_sync, &f->by_in_sync, err);
	return rc == RC_OK ? read_label(q, f, err) : rc;
}

static bool label_matches(const struct drives_filter *f, const char *labels) {
	if (!f->label_name)
		return true;
	json_t *object = json_loads(labels[0] ? labels : "{}", 0, NULL);
	const char *value = json_string_value(json_object_get(object, f->label_name));
	bool matches = value && strcmp(value, f->label_value) == 0;
	json_decref(object);
	return matches;
}

static bool filter_matches(const struct drives_filter *f, const struct drive *d, const char *labels,
	const char *host_id) {
	return (!f->model || strcmp(f->model, d->model) == 0) &&
		(!f->host || strcmp(f->host, host_id) == 0) &&
		(f->power_state == NONE || f->power_state == d->power_state) &&
		(!f->by_in_sync || f->in_sync == d->in_sync) && label_matches(f, labels);
}

static bool list_drive(void *arg, const struct drive *d, const char *labels) {
	struct drives_list_ctx *c = arg;
	if (!filter_matches(&c->filter, d, labels, c->host_id))
		return true;
	if (!page_room(&c->page))
		return false;
	jsonw_object(&c->page.w, NULL);
	render_summary(&c->page.w, d, labels, c->host_id);
	jsonw_object_end(&c->page.w);
	page_item_done(&c->page, d->id);
	return true;
}

uint64_t v1_drives_version(void *ctx, const struct http_request *q unused_arg) {
	return drives_version(api_of(ctx)->core->drives);
}

enum http_next drives_list(struct http_request *q, struct http_response *r, void *ctx) {
	static const char *const allowed[] = {
		"host", "group", "model", "label", "power_state", "in_sync", NULL};
	struct core *core = api_of(ctx)->core;
	struct drives_list_ctx c = {.host_id = core->host_id};
	struct err err = {0};
	char reason[160];
	if (read_filter(q, core, &c.filter, &err) != RC_OK ||
		page_begin(&c.page, q, r, allowed, &err) != RC_OK)
		return http_fail(q, r, &err);
	if (http_query(q, "group")) {
		err_field(&err, RC_INVALID, "group", "there is no group of this name");
		return http_fail(q, r, &err);
	}
	drives_each(core->drives, c.page.cursor, list_drive, &c);
	page_items_end(&c.page);
	drives_reason(core->drives, reason, sizeof(reason));
	render_text_or_null(&c.page.w, "drives_reason", reason);
	jsonw_object_end(&c.page.w);
	return HTTP_DONE;
}

/* --- one drive -------------------------------------------------------------------------------- */

static void render_namespace(struct jsonw *w, const struct drive_namespace *n) {
	jsonw_object(w, NULL);
	jsonw_uint(w, "nsid", n->nsid);
	jsonw_str(w, "path", n->path);
	jsonw_uint(w, "size_bytes", n->size_bytes);
	jsonw_uint(w, "lba_bytes", n->lba_bytes);
	jsonw_bool(w, "zoned", n->zoned);
	jsonw_bool(w, "in_use", n->use_count > 0);
	jsonw_array(w, "used_by");
	for (unsigned i = 0; i < n->use_count; i++) {
		jsonw_object(w, NULL);
		jsonw_str(w, "kind", use_kind_name(n->uses[i].kind));
		jsonw_str(w, "detail", n->uses[i].detail);
		jsonw_object_end(w);
	}
	jsonw_array_end(w);
	jsonw_object_end(w);
}

static void render_detail(struct jsonw *w, const struct drive_detail *detail) {
	render_text_or_null(w, "subsystem_nqn", detail->subsystem_nqn);
	jsonw_uint(w, "controller_id", detail->cntlid);
	jsonw_uint(w, "scale", detail->scale ? detail->scale : 1);
	jsonw_array(w, "namespaces");
	for (unsigned i = 0; i < detail->namespace_count; i++)
		render_namespace(w, &detail->namespaces[i]);
	jsonw_array_end(w);
	jsonw_bool(w, "namespaces_cut", detail->namespaces_cut);
}

static void render_drive(struct jsonw *w, struct core *core, const struct drive *d,
	const char *labels, const struct drive_detail *detail) {
	struct drive_observed seen = {0};
	jsonw_object(w, NULL);
	render_summary(w, d, labels, core->host_id);
	if (drives_observed(core->drives, d->id, &seen, NULL) == RC_OK && seen.last.rc != RC_OK)
		jsonw_str(w, "state_reason", seen.last.msg);
	else
		jsonw_null(w, "state_reason");
	render_detail(w, detail);
	jsonw_object_end(w);
}

/* A drive's own page shows nothing that the list's version does not cover. */
uint64_t v1_drive_version(void *ctx, const struct http_request *q unused_arg) {
	return drives_version(api_of(ctx)->core->drives);
}

static enum http_next answer_drive(
	struct http_request *q, struct http_response *r, struct core *core, const char *id) {
	auto_free struct drive_detail *detail = calloc(1, sizeof(*detail));
	struct drive d;
	struct err err = {0};
	struct jsonw w;
	char labels[512];
	if (!detail)
		err_set(&err, RC_NOMEM, "memory is out");
	else if (drives_get(core->drives, id, &d, labels, detail, &err) == RC_OK) {
		jsonw_init(&w, &r->body);
		render_drive(&w, core, &d, labels, detail);
		http_set_etag(r, d.config_version, d.observed_version);
		return HTTP_DONE;
	}
	return http_fail(q, r, &err);
}

enum http_next drive_get(struct http_request *q, struct http_response *r, void *ctx) {
	struct err err = {0};
	if (query_check(q, NULL, &err) != RC_OK)
		return http_fail(q, r, &err);
	return answer_drive(q, r, api_of(ctx)->core, http_param(q, "id"));
}

static enum rc patch_drive(struct core *core, struct http_request *q, struct err *err) {
	const json_t *labels = NULL;
	const struct json_in_field fields[] = {{"labels", JSON_IN_OBJECT, .required = true}};
	const char *id = http_param(q, "id");
	struct drive d;
	char text[512];
	uint32_t if_version;
	json_t *body = NULL;
	enum rc rc = drives_get(core->drives, id, &d, NULL, NULL, err);
	if (rc == RC_OK)
		rc = v1_body(q, &body, err);
	if (rc == RC_OK)
		rc = json_in_fields(body, "", fields, array_len(fields), &labels, err);
	if (rc == RC_OK)
		rc = json_in_labels(labels, "/labels", text, sizeof(text), err);
	if (rc == RC_OK)
		rc = http_check_conditions(q, true, d.config_version, &if_version, err);
	if (rc == RC_OK)
		rc = drives_set_labels(core->drives, http_actor(q), id, text, if_version, err);
	json_decref(body);
	return rc;
}

enum http_next drive_patch(struct http_request *q, struct http_response *r, void *ctx) {
	struct core *core = api_of(ctx)->core;
	struct err err = {0};
	if (patch_drive(core, q, &err) != RC_OK)
		return http_fail(q, r, &err);
	return answer_drive(q, r, core, http_param(q, "id"));
}

/* --- health and temperatures ------------------------------------------------------------------ */

static void render_sensors(struct jsonw *w, const struct drive_health *h) {
	jsonw_array(w, "sensors");
	for (unsigned i = 0; i < DRIVE_MAX_SENSORS; i++) {
		if (h->sensors_mc[i] == NONE)
			continue;
		jsonw_object(w, NULL);
		jsonw_uint(w, "sensor", i + 1);
		jsonw_milli(w, "temperature_c", h->sensors_mc[i]);
		jsonw_object_end(w);
	}
	jsonw_array_end(w);
}

/* NVM Express Base 2.0, SMART log: a data unit is 1,000 blocks of 512 bytes. */
static void render_data_units(struct jsonw *w, const char *key, int64_t units) {
	if (units == NONE)
		jsonw_null(w, key);
	else
		jsonw_double(w, key, (double)units * 512000.0);
}

static void render_critical(struct jsonw *w, uint8_t warning) {
	static const char *const words[] = {"spare_below_threshold", "temperature", "reliability",
		"read_only", "volatile_backup_failed", "persistent_memory_read_only"};
	jsonw_array(w, "critical_warnings");
	for (unsigned i = 0; i < array_len(words); i++)
		if (warning >> i & 1)
			jsonw_str(w, NULL, words[i]);
	jsonw_array_end(w);
}

static void render_health(struct jsonw *w, const struct drive_health *h) {
	const struct {
		const char *key;
		int64_t v;
	} counts[] = {
		{"available_spare_pct", h->available_spare_pct},
		{"spare_threshold_pct", h->spare_threshold_pct},
		{"percentage_used", h->percentage_used},
		{"host_reads", h->host_reads},
		{"host_writes", h->host_writes},
		{"controller_busy_min", h->controller_busy_min},
		{"power_cycles", h->power_cycles},
		{"power_on_h", h->power_on_h},
		{"unsafe_shutdowns", h->unsafe_shutdowns},
		{"media_errors", h->media_errors},
		{"error_log_entries", h->error_log_entries},
		{"lifetime_energy_wh", h->lifetime_energy_wh},
	};
	jsonw_str(w, "health", drive_health_name(drive_health_judge(h)));
	render_critical(w, h->critical_warning);
	jsonw_milli(w, "temperature_c", h->temperature_mc);
	render_data_units(w, "read_bytes", h->data_units_read);
	render_data_units(w, "written_bytes", h->data_units_written);
	for (size_t i = 0; i < array_len(counts); i++)
		render_int_or_null(w, counts[i].key, counts[i].v);
	jsonw_milli(w, "interval_power_w", h->interval_power_mw);
	jsonw_time(w, "read_at", h->read_ms);
}

/* Why a part of a drive's health is null, where it is. */
static const char *log_reason(uint8_t has, uint8_t read, enum drive_logs log, const char *absent) {
	if (read & log)
		return NULL;
	return has & log ? "the log could not be read" : absent;
}

static void render_ocp(struct jsonw *w, const struct drive_ocp *o) {
	const struct {
		const char *key;
		int64_t v;
	} counts[] = {
		{"log_version", o->version},
		{"media_written_bytes", o->media_written_bytes},
		{"media_read_bytes", o->media_read_bytes},
		{"bad_user_blocks", o->bad_user_blocks},
		{"bad_system_blocks", o->bad_system_blocks},
		{"uncorrectable_reads", o->uncorrectable_reads},
		{"pcie_correctable_errors", o->pcie_correctable_errors},
		{"incomplete_shutdowns", o->incomplete_shutdowns},
		{"free_blocks_pct", o->free_blocks_pct},
		{"throttling_events", o->throttling_events},
		{"throttling_level", o->throttling},
		{"power_state_changes", o->power_state_changes},
	};
	jsonw_object(w, "ocp");
	for (size_t i = 0; i < array_len(counts); i++)
		jsonw_int(w, counts[i].key, counts[i].v);
	jsonw_object_end(w);
}

static void render_measurement(struct jsonw *w, const struct drive_measurement *m) {
	jsonw_object(w, "power_measurement");
	jsonw_bool(w, "enabled", m->enabled);
	jsonw_bool(w, "estimated", m->estimated);
	jsonw_milli(w, "average_w", m->enabled ? m->average_mw : JSONW_NONE);
	jsonw_milli(w, "maximum_w", m->enabled ? m->maximum_mw : JSONW_NONE);
	render_int_or_null(w, "error_pct", m->error_pct);
	jsonw_int(w, "remaining_min", m->minutes_left);
	jsonw_object_end(w);
}

/* has: enum drive_logs that the drive says it has. */
static void render_logs(struct jsonw *w, const struct drive_health *h, uint8_t has) {
	if (h->logs & DRIVE_LOG_OCP)
		render_ocp(w, &h->ocp);
	else
		jsonw_null(w, "ocp");
	jsonw_str(w, "ocp_reason",
		log_reason(has, h->logs, DRIVE_LOG_OCP,
			"the drive does not say that it follows OCP's specification"));
	if (h->logs & DRIVE_LOG_MEASUREMENT)
		render_measurement(w, &h->measurement);
	else
		jsonw_null(w, "power_measurement");
	jsonw_str(w, "power_measurement_reason",
		log_reason(has, h->logs, DRIVE_LOG_MEASUREMENT,
			"the drive does not measure its power (NVMe 2.3)"));
}

/* An old reading of a drive that is let sleep. */
static void render_age(
	struct jsonw *w, const struct drive *d, const struct power_table *t, int64_t read_ms) {
	const struct power_state *s = power_table_find(t, d->power_state);
	jsonw_milli(w, "age_s", clock_wall_ms() - read_ms);
	jsonw_str(w, "age_reason",
		s && !s->operational
			? "not read since the drive is in a non-operational power state"
			: NULL);
}

static void begin_drive_part(struct jsonw *w, struct buf *out, const char *id, const char *part) {
	jsonw_init(w, out);
	jsonw_object(w, NULL);
	jsonw_str(w, "id", id);
	jsonw_strf(w, "href", "/api/v1/drives/%s/%s", id, part);
}

enum http_next drive_health_get(struct http_request *q, struct http_response *r, void *ctx) {
	struct core *core = api_of(ctx)->core;
	auto_free struct drive_detail *detail = calloc(1, sizeof(*detail));
	struct drive_health health;
	struct drive d;
	struct err err = {0};
	struct jsonw w;
	if (!detail)
		err_set(&err, RC_NOMEM, "memory is out");
	if (!detail || query_check(q, NULL, &err) != RC_OK ||
		drives_get(core->drives, http_param(q, "id"), &d, NULL, detail, &err) != RC_OK ||
		drives_health(core->drives, d.id, &health, &err) != RC_OK)
		return http_fail(q, r, &err);
	begin_drive_part(&w, &r->body, d.id, "health");
	render_health(&w, &health);
	render_logs(&w, &health, detail->logs);
	render_age(&w, &d, &detail->power, health.read_ms);
	jsonw_bool(&w, "simulated", d.kind == DRIVE_SIMULATED);
	jsonw_object_end(&w);
	return HTTP_DONE;
}

static void render_thermal(
	struct jsonw *w, const struct drive_detail *detail, const struct drive_health *h) {
	jsonw_milli(w, "composite_c", h->temperature_mc);
	render_int_or_null(w, "warning_c", detail->warning_c);
	render_int_or_null(w, "critical_c", detail->critical_c);
	jsonw_null(w, "touch_limit_c");
	jsonw_str(w, "touch_limit_reason", "NVMe has no field for it");
	render_sensors(w, h);
	jsonw_null(w, "tmt1_c");
	jsonw_null(w, "tmt2_c");
	jsonw_str(w, "tmt_reason", "the thresholds in force are not read");
	render_int_or_null(w, "tmt_min_c", detail->tmt_min_c);
	render_int_or_null(w, "tmt_max_c", detail->tmt_max_c);
	render_int_or_null(w, "above_warning_min", h->warning_temperature_min);
	render_int_or_null(w, "above_critical_min", h->critical_temperature_min);
	render_int_or_null(w, "tmt1_transitions", h->tmt1_transitions);
	render_int_or_null(w, "tmt2_transitions", h->tmt2_transitions);
	render_int_or_null(w, "tmt1_s", h->tmt1_s);
	render_int_or_null(w, "tmt2_s", h->tmt2_s);
	jsonw_time(w, "read_at", h->read_ms);
}

enum http_next drive_thermal_get(struct http_request *q, struct http_response *r, void *ctx) {
	struct core *core = api_of(ctx)->core;
	auto_free struct drive_detail *detail = calloc(1, sizeof(*detail));
	struct drive_health health;
	struct drive d;
	struct err err = {0};
	struct jsonw w;
	if (!detail)
		err_set(&err, RC_NOMEM, "memory is out");
	if (!detail || query_check(q, NULL, &err) != RC_OK ||
		drives_get(core->drives, http_param(q, "id"), &d, NULL, detail, &err) != RC_OK ||
		drives_health(core->drives, d.id, &health, &err) != RC_OK)
		return http_fail(q, r, &err);
	begin_drive_part(&w, &r->body, d.id, "thermal");
	render_thermal(&w, detail, &health);
	jsonw_bool(&w, "simulated", d.kind == DRIVE_SIMULATED);
	jsonw_object_end(&w);
	return HTTP_DONE;
}
