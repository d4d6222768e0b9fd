/* Samples of a series by the hour: what is open and what is stored, as one. */
#include "base/log.h"
#include "core/energy/impl.h"
#include "db/history.h"

/* --- open hours --- */

static bool overlaps(const struct open_hour *h, int64_t from_ms, int64_t to_ms) {
	return h->begin_ms < to_ms && h->begin_ms + HOUR_MS > from_ms;
}

static size_t count_open(const struct open_series *s, int64_t from_ms, int64_t to_ms) {
	size_t n = 0;
	for (const struct open_hour *h = s ? s->hours : NULL; h; h = h->next)
		n += overlaps(h, from_ms, to_ms);
	return n;
}

/* Under the lock. */
static bool copy_hours(
	const struct open_series *s, int64_t from_ms, int64_t to_ms, struct open_copy *out) {
	size_t n = count_open(s, from_ms, to_ms);
	out->hours = calloc(n + 1, sizeof(out->hours[0]));
	if (!out->hours)
		return false;
	for (const struct open_hour *h = s ? s->hours : NULL; h; h = h->next) {
		if (!overlaps(h, from_ms, to_ms))
			continue;
		struct copied_hour *copy = &out->hours[out->count++];
		copy->begin_ms = h->begin_ms;
		if (!open_read(h, &copy->samples))
			return false;
	}
	return true;
}

enum rc open_copy(struct energy *e, int64_t series_id, int64_t from_ms, int64_t to_ms,
	struct open_copy *out, struct err *err) {
	*out = (struct open_copy){0};
	pthread_mutex_lock(&e->intake.lock);
	bool copied = copy_hours(open_find(&e->intake.open, series_id), from_ms, to_ms, out);
	pthread_mutex_unlock(&e->intake.lock);
	return copied ? RC_OK : err_set(err, RC_NOMEM, "no memory for samples");
}

void open_copy_release(struct open_copy *c) {
	for (size_t i = 0; i < c->count; i++)
		readings_release(&c->hours[i].samples);
	free(c->hours);
	*c = (struct open_copy){0};
}

/* --- hours --- */

/* What is open first: what is stored in between is then seen twice, not never. */
enum rc hour_reader_init(struct hour_reader *r, struct energy *e, const struct series *s,
	int64_t from_ms, int64_t to_ms, struct err *err) {
	*r = (struct hour_reader){.series_id = s->id, .how = energy_joining(e, s->key.quantity)};
	buf_init(&r->bytes, CHUNK_MAX_BYTES);
	if (!aggregates_init(&r->minutes, MINUTES_OF_HOUR))
		return err_set(err, RC_NOMEM, "no memory for a history");
	enum rc rc = open_copy(e, s->id, from_ms, to_ms, &r->open, err);
	return rc ? rc : db_read_begin(e->db, &r->c, err);
}

void hour_reader_release(struct hour_reader *r) {
	db_read_end(r->c);
	open_copy_release(&r->open);
	buf_release(&r->bytes);
	readings_release(&r->samples);
	aggregates_release(&r->minutes);
}

bool hour_reader_has_open(const struct hour_reader *r, int64_t from_ms, int64_t to_ms) {
	for (size_t i = 0; i < r->open.count; i++) {
		int64_t begin_ms = r->open.hours[i].begin_ms;
		if (begin_ms < to_ms && begin_ms + HOUR_MS > from_ms)
			return true;
	}
	return false;
}

static const struct readings *find_open(const struct hour_reader *r, int64_t begin_ms) {
	for (size_t i = 0; i < r->open.count; i++) {
		if (r->open.hours[i].begin_ms == begin_ms)
			return &r->open.hours[i].samples;
	}
	return NULL;
}

/* False when the chunk is damaged. *found: its minutes were read. */
static bool read_stored(struct hour_reader *r, int64_t begin_ms, bool minutes, bool *found) {
	struct chunk *c = &r->chunk;
	if (!r->bytes.len)
		return true;
	if (!chunk_open(c, r->bytes.data, r->bytes.len, begin_ms, &r->how))
		return false;
	if (!minutes || !chunk_has_minutes(c))
		return chunk_read(c, &r->samples);
	*found = true;
	return chunk_read_minutes(c, &r->minutes);
}

