/* The engine on a real store: what comes in can be asked for, at once and after a restart. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/clock.h"
#include "base/metrics.h"
#include "base/parse.h"
#include "base/thread.h"
#include "core/energy.h"
#include "db/samples.h"
#include "tests/support/temp_db.h"

#define HOST "6f1c1f1e-0000-4000-8000-000000000001"
#define SOON_MS 10
#define NEVER_MS 3600000
#define PATIENCE_MS 20000

struct fixture {
	struct temp_db *store;
	struct energy *energy;
	int64_t flush_ms;
};

static void engine_open(struct fixture *f, int64_t flush_ms) {
	const struct energy_config config = {
		.max_series = 8, .queue_samples = 1000, .flush_ms = flush_ms, .max_gap_ms = 30000};
	struct err err;
	f->energy = energy_new(&config, f->store->db, &err);
	assert_non_null(f->energy);
}

static void reopen(struct fixture *f, int64_t flush_ms) {
	energy_free(f->energy);
	engine_open(f, flush_ms);
}

static int setup(void **state) {
	struct fixture *f = calloc(1, sizeof(*f));
	f->store = temp_db_new(DB_SAMPLES);
	engine_open(f, NEVER_MS);
	*state = f;
	return 0;
}

static int teardown(void **state) {
	struct fixture *f = *state;
	energy_free(f->energy);
	temp_db_free(f->store);
	free(f);
	return 0;
}

static int64_t make_series(struct fixture *f, const char *object, enum quality quality) {
	struct series_key key = {.quantity = QUANTITY_POWER, .quality = (uint8_t)quality};
	int64_t id = 0;
	str_copy(key.host_id, sizeof(key.host_id), HOST);
	str_copy(key.object, sizeof(key.object), object);
	assert_int_equal(energy_series(f->energy, &key, "test", &id, NULL), RC_OK);
	return id;
}

static int64_t at(const char *text) {
	int64_t ms = 0;
	assert_int_equal(parse_time_ms(text, 0, &ms, "", NULL), RC_OK);
	return ms;
}

static void put(struct fixture *f, int64_t series, int64_t at_ms, int64_t watts) {
	const struct sample s = {series, at_ms, at_ms * 1000000, watts * 1000};
	assert_int_equal(energy_ingest(f->energy, &s, 1), 1);
}

/* --- */

struct seen {
	size_t n;
	struct sample s[64];
};

static bool keep(void *arg, const struct sample *s) {
	struct seen *seen = arg;
	seen->s[seen->n++] = *s;
	return seen->n < array_len(seen->s);
}

static struct seen raw(struct fixture *f, int64_t series, int64_t from_ms, int64_t to_ms) {
	struct seen seen = {0};
	assert_int_equal(energy_raw(f->energy, series, from_ms, to_ms, keep, &seen, NULL), RC_OK);
	return seen;
}

static size_t count_stored(struct fixture *f, int64_t series) {
	struct tick t = {0};
	struct db_conn *c;
	size_t n = 0;
	int64_t id = 0;
	assert_int_equal(db_read_begin(f->store->db, &c, NULL), RC_OK);
	while (db_tick_next(c, id, &t, NULL) == RC_OK) {
		for (size_t i = 0; i < t.count; i++)
			n += t.samples[i].series_id == series;
		id = t.id;
		db_tick_release(&t);
	}
	db_read_end(c);
	return n;
}

static void wait_until_stored(struct fixture *f, int64_t series, size_t n) {
	struct timespec pause = {.tv_nsec = 2000000};
	int64_t deadline_ms = clock_mono_ms() + PATIENCE_MS;
	while (count_stored(f, series) != n) {
		assert_true(clock_mono_ms() < deadline_ms);
		nanosleep(&pause, NULL);
	}
}

