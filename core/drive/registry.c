#include "core/drive/registry.h"

#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/parse.h"
#include "base/thread.h"

/* --- life --- */

struct drives *drives_new(const struct drives_config *config, struct db *control,
	struct events *events, struct energy *energy, struct timers *timers, struct pool *jobs,
	struct err *err) {
	struct drives *ds = calloc(1, sizeof(*ds));
	if (!ds) {
		err_set(err, RC_NOMEM, "out of memory");
		return NULL;
	}
	ds->config = *config;
	str_copy(ds->host_id, sizeof(ds->host_id), config->host_id);
	ds->config.host_id = ds->host_id;
	ds->control = control;
	ds->events = events;
	ds->energy = energy;
	ds->timers = timers;
	ds->jobs = jobs;
	atomic_init(&ds->version, clock_first_version());
	pthread_rwlock_init(&ds->lock, NULL);
	pthread_mutex_init(&ds->progress_lock, NULL);
	cond_init(&ds->progress);
	return ds;
}

static void entry_free(struct entry *e) {
	if (!e)
		return;
	while (e->first_todo) {
		struct todo *t = e->first_todo;
		e->first_todo = t->next;
		todo_free(t);
	}
	free(e->detail);
	free(e);
}

void drives_free(struct drives *ds) {
	if (!ds)
		return;
	commands_free(&ds->waiting);
	commands_free(&ds->overdue);
	for (size_t i = 0; i < ds->count; i++)
		entry_free(ds->entries[i]);
	pthread_cond_destroy(&ds->progress);
	pthread_mutex_destroy(&ds->progress_lock);
	pthread_rwlock_destroy(&ds->lock);
	free(ds);
}

enum rc drives_add_source(struct drives *ds, const struct drive_source *source, struct err *err) {
	if (ds->source_count == MAX_SOURCES)
		return err_set(err, RC_FULL, "more than %d sources of drives", MAX_SOURCES);
	ds->sources[ds->source_count++] =
		(struct source){.ds = ds, .is = *source, .reason = "drives are being looked for"};
	return RC_OK;
}

enum rc drives_watch(struct drives *ds,
	void (*fn)(void *arg, const char *drive_id, enum drive_news news), void *arg,
	struct err *err) {
	if (ds->watcher_count == MAX_WATCHERS)
		return err_set(err, RC_FULL, "more than %d watchers of drives", MAX_WATCHERS);
	ds->watchers[ds->watcher_count++] = (struct watcher){fn, arg};
	return RC_OK;
}

/* --- waiting for progress --- */

void registry_progress(struct drives *ds) {
	pthread_mutex_lock(&ds->progress_lock);
	pthread_cond_broadcast(&ds->progress);
	pthread_mutex_unlock(&ds->progress_lock);
}

/* A waiter in drives_stop may free ds as soon as it sees the count, so that nothing follows. */
void registry_end_call(struct drives *ds) {
	pthread_mutex_lock(&ds->progress_lock);
	pthread_rwlock_wrlock(&ds->lock);
	ds->calling--;
	pthread_rwlock_unlock(&ds->lock);
	pthread_cond_broadcast(&ds->progress);
	pthread_mutex_unlock(&ds->progress_lock);
}

static bool holds(struct drives *ds, bool (*condition)(const struct drives *ds)) {
	pthread_rwlock_rdlock(&ds->lock);
	const bool yes = condition(ds);
	pthread_rwlock_unlock(&ds->lock);
	return yes;
}

static bool wait_until(
	struct drives *ds, bool (*condition)(const struct drives *ds), int64_t timeout_ms) {
	const struct timespec deadline = thread_deadline(timeout_ms);
	bool in_time = true, yes;
	pthread_mutex_lock(&ds->progress_lock);
	while (!(yes = holds(ds, condition)) && in_time)
		in_time = cond_wait_until(&ds->progress, &ds->progress_lock, &deadline);
	pthread_mutex_unlock(&ds->progress_lock);
	return yes;
}

static bool is_settled(const struct drives *ds) {
	for (size_t i = 0; i < ds->count; i++) {
		const struct entry *e = ds->entries[i];
		const bool settled = e->settled && e->d.state != DRIVE_ARRIVING;
		if (!settled && e->d.state != DRIVE_GONE)
			return false;
	}
	return scan_is_idle(ds);
}

