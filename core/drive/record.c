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

/* What the store knows about a drive. */
struct seen {
	struct entry *entry;
	struct drive drive;
	bool is_new, is_fresh;
};

static bool is_fresh(int64_t at_ms) {
	const int64_t age_ms = clock_wall_ms() - at_ms;
	return age_ms >= 0 && age_ms < SEEN_MS;
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

static enum rc look_up(struct seen *s, struct db_conn *c, struct err *err) {
	struct drive_record r;
	s->drive = copy_of(s->entry);
	const enum rc rc = db_drive_get(c, s->drive.id, &r, err);
	s->is_new = rc == RC_NOT_FOUND;
	if (rc)
		return s->is_new ? RC_OK : rc;
	take_labels(s->entry, &r);
	s->is_fresh = is_fresh(r.last_seen_ms);
	return RC_OK;
}

static enum rc note(const struct seen *s, struct db_conn *c, struct err *err) {
	struct drive_record r = {
		.config_version = 1,
		.first_seen_ms = clock_wall_ms(),
		.last_seen_ms = clock_wall_ms(),
	};
	if (s->is_fresh)
		return RC_OK;
	str_copy(r.id, sizeof(r.id), s->drive.id);
	str_copy(r.model, sizeof(r.model), s->drive.model);
	str_copy(r.serial, sizeof(r.serial), s->drive.serial);
	return db_drive_seen(c, &r, err);
}

static enum rc commit(struct db_conn *c, enum rc rc, struct err *err) {
	if (!rc)
		return db_write_commit(c, err);
	db_write_abort(c);
	return rc;
}

bool record_seen(struct entry *e) {
	struct seen s = {.entry = e};
	struct err err;
	struct db_conn *c;
	if (is_fresh(e->recorded_ms))
		return false;
	enum rc rc = db_write_begin(e->ds->control, &c, &err);
	if (!rc) {
		rc = look_up(&s, c, &err);
		rc = commit(c, rc ? rc : note(&s, c, &err), &err);
	}
	if (rc)
		log_err(LOG_LEVEL_WARNING, "drives", "noting a drive", &err);
	else
		e->recorded_ms = clock_wall_ms();
	return s.is_new;
}

/* --- events --- */

static const enum event_type event_types[] = {
	[CHANGE_ADDED] = EVENT_DRIVE_ADDED,
	[CHANGE_RETURNED] = EVENT_DRIVE_ADDED,
	[CHANGE_REMOVED] = EVENT_DRIVE_REMOVED,
	[CHANGE_STATE] = EVENT_DRIVE_STATE,
};

struct change_text {
	char object[EVENT_OBJECT_SIZE];
	struct buf data;
};

static void render(struct change_text *out, const struct drive *d, const struct todo *t) {
	struct jsonw w;
	snprintf(out->object, sizeof(out->object), "/drives/%s", d->id);
	buf_init(&out->data, 1024);
	jsonw_init(&w, &out->data);
	jsonw_object(&w, NULL);
	jsonw_str(&w, "drive", d->id);
	jsonw_str(&w, "name", d->name);
	jsonw_str(&w, "model", d->model);
	jsonw_str(&w, "serial", d->serial);
	if (t->change == CHANGE_STATE) {
		jsonw_str(&w, "from", drive_state_name(t->from_state));
		jsonw_str(&w, "to", drive_state_name(t->to_state));
		jsonw_str(&w, "reason", t->reply.err.msg);
	}
	jsonw_object_end(&w);
}

void record_change(struct entry *e, const struct todo *t) {
	const struct drive d = copy_of(e);
	struct change_text text;
	render(&text, &d, t);
	events_record(e->ds->events, event_types[t->change], &actor_system, text.object,
		buf_str(&text.data));
	buf_release(&text.data);
}

static enum rc add_event(
	struct drives *ds, const struct drive *d, struct db_conn *c, struct err *err) {
	static const struct todo added = {.change = CHANGE_ADDED};
	struct change_text text;
	render(&text, d, &added);
	const enum rc rc = events_add(ds->events, c, EVENT_DRIVE_ADDED, &actor_system, text.object,
		buf_str(&text.data), err);
	buf_release(&text.data);
	return rc;
}

/* --- the first scan --- */

struct found {
	size_t count;
	struct seen all[DRIVES_MAX];
};

static void collect(struct drives *ds, struct found *out) {
	pthread_rwlock_rdlock(&ds->lock);
	for (out->count = 0; out->count < ds->count; out->count++)
		out->all[out->count].entry = ds->entries[out->count];
	pthread_rwlock_unlock(&ds->lock);
}

/* Looks everything up first: labels are known even when nothing can be written. */
static enum rc note_all(struct drives *ds, struct found *f, struct db_conn *c, struct err *err) {
	enum rc rc = RC_OK;
	for (size_t i = 0; i < f->count && !rc; i++)
		rc = look_up(&f->all[i], c, err);
	for (size_t i = 0; i < f->count && !rc; i++) {
		struct entry *e = f->all[i].entry;
		rc = note(&f->all[i], c, err);
		const bool held = !arrive_at_start(e);
		e->unknown = f->all[i].is_new && held;
		if (!rc && f->all[i].is_new && !held)
			rc = add_event(ds, &f->all[i].drive, c, err);
	}
	return commit(c, rc, err);
}

void record_found(struct drives *ds) {
	struct err err;
	struct db_conn *c;
	auto_free struct found *f = calloc(1, sizeof(*f));
	enum rc rc = f ? db_write_begin(ds->control, &c, &err)
		       : err_set(&err, RC_NOMEM, "out of memory");
	if (!rc) {
		collect(ds, f);
		rc = note_all(ds, f, c, &err);
	}
	if (rc) {
		/* Each drive is noted by itself then, once it was identified. */
		log_err(LOG_LEVEL_WARNING, "drives", "noting the drives found", &err);
		return;
	}
	for (size_t i = 0; i < f->count; i++)
		f->all[i].entry->recorded_ms = clock_wall_ms();
	events_publish(ds->events);
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
		{QUANTITY_POWER, drive_health_power_mw(h)},
		{QUANTITY_ENERGY_COUNTER, h->lifetime_energy_wh}, /* of kWh */
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

/* The store may have failed when the drive came, or have forgotten it. */
static enum rc get_or_note(
	struct db_conn *c, const struct drive *d, struct drive_record *r, struct err *err) {
	const struct seen s = {.drive = *d};
	enum rc rc = db_drive_get(c, d->id, r, err);
	if (rc == RC_NOT_FOUND)
		rc = note(&s, c, err);
	return rc ? rc : db_drive_get(c, d->id, r, err);
}

static enum rc write_labels(struct db_conn *c, const struct actor *who, const struct drive *d,
	const char *labels, uint32_t if_version, struct drive_record *r, struct err *err) {
	char object[EVENT_OBJECT_SIZE];
	snprintf(object, sizeof(object), "/drives/%s", d->id);
	enum rc rc = get_or_note(c, d, r, err);
	if (rc)
		return rc;
	if (if_version && if_version != r->config_version)
		return err_set(err, RC_PRECONDITION, "the drive's labels have changed meanwhile");
	if (strcmp(r->labels, labels) == 0)
		return RC_OK;
	str_copy(r->labels, sizeof(r->labels), labels);
	r->config_version++;
	rc = db_drive_set_labels(c, d->id, labels, r->config_version, err);
	return rc ? rc
		  : events_audit(c, who, "drive.set_labels", object, rc_name(RC_OK), NULL, err);
}

static void publish_labels(struct drives *ds, const struct drive_record *r) {
	pthread_rwlock_wrlock(&ds->lock);
	struct entry *e = registry_find(ds, r->id);
	/* A later change may have been faster here. */
	const bool newer = e && e->d.config_version < r->config_version;
	if (newer) {
		memcpy(e->labels, r->labels, sizeof(e->labels));
		e->d.config_version = r->config_version;
		registry_touch(e);
	}
	const bool mine = newer && drain_tell(e, DRIVE_NEWS_LABELS);
	pthread_rwlock_unlock(&ds->lock);
	if (mine)
		drain_start(e);
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
		rc = db_write_begin_for(ds->control, who, &c, err);
	if (rc)
		return rc;
	rc = write_labels(c, who, &d, labels, if_version, &r, err);
	if (rc) {
		db_write_abort(c);
		return rc;
	}
	rc = db_write_commit(c, err);
	if (!rc && !who->dry_run)
		publish_labels(ds, &r);
	return rc;
}