static void wait_until_failed(struct fixture *f) {
	struct timespec pause = {.tv_nsec = 2000000};
	int64_t deadline_ms = clock_mono_ms() + PATIENCE_MS;
	struct db_status status;
	do {
		nanosleep(&pause, NULL);
		db_status_get(f->store->db, &status);
		assert_true(clock_mono_ms() < deadline_ms);
	} while (!status.failures);
}

/* --- */

static void samples_show_at_once(void **state) {
	struct fixture *f = *state;
	int64_t a = make_series(f, "host", QUALITY_BMC), b = make_series(f, "d1", QUALITY_MEASURED);
	put(f, a, 1000, 100);
	put(f, b, 1500, 7);
	put(f, a, 2000, 110);
	put(f, a, 3000, 120);
	struct seen seen = raw(f, a, 1000, 3000);
	assert_int_equal(seen.n, 2);
	assert_int_equal(seen.s[0].at_ms, 1000);
	assert_int_equal(seen.s[1].value_milli, 110000);
}

static void stored_and_pending_are_one(void **state) {
	struct fixture *f = *state;
	int64_t id = make_series(f, "host", QUALITY_BMC);
	put(f, id, 1000, 100);
	put(f, id, 2000, 110);
	reopen(f, NEVER_MS);
	/* A double of what is stored is a sample of its own right when its value differs. */
	put(f, id, 2000, 111);
	put(f, id, 3000, 120);
	struct seen seen = raw(f, id, 0, 10000);
	assert_int_equal(seen.n, 4);
	for (size_t i = 1; i < seen.n; i++)
		assert_true(seen.s[i].at_ms >= seen.s[i - 1].at_ms);
}

static void the_flusher_stores(void **state) {
	struct fixture *f = *state;
	int64_t id = make_series(f, "host", QUALITY_BMC);
	reopen(f, SOON_MS);
	for (int i = 0; i < 50; i++)
		put(f, id, 1000 * (i + 1), 100 + i);
	/* Whatever has been stored meanwhile: none is missed and none comes twice. */
	assert_int_equal(raw(f, id, 0, 100000).n, 50);
	wait_until_stored(f, id, 50);
	assert_int_equal(raw(f, id, 0, 100000).n, 50);
}

static void a_failing_store_costs_nothing_at_first(void **state) {
	struct fixture *f = *state;
	int64_t id = make_series(f, "host", QUALITY_BMC);
	reopen(f, SOON_MS);
	db_fail_nth(f->store->db, 1, RC_NO_SPACE);
	put(f, id, 1000, 100);
	wait_until_failed(f);
	put(f, id, 2000, 100);
	assert_int_equal(raw(f, id, 0, 10000).n, 2);
	db_fail_nth(f->store->db, 0, RC_OK);
	wait_until_stored(f, id, 2);
	assert_int_equal(raw(f, id, 0, 10000).n, 2);
}

static void a_full_queue_drops_and_counts(void **state) {
	struct fixture *f = *state;
	struct sample many[1001];
	int64_t id = make_series(f, "host", QUALITY_BMC);
	int64_t dropped = metric_get(METRIC_SAMPLES_DROPPED);
	db_fail_nth(f->store->db, 1, RC_NO_SPACE);
	for (int i = 0; i < 1001; i++)
		many[i] = (struct sample){id, i, i, i};
	assert_int_equal(energy_ingest(f->energy, many, 1001), 1000);
	assert_int_equal(energy_ingest(f->energy, many, 5), 0);
	assert_int_equal(metric_get(METRIC_SAMPLES_DROPPED) - dropped, 6);
	/* Stored at the end all the same. */
	db_fail_nth(f->store->db, 0, RC_OK);
	reopen(f, NEVER_MS);
	wait_until_stored(f, id, 1000);
}

/* --- */