static bool is_quiet(const struct drives *ds) {
	return ds->calling == 0 && !ds->working;
}

static bool is_drained(const struct drives *ds) {
	return ds->draining == 0;
}

#define FIRST_SCAN_MS 30000

enum rc drives_start(struct drives *ds, struct err *err) {
	scan_all(ds);
	if (!wait_until(ds, scan_is_idle, FIRST_SCAN_MS))
		log_warning("drives", "the first scan takes long, going on without it");
	record_found(ds);
	pthread_rwlock_wrlock(&ds->lock);
	ds->started = true;
	pthread_rwlock_unlock(&ds->lock);
	return work_start(ds, err);
}

bool drives_settled(struct drives *ds, int64_t timeout_ms) {
	return wait_until(ds, is_settled, timeout_ms);
}

void drives_stop(struct drives *ds) {
	pthread_rwlock_wrlock(&ds->lock);
	ds->stopping = true;
	pthread_rwlock_unlock(&ds->lock);
	work_stop(ds);
	wait_until(ds, is_quiet, -1);
}

void drives_drain(struct drives *ds) {
	drain_finish(ds);
	wait_until(ds, is_drained, -1);
}

/* --- the sorted table; under lock --- */

/* Index of the first entry whose id is not below id. */
static size_t lower_bound(const struct drives *ds, const char *id) {
	size_t low = 0, high = ds->count;
	while (low < high) {
		const size_t middle = (low + high) / 2;
		if (strcmp(ds->entries[middle]->d.id, id) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

struct entry *registry_find(struct drives *ds, const char *id) {
	const size_t at = lower_bound(ds, id);
	struct entry *e = at < ds->count ? ds->entries[at] : NULL;
	return e && strcmp(e->d.id, id) == 0 ? e : NULL;
}

static bool is_dispensable(const struct entry *e) {
	return e->d.state == DRIVE_GONE && e->commands == 0 && !e->draining && !e->first_todo;
}

/* The one that has been away longest makes room. */
static bool make_room(struct drives *ds) {
	size_t oldest = ds->count;
	for (size_t i = 0; i < ds->count; i++) {
		const struct entry *e = ds->entries[i];
		if (is_dispensable(e) &&
			(oldest == ds->count || e->d.seen_ms < ds->entries[oldest]->d.seen_ms))
			oldest = i;
	}
	if (oldest == ds->count)
		return false;
	entry_free(ds->entries[oldest]);
	ds->count--;
	memmove(&ds->entries[oldest], &ds->entries[oldest + 1],
		(ds->count - oldest) * sizeof(ds->entries[0]));
	return true;
}

static struct entry *entry_new(struct drives *ds, const char *id) {
	struct entry *e = calloc(1, sizeof(*e));
	if (!e)
		return NULL;
	e->ds = ds;
	str_copy(e->d.id, sizeof(e->d.id), id);
	e->d.state = DRIVE_GONE;
	e->d.power_state = e->d.effective_state = -1;
	e->d.in_sync = true;
	e->d.temperature_mc = e->d.measured_mw = INT32_MIN;
	e->d.config_version = 1;
	e->d.observed_version = clock_first_version();
	e->observed = (struct drive_observed){.at_ms = NONE, .power_state = -1, .limit_mw = NONE};
	e->health_due_ms = e->identify_due_ms = INT64_MAX;
	return e;
}

struct entry *registry_insert(struct drives *ds, const char *id) {
	if (ds->count == DRIVES_MAX && !make_room(ds)) {
		ds->cut = true;
		return NULL;
	}
	struct entry *e = entry_new(ds, id);
	if (!e)
		return NULL;
	const size_t at = lower_bound(ds, id);
	memmove(&ds->entries[at + 1], &ds->entries[at], (ds->count - at) * sizeof(ds->entries[0]));
	ds->entries[at] = e;
	ds->count++;
	return e;
}

void registry_touch(struct entry *e) {
	e->d.observed_version++;
	atomic_fetch_add(&e->ds->version, 1);
}

/* --- reading --- */

uint64_t drives_version(struct drives *ds) {
	return atomic_load(&ds->version);
}

size_t drives_count(struct drives *ds) {
	pthread_rwlock_rdlock(&ds->lock);
	const size_t count = ds->count;
	pthread_rwlock_unlock(&ds->lock);
	return count;
}

static size_t append(char *out, size_t size, size_t at, const char *text) {
	if (!text[0] || at >= size)
		return at;
	if (at)
		at += str_copy(out + at, size - at, "; ") ? 2 : size - at;
	if (at < size)
		str_copy(out + at, size - at, text);
	return strlen(out);
}

void drives_reason(struct drives *ds, char *out, size_t size) {
	size_t at = 0;
	out[0] = '\0';
	pthread_rwlock_rdlock(&ds->lock);
	if (ds->source_count == 0)
		at = append(out, size, at, "nothing here can look for drives");
	for (size_t i = 0; i < ds->source_count; i++)
		at = append(out, size, at, ds->sources[i].reason);
	if (ds->cut)
		append(out, size, at, "there are more drives than can be managed");
	pthread_rwlock_unlock(&ds->lock);
}

void drives_each(struct drives *ds, const char *after,
	bool (*visit)(void *arg, const struct drive *d, const char *labels), void *arg) {
	pthread_rwlock_rdlock(&ds->lock);
	size_t at = lower_bound(ds, after);
	if (at < ds->count && strcmp(ds->entries[at]->d.id, after) == 0)
		at++;
	for (; at < ds->count; at++) {
		const struct entry *e = ds->entries[at];
		if (!visit(arg, &e->d, e->labels))
			break;
	}
	pthread_rwlock_unlock(&ds->lock);
}

/* The entry with the read lock held, or NULL with err filled and no lock. */
static struct entry *find_locked(struct drives *ds, const char *id, struct err *err) {
	pthread_rwlock_rdlock(&ds->lock);
	struct entry *e = registry_find(ds, id);
	if (!e) {
		pthread_rwlock_unlock(&ds->lock);
		err_set(err, RC_NOT_FOUND, "no such drive");
	}
	return e;
}

enum rc drives_get(struct drives *ds, const char *id, struct drive *out, char *labels,
	struct drive_detail *detail, struct err *err) {
	static const struct drive_detail unknown = {
		.warning_c = NONE, .critical_c = NONE, .tmt_min_c = NONE, .tmt_max_c = NONE};
	const struct entry *e = find_locked(ds, id, err);
	if (!e)
		return RC_NOT_FOUND;
	*out = e->d;
	if (labels)
		memcpy(labels, e->labels, sizeof(e->labels));
	if (detail && e->detail)
		memcpy(detail, e->detail, drive_detail_bytes(e->detail));
	else if (detail)
		*detail = unknown;
	pthread_rwlock_unlock(&ds->lock);
	return RC_OK;
}

enum rc drives_table(struct drives *ds, const char *id, struct power_table *out, struct err *err) {
	const struct entry *e = find_locked(ds, id, err);
	if (!e)
		return RC_NOT_FOUND;
	const bool known = e->detail != NULL;
	if (known)
		*out = e->detail->power;
	pthread_rwlock_unlock(&ds->lock);
	return known ? RC_OK : err_set(err, RC_UNAVAILABLE, "the drive has not been identified");
}

enum rc drives_health(
	struct drives *ds, const char *id, struct drive_health *out, struct err *err) {
	const struct entry *e = find_locked(ds, id, err);
	if (!e)
		return RC_NOT_FOUND;
	const bool known = e->has_health;
	if (known)
		*out = e->health;
	pthread_rwlock_unlock(&ds->lock);
	return known ? RC_OK : err_set(err, RC_UNAVAILABLE, "there was no SMART reading yet");
}

enum rc drives_observed(
	struct drives *ds, const char *id, struct drive_observed *out, struct err *err) {
	const struct entry *e = find_locked(ds, id, err);
	if (!e)
		return RC_NOT_FOUND;
	*out = e->observed;
	pthread_rwlock_unlock(&ds->lock);
	return RC_OK;
}

void drives_set_effective(struct drives *ds, const char *id, int effective_state, bool in_sync) {
	pthread_rwlock_wrlock(&ds->lock);
	struct entry *e = registry_find(ds, id);
	if (e && (e->d.effective_state != effective_state || e->d.in_sync != in_sync)) {
		e->d.effective_state = (int8_t)effective_state;
		e->d.in_sync = in_sync;
		registry_touch(e);
	}
	pthread_rwlock_unlock(&ds->lock);
}
