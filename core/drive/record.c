#include <string.h>

#include "base/clock.h"
#include "base/jsonw.h"
#include "base/log.h"
#include "base/parse.h"
#include "core/drive/registry.h"

#define SEEN_MS (3600 * 1000) /* how old last_seen_ms in the store may become */

static struct drive copy_of(struct entry *e) {
	pthread_rwlock_rdlock(&e->ds->lock);
	const struct drive d = e->d;
	pthread_rwlock_unlock(&e->ds->lock);
	return d;
}

/* --- seen --- */

static enum rc read_record(
	struct db *control, const char *id, struct drive_record *r, struct err *err) {
	struct db_conn *c;
	enum rc rc = db_read_begin(control, &c, err);
	if (rc)
		return rc;
	rc = db_drive_get(c, id, r, err);
	db_read_end(c);
	return rc;
}

static enum rc write_seen(struct db *control, const struct drive *d, struct err *err) {
	struct drive_record r = {
		.config_version = 1,
		.first_seen_ms = clock_wall_ms(),
		.last_seen_ms = clock_wall_ms(),
	};
	str_copy(r.id, sizeof(r.id), d->id);
	str_copy(r.model, sizeof(r.model), d->model);
	str_copy(r.serial, sizeof(r.serial), d->serial);
	struct db_conn *c;
	enum rc rc = db_write_begin(control, &c, err);
	if (rc)
		return rc;
	rc = db_drive_seen(c, &r, err);
	if (rc) {
		db_write_abort(c);
		return rc;
	}
	return db_write_commit(c, err);
}

static void take_labels(struct entry *e, const struct drive_record *r) {
	pthread_rwlock_wrlock(&e->ds->lock);
	if (e->d.config_version != r->config_version || strcmp(e->labels, r->labels) != 0) {
		memcpy(e->labels, r->labels, sizeof(e->labels));
		e->d.config_version = r->config_version;
		registry_touch(e);
	}
	pthread_rwlock_unlock(&e->ds->lock);
}

bool record_seen(struct entry *e) {
	struct err err;
	struct drive_record r = {0};
	const struct drive d = copy_of(e);
	const enum rc rc = read_record(e->ds->control, d.id, &r, &err);
	if (!rc)
		take_labels(e, &r);
	const int64_t age_ms = clock_wall_ms() - r.last_seen_ms;
	const bool fresh = !rc && age_ms >= 0 && age_ms < SEEN_MS;
	if (!fresh && write_seen(e->ds->control, &d, &err))
		log_err(LOG_LEVEL_WARNING, "drives", "noting a drive", &err);
	return rc == RC_NOT_FOUND;
}

/* --- events --- */

static const enum event_type event_types[] = {
	[CHANGE_ADDED] = EVENT_DRIVE_ADDED,
	[CHANGE_RETURNED] = EVENT_DRIVE_ADDED,
	[CHANGE_REMOVED] = EVENT_DRIVE_REMOVED,
	[CHANGE_STATE] = EVENT_DRIVE_STATE,
};

void record_change(struct entry *e, const struct todo *t) {
	const struct drive d = copy_of(e);
	struct buf data;
	struct jsonw w;
	char object[64];
	snprintf(object, sizeof(object), "/drives/%s", d.id);
	buf_init(&data, 1024);
	jsonw_init(&w, &data);
	jsonw_object(&w, NULL);
	jsonw_str(&w, "drive", d.id);
	jsonw_str(&w, "name", d.name);
	jsonw_str(&w, "model", d.model);
	jsonw_str(&w, "serial", d.serial);
	if (t->change == CHANGE_STATE) {
		jsonw_str(&w, "from", drive_state_name(t->from_state));
		jsonw_str(&w, "to", drive_state_name(t->to_state));
		jsonw_str(&w, "reason", t->reply.err.msg);
	}
	jsonw_object_end(&w);
	events_record(e->ds->events, event_types[t->change], &actor_system, object, buf_str(&data));
	buf_release(&data);
}

