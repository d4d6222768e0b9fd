/* The start: what is in the tick log and in no chunk yet comes into memory again. */
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/parse.h"
#include "core/energy/impl.h"
#include "db/history.h"
#include "db/samples.h"

struct replay {
	struct energy *e;
	int64_t closed_tick, closed_ms;
	char boot_id[37]; /* of the tick before */
	int32_t boot;
	int64_t kept_ms; /* hours were closed then */
};

/* A boot that only ticks of an older program know gets its number now. */
static enum rc know_boot(struct energy *e, const char *boot_id, int32_t number, struct err *err) {
	struct db_conn *c;
	enum rc rc = db_write_begin(e->db, &c, err);
	if (rc)
		return rc;
	rc = db_boot_put(c, boot_id, number, err);
	if (!rc)
		return db_write_commit(c, err);
	db_write_abort(c);
	return rc;
}

static enum rc find_boot(
	struct energy *e, const char *boot_id, int32_t *number, bool *known, struct err *err) {
	struct db_conn *c;
	enum rc rc = db_read_begin(e->db, &c, err);
	if (rc)
		return rc;
	rc = db_boot_find(c, boot_id, number, known, err);
	db_read_end(c);
	return rc;
}

static enum rc find_tick_boot(struct replay *p, const struct tick *t, struct err *err) {
	bool known;
	if (p->boot && strcmp(p->boot_id, t->boot_id) == 0)
		return RC_OK;
	str_copy(p->boot_id, sizeof(p->boot_id), t->boot_id);
	enum rc rc = find_boot(p->e, t->boot_id, &p->boot, &known, err);
	return rc || known ? rc : know_boot(p->e, t->boot_id, p->boot, err);
}

static enum rc add_tick(struct replay *p, const struct tick *t, struct err *err) {
	struct open_set *open = &p->e->intake.open;
	enum rc rc = find_tick_boot(p, t, err);
	if (rc)
		return rc;
	open->next_tick = t->id;
	open->closed_ms = t->id <= p->closed_tick ? p->closed_ms : INT64_MIN;
	for (size_t i = 0; i < t->count; i++)
		intake_again(p->e, &t->samples[i], p->boot);
	return RC_OK;
}

/* A long log does not fit into memory as a whole. */
static enum rc keep(struct replay *p, struct err *err) {
	int64_t newest_ms = p->e->intake.open.newest_ms;
	bool more = newest_ms >= p->kept_ms + HOUR_MS || newest_ms < p->kept_ms - HOUR_MS ||
		p->e->intake.open.bytes > p->e->config.open_bytes;
	enum rc rc = RC_OK;
	if (more)
		p->kept_ms = newest_ms;
	while (more && !rc)
		rc = energy_keep(p->e, &more, err);
	return rc;
}

static enum rc add_ticks(struct replay *p, struct err *err) {
	struct tick t = {0};
	enum rc rc = RC_OK;
	while (!rc) {
		struct db_conn *c;
		int64_t after = t.id;
		rc = db_read_begin(p->e->db, &c, err);
		if (rc)
			return rc;
		rc = db_tick_next(c, after, &t, err);
		db_read_end(c);
		if (!rc)
			rc = add_tick(p, &t, err);
		free(t.samples);
		t.samples = NULL;
		if (!rc)
			rc = keep(p, err);
	}
	return rc == RC_NOT_FOUND ? RC_OK : rc;
}

static enum rc read_marks(struct replay *p, struct err *err) {
	struct db_conn *c;
	int64_t energy_hour = INT64_MIN, others_hour = INT64_MIN;
	enum rc rc = db_read_begin(p->e->db, &c, err);
	if (rc)
		return rc;
	rc = db_mark_get(c, CLOSED_TICK, 0, &p->closed_tick, err);
	if (!rc)
		rc = db_mark_get(c, CLOSED_MS, INT64_MIN, &p->closed_ms, err);
	if (!rc)
		rc = db_tick_newest(c, &p->e->intake.open.next_tick, err);
	if (!rc)
		rc = db_mark_get(c, PRUNED_ENERGY, INT64_MIN, &energy_hour, err);
	if (!rc)
		rc = db_mark_get(c, PRUNED_OTHERS, INT64_MIN, &others_hour, err);
	db_read_end(c);
	if (energy_hour < others_hour)
		energy_hour = others_hour;
	if (!rc && energy_hour != INT64_MIN)
		p->e->intake.open.horizon_ms = energy_hour * HOUR_MS;
	return rc;
}

/* --- what came last --- */

/* The newest sample of a series that is in chunks alone, for what comes next to be joined with. */
static enum rc find_last(struct energy *e, struct db_conn *c, const struct series *s,
	struct readings *samples, struct buf *bytes, struct err *err) {
	struct joining how = energy_joining(e, s->key.quantity);
	int64_t begin_ms = floor_to(s->last_ms, HOUR_MS);
	struct chunk chunk;
	enum rc rc = db_chunk_get(c, begin_ms / HOUR_MS, s->id, bytes, err);
	samples->count = 0;
	if (rc || !bytes->len || !chunk_open(&chunk, bytes->data, bytes->len, begin_ms, &how) ||
		!chunk_read(&chunk, samples))
		return rc;
	for (size_t i = samples->count; i-- > 0;) {
		struct open_series *open = open_find(&e->intake.open, s->id);
		if (!open || samples->all[i].at_ms != s->last_ms)
			continue;
		open->last = samples->all[i];
		open->last_tick = e->intake.open.next_tick;
		open->has_last = true;
		break;
	}
	return RC_OK;
}

static bool is_missed(struct energy *e, const struct series *s) {
	const struct open_series *open = open_find(&e->intake.open, s->id);
	int64_t age_ms = s->last_ms == NONE ? INT64_MAX : clock_wall_ms() - s->last_ms;
	return open && !open->has_last && age_ms <= energy_joining(e, s->key.quantity).max_gap_ms;
}

static enum rc find_lasts(struct energy *e, struct err *err) {
	struct db_conn *c;
	struct readings samples = {0};
	struct buf bytes;
	buf_init(&bytes, CHUNK_MAX_BYTES);
	enum rc rc = db_read_begin(e->db, &c, err);
	if (rc)
		return rc;
	for (size_t i = 0; i < e->catalogue.count && !rc; i++) {
		const struct series *s = &e->catalogue.by_id[i]->series;
		if (is_missed(e, s))
			rc = find_last(e, c, s, &samples, &bytes, err);
	}
	db_read_end(c);
	readings_release(&samples);
	buf_release(&bytes);
	return rc;
}

enum rc energy_replay(struct energy *e, struct err *err) {
	struct replay p = {.e = e, .kept_ms = NONE / 2};
	struct open_set *open = &e->intake.open;
	e->unforgotten = true;
	enum rc rc = read_marks(&p, err);
	int64_t newest_tick = open->next_tick;
	if (!rc)
		rc = add_ticks(&p, err);
	open->next_tick = newest_tick + 1;
	open->closed_ms = INT64_MIN;
	if (!rc)
		rc = find_boot(e, clock_boot_id(), &e->intake.boot, &e->boot_known, err);
	return rc ? rc : find_lasts(e, err);
}
