/* The catalogue of series: in memory and in the store, as long as they are used. */
#include <string.h>

#include "base/clock.h"
#include "base/parse.h"
#include "core/energy/impl.h"
#include "db/samples.h"

/* Padding must not take part in the hash. */
static struct series_key clean(const struct series_key *key) {
	struct series_key k;
	memset(&k, 0, sizeof(k));
	str_copy(k.host_id, sizeof(k.host_id), key->host_id);
	str_copy(k.object, sizeof(k.object), key->object);
	k.quantity = key->quantity;
	k.quality = key->quality;
	return k;
}

/* --- under the lock --- */

static struct series_entry *find_key(struct catalogue *c, const struct series_key *key) {
	struct series_entry *s;
	struct series_key k = clean(key);
	HASH_FIND(hh, c->by_key, &k, sizeof(k), s);
	return s;
}

/* Index of the first series whose id is over `after`. */
static size_t first_after(const struct catalogue *c, int64_t after) {
	size_t low = 0, high = c->count;
	while (low < high) {
		size_t mid = (low + high) / 2;
		if (c->by_id[mid]->series.id <= after)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static struct series_entry *find_id(const struct catalogue *c, int64_t id) {
	size_t i = first_after(c, id - 1);
	return i < c->count && c->by_id[i]->series.id == id ? c->by_id[i] : NULL;
}

static bool add(struct catalogue *c, const struct series *s) {
	if (c->count == c->max)
		return false;
	struct series_entry *entry = calloc(1, sizeof(*entry));
	if (!entry)
		return false;
	entry->series = *s;
	entry->series.key = clean(&s->key);
	HASH_ADD(hh, c->by_key, series.key, sizeof(entry->series.key), entry);
	size_t at = first_after(c, s->id);
	memmove(c->by_id + at + 1, c->by_id + at, (c->count - at) * sizeof(c->by_id[0]));
	c->by_id[at] = entry;
	c->count++;
	return true;
}

/* --- life --- */

static bool load_one(void *arg, const struct series *s) {
	return add(arg, s);
}

enum rc catalogue_load(struct energy *e, struct err *err) {
	struct catalogue *c = &e->catalogue;
	c->max = e->config.max_series;
	c->by_id = calloc(c->max, sizeof(c->by_id[0]));
	if (!c->by_id)
		return err_set(err, RC_NOMEM, "no memory for %zu series", c->max);
	struct db_conn *conn;
	enum rc rc = db_read_begin(e->db, &conn, err);
	if (rc)
		return rc;
	rc = db_series_list(conn, NULL, NULL, -1, 0, (int)c->max, load_one, c, err);
	db_read_end(conn);
	return rc;
}

void catalogue_release(struct catalogue *c) {
	struct series_entry *s, *tmp;
	HASH_ITER (hh, c->by_key, s, tmp) {
		HASH_DEL(c->by_key, s);
		free(s);
	}
	free(c->by_id);
	pthread_mutex_destroy(&c->lock);
}

void catalogue_note(struct catalogue *c, const struct sample *s, size_t n) {
	pthread_mutex_lock(&c->lock);
	for (size_t i = 0; i < n; i++) {
		struct series_entry *entry = find_id(c, s[i].series_id);
		if (!entry)
			continue;
		struct series *series = &entry->series;
		if (series->last_ms == NONE || s[i].at_ms > series->last_ms)
			series->last_ms = s[i].at_ms;
		if (series->first_ms == NONE || s[i].at_ms < series->first_ms)
			series->first_ms = s[i].at_ms;
	}
	pthread_mutex_unlock(&c->lock);
}

/* --- retention --- */

/* Under the lock. */
static int64_t used_ms(const struct series_entry *s) {
	if (s->asked)
		return clock_wall_ms();
	return s->series.last_ms > s->series.used_ms ? s->series.last_ms : s->series.used_ms;
}

size_t catalogue_stale(struct catalogue *c, int64_t age_ms, struct series *out, size_t max) {
	size_t n = 0;
	pthread_mutex_lock(&c->lock);
	for (size_t i = 0; i < c->count && n < max; i++) {
		const struct series_entry *s = c->by_id[i];
		if (used_ms(s) - s->series.used_ms < age_ms)
			continue;
		out[n] = s->series;
		out[n++].used_ms = used_ms(s);
	}
	pthread_mutex_unlock(&c->lock);
	return n;
}

void catalogue_touched(struct catalogue *c, const struct series *s, size_t n) {
	pthread_mutex_lock(&c->lock);
	for (size_t i = 0; i < n; i++) {
		struct series_entry *entry = find_id(c, s[i].id);
		if (entry)
			entry->series.used_ms = s[i].used_ms;
	}
	pthread_mutex_unlock(&c->lock);
}

size_t catalogue_prune(struct catalogue *c, int64_t before_ms, int64_t *ids, size_t max) {
	size_t kept = 0, n = 0;
	pthread_mutex_lock(&c->lock);
	for (size_t i = 0; c->by_key && i < c->count; i++) {
		struct series_entry *s = c->by_id[i];
		if (n == max || used_ms(s) >= before_ms) {
			c->by_id[kept++] = s;
			continue;
		}
		ids[n++] = s->series.id;
		HASH_DEL(c->by_key, s);
		free(s);
	}
	c->count = kept;
	pthread_mutex_unlock(&c->lock);
	return n;
}

/* --- making --- */

static enum rc put(struct energy *e, struct series *s, struct err *err) {
	struct db_conn *c;
	enum rc rc = db_write_begin(e->db, &c, err);
	if (rc)
		return rc;
	rc = db_series_put(c, s, err);
	if (!rc)
		return db_write_commit(c, err);
	db_write_abort(c);
	return rc;
}

/* Another thread may have made the same series meanwhile. */
static bool add_once(struct catalogue *c, const struct series *s) {
	pthread_mutex_lock(&c->lock);
	bool there = find_key(c, &s->key) || add(c, s);
	if (there)
		find_key(c, &s->key)->asked = true;
	pthread_mutex_unlock(&c->lock);
	return there;
}

static bool look_up(struct catalogue *c, const struct series_key *key, int64_t *id, bool *full) {
	pthread_mutex_lock(&c->lock);
	struct series_entry *found = find_key(c, key);
	if (found) {
		*id = found->series.id;
		found->asked = true;
	}
	*full = c->count == c->max;
	pthread_mutex_unlock(&c->lock);
	return found;
}

enum rc energy_series(struct energy *e, const struct series_key *key, const char *source,
	int64_t *id, struct err *err) {
	bool full;
	if (look_up(&e->catalogue, key, id, &full))
		return RC_OK;
	if (full)
		return err_set(err, RC_FULL, "there are %u series already", e->config.max_series);
	struct series s = {
		.key = clean(key), .first_ms = NONE, .last_ms = NONE, .used_ms = clock_wall_ms()};
	str_copy(s.source, sizeof(s.source), source);
	enum rc rc = put(e, &s, err);
	if (rc)
		return rc;
	if (!add_once(&e->catalogue, &s))
		return err_set(err, RC_FULL, "there are %u series already", e->config.max_series);
	*id = s.id;
	return RC_OK;
}

/* --- asking --- */

static bool stop_at_first(void *arg, const struct sample *s, const char *boot_id unused_arg) {
	*(int64_t *)arg = s->at_ms;
	return false;
}

static bool note_last(void *arg, const struct sample *s, const char *boot_id unused_arg) {
	*(int64_t *)arg = s->at_ms;
	return true;
}

/* The ends of what is stored. The newest is looked for in ever wider spans before now. */
static enum rc stored_range(
	struct energy *e, int64_t id, int64_t *first_ms, int64_t *last_ms, struct err *err) {
	static const int64_t spans_ms[] = {3600000, 86400000, INT64_C(31) * 86400000};
	struct db_conn *c;
	int64_t to_ms = clock_wall_ms() + 86400000;
	enum rc rc = db_read_begin(e->db, &c, err);
	if (rc)
		return rc;
	rc = db_tick_each(c, id, INT64_MIN, INT64_MAX, stop_at_first, first_ms, err);
	for (size_t i = 0; !rc && *last_ms == NONE && *first_ms != NONE; i++) {
		bool all = i == array_len(spans_ms);
		rc = db_tick_each(c, id, all ? *first_ms : to_ms - 86400000 - spans_ms[i], to_ms,
			note_last, last_ms, err);
		if (all)
			break;
	}
	db_read_end(c);
	return rc;
}

/* Fills the range of a copy, and of the entry for the next time. A store that fails costs the range
 * alone. */
static void complete(struct energy *e, struct series *s) {
	struct catalogue *c = &e->catalogue;
	struct err ignored;
	int64_t first_ms = NONE, last_ms = s->last_ms;
	if (stored_range(e, s->id, &first_ms, &last_ms, &ignored))
		return;
	pthread_mutex_lock(&c->lock);
	struct series_entry *entry = find_id(c, s->id);
	if (entry) {
		if (first_ms != NONE)
			entry->series.first_ms = first_ms;
		if (entry->series.last_ms == NONE)
			entry->series.last_ms = last_ms;
		entry->first_known = true;
		*s = entry->series;
	}
	pthread_mutex_unlock(&c->lock);
}

/* Copies out, with its range. */
static enum rc give(struct energy *e, const struct series_entry *found, bool known,
	struct series *out, struct err *err) {
	if (!found)
		return err_set(err, RC_NOT_FOUND, "no such series");
	if (!known)
		complete(e, out);
	return RC_OK;
}

enum rc energy_get(struct energy *e, int64_t series_id, struct series *out, struct err *err) {
	bool known = false;
	pthread_mutex_lock(&e->catalogue.lock);
	const struct series_entry *found = find_id(&e->catalogue, series_id);
	if (found) {
		*out = found->series;
		known = found->first_known;
	}
	pthread_mutex_unlock(&e->catalogue.lock);
	return give(e, found, known, out, err);
}

enum rc energy_find(struct energy *e, const char *host_id, const char *object, enum quantity q,
	struct series *out, struct err *err) {
	struct series_key key = {.quantity = (uint8_t)q};
	const struct series_entry *found = NULL;
	bool known = false;
	str_copy(key.host_id, sizeof(key.host_id), host_id);
	str_copy(key.object, sizeof(key.object), object);
	pthread_mutex_lock(&e->catalogue.lock);
	/* The qualities are listed from the best down. */
	for (uint8_t quality = 0; quality < QUALITY_COUNT_ && !found; quality++) {
		key.quality = quality;
		found = find_key(&e->catalogue, &key);
	}
	if (found) {
		*out = found->series;
		known = found->first_known;
	}
	pthread_mutex_unlock(&e->catalogue.lock);
	return give(e, found, known, out, err);
}

static bool matches(const struct series *s, const char *host_id, const char *object, int quantity) {
	return (!host_id || strcmp(s->key.host_id, host_id) == 0) &&
		(!object || strcmp(s->key.object, object) == 0) &&
		(quantity < 0 || s->key.quantity == quantity);
}

enum rc energy_list(struct energy *e, const char *host_id, const char *object, int quantity,
	int64_t after, int limit, bool (*visit)(void *arg, const struct series *s), void *arg,
	struct err *err unused_arg) {
	struct catalogue *c = &e->catalogue;
	pthread_mutex_lock(&c->lock);
	for (size_t i = first_after(c, after); i < c->count && limit > 0; i++) {
		const struct series *s = &c->by_id[i]->series;
		if (!matches(s, host_id, object, quantity))
			continue;
		limit--;
		if (!visit(arg, s))
			break;
	}
	pthread_mutex_unlock(&c->lock);
	return RC_OK;
}