/* --- samples --- */

static bool find_series(struct entry *e, enum quantity q, enum quality quality) {
	struct err err;
	struct series_key key = {.quantity = (uint8_t)q, .quality = (uint8_t)quality};
	if (e->series[q])
		return true;
	str_copy(key.host_id, sizeof(key.host_id), e->ds->host_id);
	str_copy(key.object, sizeof(key.object), e->d.id);
	if (!energy_series(e->ds->energy, &key, "smart", &e->series[q], &err))
		return true;
	e->series[q] = 0;
	log_err(LOG_LEVEL_WARNING, "drives", "a drive's series", &err);
	return false;
}

void record_health(struct entry *e, const struct drive_health *h) {
	const struct drive d = copy_of(e);
	const enum quality quality =
		d.kind == DRIVE_SIMULATED ? QUALITY_SIMULATED : QUALITY_MEASURED;
	const struct {
		enum quantity quantity;
		int64_t value;
	} readings[] = {
		{QUANTITY_TEMPERATURE, h->temperature_mc},
		{QUANTITY_POWER, h->interval_power_mw},
	};
	for (size_t i = 0; e->ds->energy && i < array_len(readings); i++) {
		if (readings[i].value == NONE || !find_series(e, readings[i].quantity, quality))
			continue;
		const struct sample s = {
			.series_id = e->series[readings[i].quantity],
			.at_ms = clock_wall_ms(),
			.at_mono_ns = clock_mono_ns(),
			.value_milli = readings[i].value,
		};
		energy_ingest(e->ds->energy, &s, 1);
	}
}

/* --- labels --- */

static enum rc write_labels(struct db_conn *c, const struct actor *who, const char *id,
	const char *labels, uint32_t if_version, struct drive_record *r, struct err *err) {
	char object[64];
	snprintf(object, sizeof(object), "/drives/%s", id);
	enum rc rc = db_drive_get(c, id, r, err);
	if (rc)
		return rc;
	if (if_version && if_version != r->config_version)
		return err_set(err, RC_PRECONDITION, "the drive's labels have changed meanwhile");
	if (strcmp(r->labels, labels) == 0)
		return RC_OK;
	str_copy(r->labels, sizeof(r->labels), labels);
	r->config_version++;
	rc = db_drive_set_labels(c, id, labels, r->config_version, err);
	return rc ? rc
		  : events_audit(c, who, "drive.set_labels", object, rc_name(RC_OK), NULL, err);
}

static void publish_labels(struct drives *ds, const struct drive_record *r) {
	pthread_rwlock_wrlock(&ds->lock);
	struct entry *e = registry_find(ds, r->id);
	/* A later change may have been faster here. */
	if (e && e->d.config_version < r->config_version) {
		memcpy(e->labels, r->labels, sizeof(e->labels));
		e->d.config_version = r->config_version;
		registry_touch(e);
	}
	pthread_rwlock_unlock(&ds->lock);
}

enum rc drives_set_labels(struct drives *ds, const struct actor *who, const char *id,
	const char *labels, uint32_t if_version, struct err *err) {
	struct drive d;
	struct drive_record r;
	struct db_conn *c;
	if (strlen(labels) >= sizeof(r.labels))
		return err_field(err, RC_INVALID, "/labels", "labels of more than %zu bytes",
			sizeof(r.labels) - 1);
	enum rc rc = drives_get(ds, id, &d, NULL, NULL, err);
	if (!rc)
		rc = db_write_begin(ds->control, &c, err);
	if (rc)
		return rc;
	rc = write_labels(c, who, id, labels, if_version, &r, err);
	if (rc) {
		db_write_abort(c);
		return rc;
	}
	rc = db_write_commit(c, err);
	if (!rc)
		publish_labels(ds, &r);
	return rc;
}
