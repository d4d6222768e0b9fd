/* Series and the tick log. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "db/samples.h"
#include "db/sqlite.h"
#include "db/ticks.h"
#include "tests/support/temp_db.h"

static const struct series power = {
	.key = {.host_id = "h1",
		.object = "host",
		.quantity = QUANTITY_POWER,
		.quality = QUALITY_BMC},
	.source = "PowerControl",
};

static void a_series_is_made_once(void **state) {
	struct db_conn *c = temp_db_conn(state);
	struct series s = power, again = power, got;
	assert_int_equal(db_series_put(c, &s, NULL), RC_OK);
	assert_int_equal(s.id, 1);
	snprintf(again.source, sizeof(again.source), "EnvironmentMetrics");
	assert_int_equal(db_series_put(c, &again, NULL), RC_OK);
	assert_int_equal(again.id, 1);
	assert_int_equal(db_series_get(c, 1, &got, NULL), RC_OK);
	assert_int_equal(got.id, 1);
	assert_string_equal(got.key.host_id, "h1");
	assert_string_equal(got.key.object, "host");
	assert_int_equal(got.key.quantity, QUANTITY_POWER);
	assert_int_equal(got.key.quality, QUALITY_BMC);
	assert_string_equal(got.source, "EnvironmentMetrics");
	assert_int_equal(got.first_ms, NONE);
	assert_int_equal(got.last_ms, NONE);
	assert_int_equal(db_series_get(c, 2, &got, NULL), RC_NOT_FOUND);
}

static void a_series_is_forgotten_unless_it_is_used(void **state) {
	struct db_conn *c = temp_db_conn(state);
	struct series s = power, got;
	s.used_ms = 100;
	assert_int_equal(db_series_put(c, &s, NULL), RC_OK);
	assert_int_equal(db_series_touch(c, s.id, 200, NULL), RC_OK);
	assert_int_equal(db_series_touch(c, s.id, 150, NULL), RC_OK);
	assert_int_equal(db_series_touch(c, 77, 150, NULL), RC_OK);
	assert_int_equal(db_series_forget(c, s.id, 200, NULL), RC_OK);
	assert_int_equal(db_series_get(c, s.id, &got, NULL), RC_OK);
	assert_int_equal(got.used_ms, 200);
	assert_int_equal(db_series_forget(c, s.id, 201, NULL), RC_OK);
	assert_int_equal(db_series_get(c, s.id, &got, NULL), RC_NOT_FOUND);
	assert_int_equal(db_series_put(c, &s, NULL), RC_OK);
	assert_int_equal(s.id, 2);
}

struct seen {
	int64_t at[16];
	int n, stop_after;
};

static bool note_series(void *arg, const struct series *s) {
	struct seen *seen = arg;
	seen->at[seen->n++] = s->id;
	return seen->n != seen->stop_after;
}

static void series_are_filtered_by_what_they_are_of(void **state) {
	struct db_conn *c = temp_db_conn(state);
	struct series all[4] = {power, power, power, power};
	static const struct {
		const char *host, *object;
		int quantity;
		int64_t after;
		int limit, stop_after, want_n;
		int64_t want_first;
	} cases[] = {
		{NULL, NULL, -1, 0, 10, 0, 4, 1},
		{NULL, NULL, -1, 2, 10, 0, 2, 3},
		{NULL, NULL, -1, 0, 3, 0, 3, 1},
		{NULL, NULL, -1, 0, 10, 1, 1, 1},
		{"h2", NULL, -1, 0, 10, 0, 1, 2},
		{NULL, "d1", -1, 0, 10, 0, 1, 3},
		{"h1", "host", -1, 0, 10, 0, 2, 1},
		{"h1", NULL, QUANTITY_TEMPERATURE, 0, 10, 0, 1, 4},
		{"h3", NULL, -1, 0, 10, 0, 0, 0},
	};
	snprintf(all[1].key.host_id, sizeof(all[1].key.host_id), "h2");
	snprintf(all[2].key.object, sizeof(all[2].key.object), "d1");
	all[3].key.quantity = QUANTITY_TEMPERATURE;
	for (size_t i = 0; i < array_len(all); i++)
		assert_int_equal(db_series_put(c, &all[i], NULL), RC_OK);
	for (size_t i = 0; i < array_len(cases); i++) {
		struct seen s = {.stop_after = cases[i].stop_after};
		assert_int_equal(
			db_series_list(c, cases[i].host, cases[i].object, cases[i].quantity,
				cases[i].after, cases[i].limit, note_series, &s, NULL),
			RC_OK);
		assert_int_equal(s.n, cases[i].want_n);
		if (s.n)
			assert_int_equal(s.at[0], cases[i].want_first);
	}
}

static void qualities_never_mix(void **state) {
	struct series measured = power, simulated = power;
	simulated.key.quality = QUALITY_SIMULATED;
	assert_int_equal(db_series_put(temp_db_conn(state), &measured, NULL), RC_OK);
	assert_int_equal(db_series_put(temp_db_conn(state), &simulated, NULL), RC_OK);
	assert_int_not_equal(measured.id, simulated.id);
}

static bool note_sample(void *arg, const struct sample *s, const char *boot_id) {
	struct seen *seen = arg;
	assert_string_equal(boot_id, "boot");
	assert_int_equal(s->at_mono_ns, s->at_ms * 1000);
	assert_int_equal(s->value_milli, -s->at_ms);
	seen->at[seen->n++] = s->at_ms;
	return seen->n != seen->stop_after;
}

static struct sample sample_at(int64_t series, int64_t ms) {
	return (struct sample){series, ms, ms * 1000, -ms};
}

static void insert_tick(struct db_conn *c, const struct sample *s, size_t n) {
	assert_int_equal(db_tick_insert(c, "boot", s, n, NULL), RC_OK);
}

/* Ticks 100–102, 110–112 … of two series each; the third also brings a late sample of 101. */
static void insert_ticks(struct db_conn *c) {
	for (int64_t base = 100; base < 150; base += 10) {
		const struct sample s[] = {
			sample_at(1, base),
			sample_at(2, base + 1),
			sample_at(1, base + 2),
			sample_at(1, 101),
		};
		insert_tick(c, s, base == 120 ? 4 : 3);
	}
}

