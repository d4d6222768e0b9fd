#include <string.h>

#include "base/clock.h"
#include "base/id.h"
#include "base/log.h"
#include "base/parse.h"
#include "core/drive/registry.h"

/* --- identity --- */

/* What makes an id: the address helps only where two drives claim to be the same one, or one is
 * reached twice, and the kernel's name, which changes, where that does not help either. */
static const size_t id_parts[] = {4, 5, 6};

static void make_id(const struct drive_found *f, size_t count, char id[DRIVE_ID_SIZE]) {
	char cntlid[8] = "";
	if (f->cntlid_matters)
		snprintf(cntlid, sizeof(cntlid), "%u", f->cntlid);
	const char *parts[] = {f->subsystem_nqn, f->drive.serial, f->drive.model, cntlid,
		f->drive.address, f->drive.name};
	id_hash(parts, count, id);
}

static bool is_other(const struct source *s, const struct entry *e, const struct drive_found *f) {
	if (e->source != s)
		return e->d.state != DRIVE_GONE;
	return e->scan == s->scan && strcmp(e->d.name, f->drive.name) != 0;
}

static struct entry *find_or_insert(struct source *s, const struct drive_found *f) {
	char id[DRIVE_ID_SIZE];
	struct entry *e;
	size_t i = 0;
	do {
		make_id(f, id_parts[i], id);
		e = registry_find(s->ds, id);
	} while (e && is_other(s, e, f) && ++i < array_len(id_parts));
	if (!e)
		e = registry_insert(s->ds, id);
	if (e) {
		e->source = s;
		str_copy(e->subsystem_nqn, sizeof(e->subsystem_nqn), f->subsystem_nqn);
	}
	return e;
}

/* --- found --- */

static void copy_identity(struct drive *d, const struct drive *found) {
	str_copy(d->name, sizeof(d->name), found->name);
	str_copy(d->model, sizeof(d->model), found->model);
	str_copy(d->serial, sizeof(d->serial), found->serial);
	str_copy(d->firmware, sizeof(d->firmware), found->firmware);
	str_copy(d->transport, sizeof(d->transport), found->transport);
	str_copy(d->address, sizeof(d->address), found->address);
	str_copy(d->slot, sizeof(d->slot), found->slot);
	d->kind = found->kind;
	d->numa_node = found->numa_node;
	d->capacity_bytes = found->capacity_bytes;
}

static bool is_same_place(const struct drive *a, const struct drive *b) {
	return strcmp(a->address, b->address) == 0 && strcmp(a->slot, b->slot) == 0;
}

static bool is_same(const struct drive *a, const struct drive *b) {
	return strcmp(a->name, b->name) == 0 && strcmp(a->model, b->model) == 0 &&
		strcmp(a->serial, b->serial) == 0 && strcmp(a->firmware, b->firmware) == 0 &&
		strcmp(a->transport, b->transport) == 0 && is_same_place(a, b) &&
		a->kind == b->kind && a->state == b->state && a->numa_node == b->numa_node &&
		a->capacity_bytes == b->capacity_bytes;
}

/* A drive that was away, was reset, or changed its name, place or firmware is asked again who it
 * is. */
static bool must_identify(const struct entry *e, const struct drive_found *f) {
	return !e->detail || e->d.state == DRIVE_GONE || e->d.state == DRIVE_FAILED ||
		e->found_state != DRIVE_LIVE || strcmp(e->d.name, f->drive.name) != 0 ||
		!is_same_place(&e->d, &f->drive) || strcmp(e->d.firmware, f->drive.firmware) != 0;
}

static void note_change(struct entry *e, enum drive_change change, uint8_t to, unsigned news) {
	struct todo *t = calloc(1, sizeof(*t));
	if (t) {
		t->change = change;
		t->from_state = e->d.state;
		t->to_state = to;
		t->news = news;
		drain_add(e, t);
	}
	e->d.state = to;
}

/* What sysfs says counts until the drive itself answers. */
static void take_found_state(struct entry *e, uint8_t found) {
	if (e->d.state == DRIVE_GONE)
		e->d.state = found == DRIVE_LIVE ? DRIVE_ARRIVING : found;
	else if (found != DRIVE_LIVE && found != e->d.state)
		note_change(e, CHANGE_STATE, found, 1u << DRIVE_NEWS_STATE);
	e->found_state = found;
}

static void refresh(struct entry *e, const struct drive_found *f) {
	const struct drive before = e->d;
	const bool live = f->drive.state == DRIVE_LIVE;
	const bool anew = must_identify(e, f);
	/* One that could not be asked then is asked again. */
	const bool owes = e->anew && !e->identifying && e->commands == 0;
	e->anew = e->anew || anew;
	e->want_identify = live && (e->want_identify || anew || owes);
	if (!live || e->d.state == DRIVE_GONE)
		e->settled = !live;
	copy_identity(&e->d, &f->drive);
	take_found_state(e, f->drive.state);
	if (!is_same(&before, &e->d))
		registry_touch(e);
}

static void on_found(void *arg, const struct drive_found *f) {
	struct source *s = arg;
	struct drives *ds = s->ds;
	pthread_rwlock_wrlock(&ds->lock);
	struct entry *e = find_or_insert(s, f);
	if (e) {
		refresh(e, f);
		e->scan = s->scan;
	}
	pthread_rwlock_unlock(&ds->lock);
}

/* --- done --- */