static void series_are_kept(void **state) {
	struct fixture *f = *state;
	int64_t id = make_series(f, "host", QUALITY_BMC);
	assert_int_equal(make_series(f, "host", QUALITY_BMC), id);
	put(f, id, 5000, 100);
	put(f, id, 9000, 100);
	reopen(f, NEVER_MS);
	struct series s;
	assert_int_equal(energy_get(f->energy, id, &s, NULL), RC_OK);
	assert_string_equal(s.key.host_id, HOST);
	assert_string_equal(s.source, "test");
	assert_int_equal(s.first_ms, 5000);
	assert_int_equal(s.last_ms, 9000);
	assert_int_equal(energy_get(f->energy, id + 1000, &s, NULL), RC_NOT_FOUND);
	for (int i = 0; i < 7; i++)
		make_series(f, (const char[]){(char)('a' + i), '\0'}, QUALITY_BMC);
	struct series_key key = {.host_id = HOST, .object = "one more"};
	assert_int_equal(energy_series(f->energy, &key, "", &id, NULL), RC_FULL);
}

static void the_best_quality_is_found(void **state) {
	struct fixture *f = *state;
	struct series s;
	assert_int_equal(
		energy_find(f->energy, HOST, "host", QUANTITY_POWER, &s, NULL), RC_NOT_FOUND);
	static const enum quality worst_first[] = {
		QUALITY_SIMULATED, QUALITY_DERIVED, QUALITY_BMC, QUALITY_MEASURED};
	for (size_t i = 0; i < array_len(worst_first); i++) {
		int64_t id = make_series(f, "host", worst_first[i]);
		assert_int_equal(
			energy_find(f->energy, HOST, "host", QUANTITY_POWER, &s, NULL), RC_OK);
		assert_int_equal(s.id, id);
	}
}

struct ids {
	int n;
	int64_t id[8];
};

static bool keep_id(void *arg, const struct series *s) {
	struct ids *ids = arg;
	ids->id[ids->n++] = s->id;
	return true;
}

static void lists_are_paged(void **state) {
	struct fixture *f = *state;
	int64_t a = make_series(f, "a", QUALITY_BMC), b = make_series(f, "b", QUALITY_BMC);
	int64_t c = make_series(f, "b", QUALITY_MEASURED);
	struct ids ids = {0};
	assert_int_equal(energy_list(f->energy, HOST, NULL, -1, 0, 2, keep_id, &ids, NULL), RC_OK);
	assert_int_equal(ids.n, 2);
	assert_int_equal(ids.id[0], a);
	assert_int_equal(energy_list(f->energy, NULL, NULL, -1, b, 9, keep_id, &ids, NULL), RC_OK);
	assert_int_equal(ids.n, 3);
	assert_int_equal(ids.id[2], c);
	ids.n = 0;
	assert_int_equal(
		energy_list(f->energy, NULL, "b", QUANTITY_POWER, 0, 9, keep_id, &ids, NULL),
		RC_OK);
	assert_int_equal(ids.n, 2);
	assert_int_equal(
		energy_list(f->energy, "other", NULL, -1, 0, 9, keep_id, &ids, NULL), RC_OK);
	assert_int_equal(ids.n, 2);
}

/* --- */