static void a_range_gives_its_samples_in_order_of_insertion(void **state) {
	struct db_conn *c = temp_db_conn(state);
	static const struct {
		int64_t series, from, to;
		int stop_after, n;
		int64_t want[12];
	} cases[] = {
		{1, 0, 1000, 0, 11, {100, 102, 110, 112, 120, 122, 101, 130, 132, 140, 142}},
		{2, 0, 1000, 0, 5, {101, 111, 121, 131, 141}},
		{1, 100, 102, 0, 2, {100, 101}},
		{1, 102, 111, 0, 2, {102, 110}},
		{1, 122, 123, 0, 1, {122}},
		{1, 142, 143, 0, 1, {142}},
		{1, 143, 1000, 0, 0, {0}},
		{1, 0, 100, 0, 0, {0}},
		{1, 103, 110, 0, 0, {0}},
		{3, 0, 1000, 0, 0, {0}},
		{1, 0, 1000, 3, 3, {100, 102, 110}},
		{1, INT64_MIN, INT64_MAX / 2, 0, 11, {100}},
	};
	insert_ticks(c);
	for (size_t i = 0; i < array_len(cases); i++) {
		struct seen s = {.stop_after = cases[i].stop_after};
		assert_int_equal(db_tick_each(c, cases[i].series, cases[i].from, cases[i].to,
					 note_sample, &s, NULL),
			RC_OK);
		assert_int_equal(s.n, cases[i].n);
		for (int k = 0; k < s.n && cases[i].want[k]; k++)
			assert_int_equal(s.at[k], cases[i].want[k]);
	}
}

static void an_empty_log_has_no_samples(void **state) {
	struct seen s = {.n = 0};
	assert_int_equal(
		db_tick_each(temp_db_conn(state), 1, 0, 1000, note_sample, &s, NULL), RC_OK);
	assert_int_equal(s.n, 0);
}