static enum rc add_open(
	struct hour_reader *r, const struct readings *open, int64_t begin_ms, struct err *err) {
	bool added = true;
	for (size_t i = 0; i < open->count && added; i++)
		added = readings_add(&r->samples, &open->all[i]);
	/* The stored ones keep the gap of their time. */
	if (!r->bytes.len)
		r->chunk = (struct chunk){.begin_ms = begin_ms, .how = r->how};
	if (!added || !chunk_settle(&r->samples, begin_ms, &r->chunk.how))
		return err_set(err, RC_NOMEM, "no memory for samples");
	return RC_OK;
}

enum rc hour_reader_get(struct hour_reader *r, int64_t begin_ms, bool minutes,
	enum hour_found *found, struct err *err) {
	const struct readings *open = find_open(r, begin_ms);
	bool has_minutes = false;
	r->samples.count = 0;
	*found = HOUR_EMPTY;
	enum rc rc = db_chunk_get(r->c, begin_ms / HOUR_MS, r->series_id, &r->bytes, err);
	if (rc)
		return rc;
	if (!read_stored(r, begin_ms, minutes && !open, &has_minutes))
		return err_set(err, RC_CORRUPT, "an hour of series %lld is damaged",
			(long long)r->series_id);
	if (open)
		rc = add_open(r, open, begin_ms, err);
	if (has_minutes)
		*found = HOUR_MINUTES;
	else if (r->samples.count)
		*found = HOUR_SAMPLES;
	return rc;
}

/* --- samples as they came --- */

/* Visits those of the hour that lie in the span; false when the visitor has enough. */
static bool visit_hour(const struct readings *samples, int64_t series_id, int64_t from_ms,
	int64_t to_ms, bool (*visit)(void *arg, const struct sample *s), void *arg) {
	for (size_t i = 0; i < samples->count; i++) {
		const struct reading *r = &samples->all[i];
		const struct sample s = {series_id, r->at_ms, r->at_mono_ns, r->value_milli};
		if (r->at_ms >= from_ms && r->at_ms < to_ms && !visit(arg, &s))
			return false;
	}
	return true;
}

/* The first hour from this one on that has something of the series or of others. */
static enum rc skip_to(struct hour_reader *r, int64_t *begin_ms, int64_t to_ms, struct err *err) {
	int64_t hour = to_ms / HOUR_MS + 1;
	enum rc rc = db_chunk_hour(r->c, *begin_ms / HOUR_MS, &hour, err);
	if (rc && rc != RC_NOT_FOUND)
		return rc;
	int64_t next_ms = hour * HOUR_MS;
	for (size_t i = 0; i < r->open.count; i++) {
		int64_t open_ms = r->open.hours[i].begin_ms;
		if (open_ms >= *begin_ms && open_ms < next_ms)
			next_ms = open_ms;
	}
	*begin_ms = next_ms;
	return RC_OK;
}

static enum rc visit_hours(struct hour_reader *r, int64_t from_ms, int64_t to_ms,
	bool (*visit)(void *arg, const struct sample *s), void *arg, struct err *err) {
	int64_t begin_ms = floor_to(from_ms, HOUR_MS);
	enum rc rc = RC_OK;
	bool more = true;
	while (more && !rc && begin_ms < to_ms) {
		enum hour_found found;
		int64_t end_ms = begin_ms + HOUR_MS;
		rc = hour_reader_get(r, begin_ms, false, &found, err);
		if (!rc && found == HOUR_SAMPLES)
			more = visit_hour(&r->samples, r->series_id,
				begin_ms > from_ms ? begin_ms : from_ms,
				end_ms < to_ms ? end_ms : to_ms, visit, arg);
		begin_ms = end_ms;
		if (!rc && found == HOUR_EMPTY)
			rc = skip_to(r, &begin_ms, to_ms, err);
	}
	return rc;
}

enum rc energy_raw(struct energy *e, int64_t series_id, int64_t from_ms, int64_t to_ms,
	bool (*visit)(void *arg, const struct sample *s), void *arg, struct err *err) {
	struct series s;
	struct hour_reader r;
	enum rc rc = energy_get(e, series_id, &s, err);
	if (rc || s.first_ms == NONE)
		return rc;
	if (from_ms < s.first_ms)
		from_ms = s.first_ms;
	if (to_ms > s.last_ms + 1)
		to_ms = s.last_ms + 1;
	if (from_ms >= to_ms)
		return RC_OK;
	rc = hour_reader_init(&r, e, &s, from_ms, to_ms, err);
	if (!rc)
		rc = visit_hours(&r, from_ms, to_ms, visit, arg, err);
	hour_reader_release(&r);
	return rc;
}
