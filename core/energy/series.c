/* The catalogue of series: in memory and in the store, as long as they are used. */
#include <string.h>

#include "base/clock.h"
#include "base/parse.h"
#include "core/energy/impl.h"
#include "db/samples.h"

#define UJ_PER_WH 3.6e9

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

/* --- what comes in --- */

int catalogue_quantity(struct catalogue *c, int64_t id) {
	pthread_mutex_lock(&c->lock);
	const struct series_entry *found = find_id(c, id);
	int quantity = found ? found->series.key.quantity : -1;
	pthread_mutex_unlock(&c->lock);
	return quantity;
}

/* Of a counter each rise counts however long it took, up to a day: spread over it. */
struct joining energy_joining(const struct energy *e, int quantity) {
	if (quantity == QUANTITY_ENERGY_COUNTER)
		return (struct joining){.max_gap_ms = DAY_MS, .per_milli = UJ_PER_WH};
	return (struct joining){.max_gap_ms = e->config.max_gap_ms};
}

static bool open_for(struct energy *e, const struct series *s) {
	const struct joining how = energy_joining(e, s->key.quantity);
	pthread_mutex_lock(&e->intake.lock);
	bool opened = open_register(&e->intake.open, s->id, &how);
	pthread_mutex_unlock(&e->intake.lock);
	return opened;
}

/* What came since the start belongs to the range too. */
static void add_range(struct energy *e, struct series *s) {
	pthread_mutex_lock(&e->intake.lock);
	const struct open_series *open = open_find(&e->intake.open, s->id);
	if (open && open->first_ms != NONE) {
		if (s->first_ms == NONE || open->first_ms < s->first_ms)
			s->first_ms = open->first_ms;
		if (open->last_ms > s->last_ms) /* NONE is less than all */
			s->last_ms = open->last_ms;
	}
	pthread_mutex_unlock(&e->intake.lock);
}

/* --- life --- */

static bool load_one(void *arg, const struct series *s) {
	struct energy *e = arg;
	return add(&e->catalogue, s) && open_for(e, s);
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
	rc = db_series_list(conn, NULL, NULL, -1, 0, (int)c->max, load_one, e, err);
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

/* --- retention --- */

/* Under the lock. */
static int64_t used_ms(struct energy *e, const struct series_entry *entry) {
	struct series s = entry->series;
	if (entry->asked)
		return clock_wall_ms();
	add_range(e, &s);
	return s.last_ms > s.used_ms ? s.last_ms : s.used_ms;
}

size_t catalogue_stale(struct energy *e, int64_t age_ms, struct series *out, size_t max) {
	struct catalogue *c = &e->catalogue;
	size_t n = 0;
	pthread_mutex_lock(&c->lock);
	for (size_t i = 0; i < c->count && n < max; i++) {
		const struct series_entry *s = c->by_id[i];
		if (used_ms(e, s) - s->series.used_ms < age_ms)
			continue;
		out[n] = s->series;
		out[n++].used_ms = used_ms(e, s);
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

size_t catalogue_prune(struct energy *e, int64_t before_ms, int64_t *ids, size_t max) {
	struct catalogue *c = &e->catalogue;
	size_t kept = 0, n = 0;
	pthread_mutex_lock(&c->lock);
	for (size_t i = 0; c->by_key && i < c->count; i++) {
		struct series_entry *s = c->by_id[i];
		if (n == max || used_ms(e, s) >= before_ms) {
			c->by_id[kept++] = s;
			continue;
		}
		ids[n++] = s->series.id;
		HASH_DEL(c->by_key, s);
		free(s);
	}
	c->count = kept;
	pthread_mutex_unlock(&c->lock);
	pthread_mutex_lock(&e->intake.lock);
	for (size_t i = 0; i < n; i++)
		open_forget(&e->intake.open, ids[i]);
	pthread_mutex_unlock(&e->intake.lock);
	return n;
}

static void cut(int64_t *first_ms, int64_t *last_ms, int64_t before_ms) {
	if (*first_ms == NONE || *first_ms >= before_ms)
		return;
	*first_ms = *last_ms < before_ms ? NONE : before_ms;
	*last_ms = *last_ms < before_ms ? NONE : *last_ms;
}

void catalogue_cut(struct energy *e, bool of_energy, int64_t before_ms) {
	struct catalogue *c = &e->catalogue;
	pthread_mutex_lock(&c->lock);
	pthread_mutex_lock(&e->intake.lock);
	for (size_t i = 0; i < c->count; i++) {
		struct series *s = &c->by_id[i]->series;
		struct open_series *open = open_find(&e->intake.open, s->id);
		if (quantity_is_energy(s->key.quantity) != of_energy)
			continue;
		cut(&s->first_ms, &s->last_ms, before_ms);
		if (open)
			cut(&open->first_ms, &open->last_ms, before_ms);
	}
	pthread_mutex_unlock(&e->intake.lock);
	pthread_mutex_unlock(&c->lock);
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
	if (!add_once(&e->catalogue, &s) || !open_for(e, &s))
		return err_set(err, RC_FULL, "there are %u series already", e->config.max_series);
	*id = s.id;
	return RC_OK;
}

/* --- asking --- */

/* Copies out, with what came since the start. */
static enum rc give(
	struct energy *e, const struct series_entry *found, struct series *out, struct err *err) {
	if (!found)
		return err_set(err, RC_NOT_FOUND, "no such series");
	*out = found->series;
	add_range(e, out);
	return RC_OK;
}

enum rc energy_get(struct energy *e, int64_t series_id, struct series *out, struct err *err) {
	pthread_mutex_lock(&e->catalogue.lock);
	enum rc rc = give(e, find_id(&e->catalogue, series_id), out, err);
	pthread_mutex_unlock(&e->catalogue.lock);
	return rc;
}

enum rc energy_find(struct energy *e, const char *host_id, const char *object, enum quantity q,
	struct series *out, struct err *err) {
	struct series_key key = {.quantity = (uint8_t)q};
	const struct series_entry *found = NULL;
	str_copy(key.host_id, sizeof(key.host_id), host_id);
	str_copy(key.object, sizeof(key.object), object);
	pthread_mutex_lock(&e->catalogue.lock);
	/* The qualities are listed from the best down. */
	for (uint8_t quality = 0; quality < QUALITY_COUNT_ && !found; quality++) {
		key.quality = quality;
		found = find_key(&e->catalogue, &key);
	}
	enum rc rc = give(e, found, out, err);
	pthread_mutex_unlock(&e->catalogue.lock);
	return rc;
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
		struct series s = c->by_id[i]->series;
		if (!matches(&s, host_id, object, quantity))
			continue;
		limit--;
		add_range(e, &s);
		if (!visit(arg, &s))
			break;
	}
	pthread_mutex_unlock(&c->lock);
	return RC_OK;
}