static void a_tick_has_a_hard_maximum(void **state) {
	struct db_conn *c = temp_db_conn(state);
	const size_t n = DB_TICK_MAX_SAMPLES;
	auto_free struct sample *s = malloc((n + 1) * sizeof(*s));
	struct seen seen = {.n = 0};
	for (size_t i = 0; i <= n; i++)
		s[i] = sample_at((int64_t)i, 100);
	assert_int_equal(db_tick_insert(c, "boot", s, n + 1, NULL), RC_TOO_LARGE);
	assert_int_equal(db_tick_insert(c, "boot", s, 0, NULL), RC_TOO_LARGE);
	insert_tick(c, s, n);
	assert_int_equal(
		db_tick_each(c, DB_TICK_MAX_SAMPLES - 1, 0, 1000, note_sample, &seen, NULL), RC_OK);
	assert_int_equal(seen.n, 1);
}

static void ticks_are_pruned_when_all_of_them_is_old(void **state) {
	struct db_conn *c = temp_db_conn(state);
	struct seen s = {.n = 0};
	int removed;
	insert_ticks(c);
	assert_int_equal(db_tick_prune(c, 122, 1, &removed, NULL), RC_OK);
	assert_int_equal(removed, 1);
	assert_int_equal(db_tick_prune(c, 122, 9, &removed, NULL), RC_OK);
	assert_int_equal(removed, 1);
	assert_int_equal(db_tick_each(c, 1, 0, 1000, note_sample, &s, NULL), RC_OK);
	assert_int_equal(s.n, 7);
	assert_int_equal(s.at[0], 120);
}

static void damaged_ticks_are_told(void **state) {
	struct db_conn *c = temp_db_conn(state);
	struct seen s = {.n = 0};
	struct err err;
	insert_ticks(c);
	assert_int_equal(
		conn_exec(c, "UPDATE tick SET samples = x'01ffff' WHERE id = 3", &err), RC_OK);
	assert_int_equal(db_tick_each(c, 1, 0, 1000, note_sample, &s, &err), RC_CORRUPT);
	assert_string_equal(err.msg, "test.db: a row makes no sense");
	assert_int_equal(s.n, 4);
	assert_int_equal(conn_exec(c, "UPDATE tick SET samples = x'' WHERE id = 3", &err), RC_OK);
	assert_int_equal(db_tick_each(c, 1, 0, 1000, note_sample, &s, &err), RC_CORRUPT);
}

/* A range in the past must not walk through all that came after it. */
static void a_range_query_uses_the_index_at_both_ends(void **state) {
	struct db_conn *c = temp_db_conn(state);
	bool bounded = false, row;
	auto_stmt struct stmt *st = stmt_get(c, "EXPLAIN QUERY PLAN " TICKS_IN_RANGE);
	while (stmt_next(st, &row, NULL) == RC_OK && row) {
		const char *step = col_text(st, 3);
		assert_null(strstr(step, "TEMP B-TREE"));
		if (strstr(step, "COVERING INDEX tick_to (to_ms>? AND to_ms<?)"))
			bounded = true;
	}
	assert_true(bounded);
}

#define WITH_DB(f) cmocka_unit_test_setup_teardown(f, temp_samples_begin, temp_db_end)

int main(void) {
	const struct CMUnitTest tests[] = {
		WITH_DB(a_series_is_made_once),
		WITH_DB(a_series_is_forgotten_unless_it_is_used),
		WITH_DB(series_are_filtered_by_what_they_are_of),
		WITH_DB(qualities_never_mix),
		WITH_DB(a_range_gives_its_samples_in_order_of_insertion),
		WITH_DB(an_empty_log_has_no_samples),
		WITH_DB(a_tick_has_a_hard_maximum),
		WITH_DB(ticks_are_pruned_when_all_of_them_is_old),
		WITH_DB(damaged_ticks_are_told),
		WITH_DB(a_range_query_uses_the_index_at_both_ends),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