static void leave(struct entry *e) {
	/* Nobody has heard of one that was still arriving. */
	const enum drive_change change = e->arrival ? CHANGE_NONE : CHANGE_REMOVED;
	note_change(e, change, DRIVE_GONE, 1u << DRIVE_NEWS_GONE);
	e->arriving = false;
	e->arrival = CHANGE_NONE;
	e->d.power_state = -1;
	e->observed.power_state = -1;
	e->observed.limit_mw = NONE;
	e->d.temperature_mc = e->d.measured_mw = INT32_MIN;
	e->has_health = false;
	e->d.health = DRIVE_HEALTH_UNKNOWN;
	e->want_identify = false;
	e->announced = false;
	e->returned = true;
	e->health_due_ms = e->identify_due_ms = INT64_MAX;
	registry_touch(e);
}

/* Drives that nobody can reach any more, though they may still be there. */
static void fail(struct entry *e, const char *reason) {
	if (e->d.state == DRIVE_FAILED)
		return;
	note_change(e, CHANGE_STATE, DRIVE_FAILED, 1u << DRIVE_NEWS_STATE);
	e->observed.at_ms = clock_wall_ms();
	err_set(&e->observed.last, RC_UNAVAILABLE, "%s", reason);
	registry_touch(e);
}

static void take_outcome(struct source *s, enum rc rc) {
	struct drives *ds = s->ds;
	for (size_t i = 0; i < ds->count; i++) {
		struct entry *e = ds->entries[i];
		if (e->source != s || e->d.state == DRIVE_GONE)
			continue;
		if (rc == RC_UNAVAILABLE)
			fail(e, s->reason);
		else if (rc == RC_OK && e->scan != s->scan)
			leave(e);
	}
}

/* Where several are, those of a subsystem stand side by side. */
static int by_serial(const void *a, const void *b) {
	const struct entry *const *x = a, *const *y = b;
	const int order = strcmp((*x)->d.serial, (*y)->d.serial);
	return order ? order : strcmp((*x)->subsystem_nqn, (*y)->subsystem_nqn);
}

static void mark_unique(struct entry *e, bool unique) {
	if (e->d.serial_unique == unique)
		return;
	e->d.serial_unique = unique;
	registry_touch(e);
}

/* Several controllers of one subsystem are one device. */
static bool is_one_device(struct entry *const *of, size_t n) {
	const char *nqn = of[0]->subsystem_nqn;
	return n == 1 || (nqn[0] && strcmp(nqn, of[n - 1]->subsystem_nqn) == 0);
}

static void mark_serials(struct drives *ds) {
	struct entry *sorted[DRIVES_MAX] = {0};
	size_t n = 0, same;
	for (size_t i = 0; i < ds->count; i++) {
		if (ds->entries[i]->d.state != DRIVE_GONE)
			sorted[n++] = ds->entries[i];
	}
	qsort(sorted, n, sizeof(sorted[0]), by_serial);
	for (size_t i = 0; i < n; i += same) {
		const char *serial = sorted[i]->d.serial;
		for (same = 1; i + same < n; same++)
			if (strcmp(sorted[i + same]->d.serial, serial) != 0)
				break;
		for (size_t j = i; j < i + same; j++)
			mark_unique(sorted[j], serial[0] && is_one_device(&sorted[i], same));
	}
}

static void scan(struct source *s);

static void on_done(void *arg, enum rc rc, const char *reason) {
	struct source *s = arg;
	struct drives *ds = s->ds;
	pthread_rwlock_wrlock(&ds->lock);
	str_copy(s->reason, sizeof(s->reason), reason ? reason : "");
	if (rc && !s->reason[0])
		str_copy(s->reason, sizeof(s->reason), "looking for drives failed");
	take_outcome(s, rc);
	mark_serials(ds);
	s->scanning = false;
	const bool again = s->again && !ds->stopping;
	s->again = false;
	pthread_rwlock_unlock(&ds->lock);
	registry_progress(ds);
	if (again)
		scan(s);
	work_kick(ds);
}

/* --- scanning --- */

static bool begin(struct source *s) {
	struct drives *ds = s->ds;
	pthread_rwlock_wrlock(&ds->lock);
	const bool go = !s->scanning && !ds->stopping;
	s->again = s->scanning;
	if (go) {
		s->scanning = true;
		s->scan++;
		ds->calling++;
	}
	pthread_rwlock_unlock(&ds->lock);
	return go;
}

static void scan(struct source *s) {
	struct err err;
	if (!begin(s))
		return;
	const enum rc rc = s->is.scan(s->is.self, on_found, on_done, s, &err);
	if (rc)
		on_done(s, rc, err.msg);
	registry_end_call(s->ds);
}

void scan_all(struct drives *ds) {
	for (size_t i = 0; i < ds->source_count; i++)
		scan(&ds->sources[i]);
}

static bool is_meant(const struct entry *e, const char *name, bool reset) {
	return e->d.state != DRIVE_GONE && (name[0] ? strcmp(e->d.name, name) == 0 : reset);
}

void drives_hint(struct drives *ds, const char *name, bool reset) {
	pthread_rwlock_wrlock(&ds->lock);
	for (size_t i = 0; i < ds->count; i++) {
		struct entry *e = ds->entries[i];
		if (!is_meant(e, name, reset))
			continue;
		e->want_identify = true;
		e->anew = e->anew || reset;
	}
	pthread_rwlock_unlock(&ds->lock);
	drives_rescan(ds);
	work_kick(ds);
}

bool scan_is_idle(const struct drives *ds) {
	for (size_t i = 0; i < ds->source_count; i++) {
		if (ds->sources[i].scanning)
			return false;
	}
	return true;
}