/* 1 kW from three days before to three days after, a sample every 30 s. */
static void days_have_their_kwh(void **state) {
	static const struct {
		const char *from, *to;
		int64_t kwh;
	} days[] = {
		{"2026-03-29T00:00:00+01:00", "2026-03-30T00:00:00+02:00", 23},
		{"2026-10-25T00:00:00+02:00", "2026-10-26T00:00:00+01:00", 25},
		{"2026-10-26T00:00:00+01:00", "2026-10-27T00:00:00+01:00", 24},
	};
	struct fixture *f = *state;
	int64_t id = make_series(f, "host", QUALITY_BMC);
	auto_free struct sample *tick = calloc(2880, sizeof(*tick));
	for (size_t i = 0; i < 2; i++) {
		int64_t begin_ms = at(days[i].from) - 86400000;
		for (int64_t day = 0; day < 4; day++) {
			for (int64_t k = 0; k < 2880; k++) {
				int64_t at_ms = begin_ms + day * 86400000 + k * 30000;
				tick[k] = (struct sample){id, at_ms, at_ms * 1000000, 1000000};
			}
			struct db_conn *c = temp_db_begin(f->store);
			assert_int_equal(db_tick_insert(c, "boot", tick, 2880, NULL), RC_OK);
			temp_db_commit(f->store);
		}
	}
	reopen(f, NEVER_MS);
	for (size_t i = 0; i < array_len(days); i++) {
		struct energy_history h;
		assert_int_equal(energy_query(f->energy, id, at(days[i].from), at(days[i].to),
					 86400000, "Europe/Berlin", &h, NULL),
			RC_OK);
		assert_int_equal(h.count, 1);
		assert_int_equal(h.points[0].energy_mj, days[i].kwh * 3600000000);
		assert_int_equal(h.energy_mj, days[i].kwh * 3600000000);
		assert_int_equal(h.covered_ms, days[i].kwh * 3600000);
		assert_int_equal(h.expected_ms, h.covered_ms);
		assert_int_equal(h.points[0].avg_milli, 1000000);
		energy_history_release(&h);
	}
	/* By the hour the repeated one stays two. */
	struct energy_history h;
	assert_int_equal(energy_query(f->energy, id, at(days[1].from), at(days[1].to), 3600000,
				 "Europe/Berlin", &h, NULL),
		RC_OK);
	assert_int_equal(h.count, 25);
	for (size_t i = 0; i < h.count; i++)
		assert_int_equal(h.points[i].energy_mj, 3600000000);
	energy_history_release(&h);
}

static void silence_is_no_energy(void **state) {
	struct fixture *f = *state;
	int64_t id = make_series(f, "host", QUALITY_BMC);
	put(f, id, 0, 100);
	put(f, id, 10000, 100);
	put(f, id, 3610000, 100);
	put(f, id, 3620000, 100);
	struct energy_history h;
	assert_int_equal(energy_query(f->energy, id, 0, 3660000, 60000, NULL, &h, NULL), RC_OK);
	assert_int_equal(h.count, 61);
	assert_int_equal(h.energy_mj, 2000000);
	assert_int_equal(h.covered_ms, 20000);
	assert_int_equal(h.expected_ms, 3660000);
	assert_int_equal(h.points[0].avg_milli, 100000);
	assert_int_equal(h.points[0].covered_ms, 10000);
	assert_int_equal(h.points[1].avg_milli, NONE);
	assert_int_equal(h.points[1].energy_mj, 0);
	assert_int_equal(h.points[1].min_milli, NONE);
	energy_history_release(&h);
}

static void a_single_sample_has_no_average(void **state) {
	struct fixture *f = *state;
	int64_t id = make_series(f, "host", QUALITY_BMC);
	put(f, id, 5000, 100);
	struct energy_history h;
	assert_int_equal(energy_query(f->energy, id, 0, 10000, 10000, NULL, &h, NULL), RC_OK);
	assert_int_equal(h.count, 1);
	assert_int_equal(h.points[0].avg_milli, NONE);
	assert_int_equal(h.points[0].min_milli, 100000);
	assert_int_equal(h.covered_ms, 0);
	energy_history_release(&h);
}

/* The stretch over an edge counts as far as it lies within. */
static void edges_are_shared(void **state) {
	struct fixture *f = *state;
	int64_t id = make_series(f, "host", QUALITY_BMC);
	for (int64_t t = 0; t <= 60000; t += 10000)
		put(f, id, t, 50);
	struct energy_history h;
	assert_int_equal(energy_query(f->energy, id, 15000, 35000, 10000, NULL, &h, NULL), RC_OK);
	assert_int_equal(h.count, 2);
	assert_int_equal(h.covered_ms, 20000);
	assert_int_equal(h.energy_mj, 1000000);
	energy_history_release(&h);
}

