/* Hours that are over leave memory for chunks; what comes for them later is added to these. */
#include <string.h>

#include "base/log.h"
#include "core/energy/impl.h"
#include "db/history.h"
#include "db/samples.h"

#define BATCH 512       /* hours of a transaction */
#define MARGIN_MS 60000 /* beyond what a stretch may reach */
#define PRUNE_BATCH 512
#define PRUNE_BATCHES 8

/* An hour on its way into its chunk. */
struct item {
	int64_t series_id, begin_ms;
	struct joining how;
	size_t count; /* of the hour's samples, when it was copied */
	struct readings samples;
};

static void release_items(struct item *items, size_t n) {
	for (size_t i = 0; i < n; i++)
		readings_release(&items[i].samples);
	free(items);
}

/* --- which hours --- */

int64_t energy_grace_ms(const struct energy *e) {
	return 2 * e->config.max_gap_ms + MARGIN_MS;
}

bool span_is_past(const struct energy *e, int64_t newest_ms, int64_t begin_ms, int64_t length_ms) {
	return newest_ms >= begin_ms + length_ms + energy_grace_ms(e) ||
		newest_ms < begin_ms - energy_grace_ms(e) || begin_ms + length_ms <= e->forced_ms;
}

/* What came late may bring more of its kind: it waits a while too. */
static bool is_ripe(const struct energy *e, const struct open_hour *h) {
	int64_t newest_ms = e->intake.open.newest_ms;
	int64_t age_ms = newest_ms - h->opened_ms;
	return h->in_chunk < h->count && span_is_past(e, newest_ms, h->begin_ms, HOUR_MS) &&
		(age_ms >= energy_grace_ms(e) || age_ms <= -energy_grace_ms(e) ||
			h->begin_ms + HOUR_MS <= e->forced_ms);
}

/* Else what is there yet may say nothing of the hour before its first sample comes. */
static bool has_own(const struct open_hour *h) {
	int64_t count = 0;
	for (int i = 0; i < QUARTERS_OF_HOUR; i++)
		count += h->quarters[i].count;
	return count > 0;
}

static bool is_wanted(const struct energy *e, const struct open_hour *h) {
	return is_ripe(e, h) || (e->spilling && h->spilt < h->count && has_own(h));
}

static bool copy_hour(const struct open_series *s, const struct open_hour *h, struct item *item) {
	*item = (struct item){
		.series_id = s->id, .begin_ms = h->begin_ms, .how = s->how, .count = h->count};
	return open_read(h, &item->samples);
}

/* Under the lock. In the order of the series, as the chunks' pages lie. RC_NOMEM when one could not
 * be copied. */
static enum rc collect(struct energy *e, struct item *items, size_t *n) {
	const struct open_set *set = &e->intake.open;
	size_t i = open_after(set, e->scanned_id);
	for (size_t k = 0; k < set->count && *n < BATCH; k++, i++) {
		const struct open_series *s = set->all[i % set->count];
		for (struct open_hour *h = s->hours; h && *n < BATCH; h = h->next) {
			if (is_wanted(e, h) && !copy_hour(s, h, &items[(*n)++]))
				return RC_NOMEM;
		}
		if (*n < BATCH)
			e->scanned_id = s->id;
	}
	return RC_OK;
}

/* --- into chunks --- */

/* Adds what the chunk has already. One that is damaged is told and replaced. */
static enum rc add_stored(
	struct db_conn *c, struct item *item, struct buf *bytes, struct err *err) {
	struct chunk chunk;
	size_t count = item->samples.count;
	enum rc rc = db_chunk_get(c, item->begin_ms / HOUR_MS, item->series_id, bytes, err);
	if (rc || !bytes->len)
		return rc;
	if (chunk_open(&chunk, bytes->data, bytes->len, item->begin_ms, &item->how) &&
		chunk_read(&chunk, &item->samples))
		return RC_OK;
	item->samples.count = count;
	log_warning(
		"energy", "a damaged hour of series %lld was replaced", (long long)item->series_id);
	return RC_OK;
}

static void find_range(const struct item *item, int64_t *first_ms, int64_t *last_ms) {
	*first_ms = *last_ms = NONE;
	for (size_t i = 0; i < item->samples.count; i++) {
		int64_t at_ms = item->samples.all[i].at_ms;
		if (at_ms < item->begin_ms || at_ms >= item->begin_ms + HOUR_MS)
			continue;
		if (*first_ms == NONE || at_ms < *first_ms)
			*first_ms = at_ms;
		if (*last_ms == NONE || at_ms > *last_ms)
			*last_ms = at_ms;
	}
}

static enum rc put_chunk(struct db_conn *c, struct item *item, struct buf *bytes,
	struct aggregates *minutes, struct err *err) {
	int64_t first_ms, last_ms;
	if (item->samples.count > CHUNK_MAX_SAMPLES)
		item->samples.count = CHUNK_MAX_SAMPLES;
	chunk_minutes(&item->samples, item->begin_ms, &item->how, minutes);
	buf_reset(bytes);
	chunk_put(bytes, item->begin_ms, &item->how, &item->samples, minutes);
	enum rc rc = buf_status(bytes, err);
	if (!rc)
		rc = db_chunk_put(
			c, item->begin_ms / HOUR_MS, item->series_id, bytes->data, bytes->len, err);
	find_range(item, &first_ms, &last_ms);
	if (!rc && first_ms != NONE)
		rc = db_series_range(c, item->series_id, first_ms, last_ms, err);
	return rc;
}