static void steps_are_chosen(void **state) {
	static const struct {
		int64_t span_ms, step_ms;
	} spans[] = {{60000, 1000}, {500000, 1000}, {500001, 5000}, {86400000, 300000},
		{INT64_C(30) * 86400000, 21600000}, {INT64_C(365) * 86400000, 86400000}};
	struct fixture *f = *state;
	int64_t id = make_series(f, "host", QUALITY_BMC);
	for (size_t i = 0; i < array_len(spans); i++) {
		struct energy_history h;
		assert_int_equal(
			energy_query(f->energy, id, 0, spans[i].span_ms, 0, NULL, &h, NULL), RC_OK);
		assert_int_equal(h.step_ms, spans[i].step_ms);
		assert_in_range(h.count, 1, 500);
		energy_history_release(&h);
	}
}

static void bad_questions_are_refused(void **state) {
	static const struct {
		int64_t from_ms, to_ms, step_ms;
		const char *tz, *field;
		enum rc rc;
	} bad[] = {
		{1000, 1000, 1000, NULL, "to", RC_INVALID},
		{0, 10000, -1, NULL, "step", RC_INVALID},
		{0, 86400000, 86400000, "Mars/Olympus", "tz", RC_INVALID},
		{0, INT64_MAX, 86400000, NULL, "from", RC_INVALID},
		{0, 11001000, 1000, NULL, "step", RC_INVALID},
	};
	struct fixture *f = *state;
	int64_t id = make_series(f, "host", QUALITY_BMC);
	for (size_t i = 0; i < array_len(bad); i++) {
		struct energy_history h;
		struct err err;
		assert_int_equal(energy_query(f->energy, id, bad[i].from_ms, bad[i].to_ms,
					 bad[i].step_ms, bad[i].tz, &h, &err),
			bad[i].rc);
		assert_string_equal(err.field, bad[i].field);
		energy_history_release(&h);
	}
	struct energy_history h;
	assert_int_equal(
		energy_query(f->energy, id + 99, 0, 1000, 0, NULL, &h, NULL), RC_NOT_FOUND);
}

/* --- */

static void demands_shorten_the_period(void **state) {
	struct fixture *f = *state;
	int64_t now_ms = clock_wall_ms();
	assert_int_equal(energy_period(f->energy, HOST, 5000), 5000);
	assert_int_equal(energy_demand(f->energy, HOST, 1000, now_ms + 60000, NULL), RC_OK);
	assert_int_equal(energy_demand(f->energy, HOST, 500, now_ms - 1, NULL), RC_OK);
	assert_int_equal(energy_demand(f->energy, HOST, 9000, now_ms + 60000, NULL), RC_OK);
	assert_int_equal(energy_period(f->energy, HOST, 5000), 1000);
	assert_int_equal(energy_period(f->energy, "another", 5000), 5000);
	enum rc rc = RC_OK;
	int n = 0;
	for (; rc == RC_OK && n < 10000; n++)
		rc = energy_demand(f->energy, HOST, 2000 + n, now_ms + 60000, NULL);
	assert_int_equal(rc, RC_FULL);
	/* The same again needs no place. */
	assert_int_equal(energy_demand(f->energy, HOST, 1000, now_ms + 90000, NULL), RC_OK);
}

static void prune(struct fixture *f, int64_t before_ms) {
	const struct energy_horizon all = {before_ms, before_ms, before_ms};
	energy_prune(f->energy, &(struct energy_horizons){all, all});
}

static void old_samples_are_deleted(void **state) {
	static const int64_t day_ms = 86400000;
	struct fixture *f = *state;
	struct series s;
	int64_t id = make_series(f, "host", QUALITY_BMC);
	put(f, id, 1000, 1);
	put(f, id, 3 * day_ms - 1, 2);
	put(f, id, 3 * day_ms, 3);
	prune(f, 3 * day_ms + 5);
	struct seen seen = raw(f, id, 0, 9 * day_ms);
	assert_int_equal(seen.n, 1);
	assert_int_equal(seen.s[0].at_ms, 3 * day_ms);
	assert_int_equal(energy_get(f->energy, id, &s, NULL), RC_OK);
	assert_int_equal(s.first_ms, 3 * day_ms);
	/* Too old to be taken. */
	const struct sample late = {id, day_ms, 0, 0};
	assert_int_equal(energy_ingest(f->energy, &late, 1), 0);
	reopen(f, NEVER_MS);
	assert_int_equal(raw(f, id, 0, 9 * day_ms).n, 1);
	assert_int_equal(energy_ingest(f->energy, &late, 1), 0);
}