static enum rc close_item(struct db_conn *c, struct item *item, struct buf *bytes,
	struct aggregates *minutes, struct err *err) {
	enum rc rc = add_stored(c, item, bytes, err);
	if (rc)
		return rc;
	if (!chunk_settle(&item->samples, item->begin_ms, &item->how))
		return err_set(err, RC_NOMEM, "no memory to close an hour");
	/* An hour may have been opened for samples that turned out not to matter to it. */
	return item->samples.count ? put_chunk(c, item, bytes, minutes, err) : RC_OK;
}

static enum rc close_items(struct energy *e, struct item *items, size_t n, struct err *err) {
	struct db_conn *c;
	struct buf bytes;
	struct aggregates minutes;
	if (!aggregates_init(&minutes, MINUTES_OF_HOUR))
		return err_set(err, RC_NOMEM, "no memory to close an hour");
	buf_init(&bytes, CHUNK_MAX_BYTES);
	enum rc rc = db_write_begin(e->db, &c, err);
	if (!rc) {
		for (size_t i = 0; i < n && !rc; i++)
			rc = close_item(c, &items[i], &bytes, &minutes, err);
		if (rc)
			db_write_abort(c);
		else
			rc = db_write_commit(c, err);
	}
	buf_release(&bytes);
	aggregates_release(&minutes);
	return rc;
}

static struct open_hour *find_open(struct energy *e, const struct item *item) {
	const struct open_series *s = open_find(&e->intake.open, item->series_id);
	struct open_hour *h = s ? s->hours : NULL;
	while (h && h->begin_ms != item->begin_ms)
		h = h->next;
	return h;
}

static void note_closed(struct energy *e, const struct item *items, size_t n) {
	pthread_mutex_lock(&e->intake.lock);
	for (size_t i = 0; i < n; i++) {
		struct open_hour *h = find_open(e, &items[i]);
		if (!h)
			continue;
		h->in_chunk = items[i].count;
		if (h->count == h->in_chunk)
			open_spill(&e->intake.open, h);
	}
	pthread_mutex_unlock(&e->intake.lock);
}

static enum rc close_some(struct energy *e, size_t *closed, struct err *err) {
	struct item *items = calloc(BATCH, sizeof(*items));
	size_t n = 0;
	if (!items)
		return err_set(err, RC_NOMEM, "no memory to close an hour");
	pthread_mutex_lock(&e->intake.lock);
	e->spilling = e->intake.open.bytes >
		(e->spilling ? e->config.open_bytes / 2 : e->config.open_bytes);
	enum rc rc = collect(e, items, &n);
	pthread_mutex_unlock(&e->intake.lock);
	if (rc)
		rc = err_set(err, rc, "no memory to close an hour");
	if (!rc && n)
		rc = close_items(e, items, n, err);
	if (!rc)
		note_closed(e, items, n);
	release_items(items, n);
	*closed = n;
	return rc;
}

/* --- forgetting --- */

/* Under the lock. What is needed again after a crash: of which ticks, and which hours' samples. */
static void drop_closed(struct energy *e, int64_t *first_tick, int64_t *first_ms) {
	struct open_set *set = &e->intake.open;
	*first_tick = set->next_tick;
	*first_ms = INT64_MAX;
	for (size_t i = 0; i < set->count; i++) {
		struct open_series *s = set->all[i];
		for (struct open_hour *h = s->hours, *next; h; h = next) {
			next = h->next;
			if (h->in_chunk == h->count &&
				span_is_past(e, set->newest_ms, h->begin_ms, HOUR_MS)) {
				open_drop(set, s, h);
				continue;
			}
			*first_tick = h->first_tick < *first_tick ? h->first_tick : *first_tick;
			*first_ms = h->begin_ms < *first_ms ? h->begin_ms : *first_ms;
		}
	}
}

static enum rc prune_ticks(
	struct energy *e, struct db_conn *c, int64_t first_tick, struct err *err) {
	int removed = PRUNE_BATCH;
	enum rc rc = RC_OK;
	for (int i = 0; i < PRUNE_BATCHES && !rc && removed == PRUNE_BATCH; i++)
		rc = db_tick_prune(c, first_tick, PRUNE_BATCH, &removed, err);
	e->unforgotten = removed == PRUNE_BATCH;
	return rc;
}

static enum rc forget(struct energy *e, struct err *err) {
	int64_t first_tick, first_ms, last_tick;
	struct db_conn *c;
	pthread_mutex_lock(&e->intake.lock);
	drop_closed(e, &first_tick, &first_ms);
	last_tick = e->intake.open.next_tick - 1;
	pthread_mutex_unlock(&e->intake.lock);
	enum rc rc = db_write_begin(e->db, &c, err);
	if (rc)
		return rc;
	rc = db_mark_set(c, CLOSED_TICK, last_tick, err);
	if (!rc)
		rc = db_mark_set(c, CLOSED_MS, first_ms, err);
	if (!rc)
		rc = prune_ticks(e, c, first_tick, err);
	if (!rc)
		return db_write_commit(c, err);
	db_write_abort(c);
	return rc;
}

/* --- one thing at a time --- */

static int64_t newest_ms(struct energy *e) {
	pthread_mutex_lock(&e->intake.lock);
	int64_t at_ms = e->intake.open.newest_ms;
	pthread_mutex_unlock(&e->intake.lock);
	return at_ms;
}

enum rc energy_keep(struct energy *e, bool *more, struct err *err) {
	size_t closed = 0;
	enum rc rc = close_some(e, &closed, err);
	if (rc || closed) {
		e->unforgotten |= !rc;
		*more = !rc;
		return rc;
	}
	*more = false;
	if (e->unforgotten)
		rc = tiers_hour(e, newest_ms(e), more, err);
	if (!rc && !*more && e->unforgotten)
		rc = forget(e, err);
	if (!rc && !*more)
		rc = tiers_days(e, newest_ms(e), more, err);
	return rc;
}