static int64_t wall_ms;

static int64_t fake_wall_ms(void) {
	return wall_ms;
}

static bool has_series(struct fixture *f, const char *object) {
	struct series s;
	return energy_find(f->energy, HOST, object, QUANTITY_POWER, &s, NULL) == RC_OK;
}

static void series_are_forgotten_when_nobody_uses_them(void **state) {
	static const int64_t day_ms = 86400000;
	struct fixture *f = *state;
	wall_ms = 1000 * day_ms;
	clock_replace(fake_wall_ms, NULL);
	int64_t silent = make_series(f, "silent", QUALITY_BMC);
	int64_t id = make_series(f, "host", QUALITY_BMC);
	wall_ms += 50 * day_ms;
	/* Both have producers in this life. */
	prune(f, wall_ms - 10 * day_ms);
	reopen(f, NEVER_MS);
	assert_true(has_series(f, "silent"));
	wall_ms += 10 * day_ms;
	assert_int_equal(make_series(f, "host", QUALITY_BMC), id);
	prune(f, wall_ms - 10 * day_ms);
	assert_true(has_series(f, "silent"));
	wall_ms += 2 * day_ms;
	prune(f, wall_ms - 10 * day_ms);
	assert_false(has_series(f, "silent"));
	reopen(f, NEVER_MS);
	assert_false(has_series(f, "silent"));
	assert_true(has_series(f, "host"));
	/* A new one of the same name is another one. */
	assert_true(make_series(f, "silent", QUALITY_BMC) > silent);
	clock_replace(NULL, NULL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

struct heard {
	size_t count;
	int64_t values[8];
};

static void hear(void *arg, const struct sample *s, size_t n) {
	struct heard *h = arg;
	for (size_t i = 0; i < n && h->count < array_len(h->values); i++)
		h->values[h->count++] = s[i].value_milli;
}

static void what_is_not_taken_is_not_told(void **state) {
	struct fixture *f = *state;
	struct heard h = {0};
	const int64_t id = make_series(f, "host", QUALITY_BMC);
	const int64_t t = at("2026-03-01T00:00:00Z");
	const struct sample some[] = {
		{id, t, t * 1000000, 1},
		{id, t + 1000, (t + 1000) * 1000000, NONE},
		{id + 99, t + 2000, (t + 2000) * 1000000, 2},
		{id, t + 3000, (t + 3000) * 1000000, 3},
	};
	assert_int_equal(energy_subscribe(f->energy, hear, &h, NULL), RC_OK);
	assert_int_equal(energy_ingest(f->energy, some, array_len(some)), 2);
	assert_int_equal(h.count, 2);
	assert_int_equal(h.values[0], 1);
	assert_int_equal(h.values[1], 3);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		TEST(what_is_not_taken_is_not_told),
		TEST(samples_show_at_once),
		TEST(stored_and_pending_are_one),
		TEST(the_flusher_stores),
		TEST(a_failing_store_costs_nothing_at_first),
		TEST(a_full_queue_drops_and_counts),
		TEST(series_are_kept),
		TEST(the_best_quality_is_found),
		TEST(lists_are_paged),
		TEST(days_have_their_kwh),
		TEST(silence_is_no_energy),
		TEST(a_single_sample_has_no_average),
		TEST(edges_are_shared),
		TEST(steps_are_chosen),
		TEST(bad_questions_are_refused),
		TEST(demands_shorten_the_period),
		TEST(old_samples_are_deleted),
		TEST(series_are_forgotten_when_nobody_uses_them),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
