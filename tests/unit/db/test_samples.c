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

static struct sample sample_at(int64_t series, int64_t ms) {
	return (struct sample){series, ms, ms * 1000, -ms};
}

static void insert_tick(struct db_conn *c, const struct sample *s, size_t n) {
	assert_int_equal(db_tick_insert(c, "boot", s, n, NULL), RC_OK);
}

/* Ticks 1 … 5 of 100–102, 110–112 … of two series each; the third also brings a late sample. */
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

static void ticks_come_in_their_order(void **state) {
	struct db_conn *c = temp_db_conn(state);
	struct tick t = {0};
	insert_ticks(c);
	for (int64_t i = 0; i < 5; i++) {
		assert_int_equal(db_tick_next(c, i, &t, NULL), RC_OK);
		assert_int_equal(t.id, i + 1);
		assert_string_equal(t.boot_id, "boot");
		assert_int_equal(t.count, i == 2 ? 4 : 3);
		const struct sample want = sample_at(2, 101 + i * 10);
		assert_memory_equal(&t.samples[1], &want, sizeof(want));
		db_tick_release(&t);
	}
	assert_int_equal(db_tick_next(c, 5, &t, NULL), RC_NOT_FOUND);
	assert_null(t.samples);
}

static void an_empty_log_has_no_ticks(void **state) {
	struct tick t;
	int64_t newest = -1;
	assert_int_equal(db_tick_next(temp_db_conn(state), 0, &t, NULL), RC_NOT_FOUND);
	assert_int_equal(db_tick_newest(temp_db_conn(state), &newest, NULL), RC_OK);
	assert_int_equal(newest, 0);
}

static void a_tick_has_a_hard_maximum(void **state) {
	struct db_conn *c = temp_db_conn(state);
	const size_t n = DB_TICK_MAX_SAMPLES;
	auto_free struct sample *s = malloc((n + 1) * sizeof(*s));
	struct tick t;
	for (size_t i = 0; i <= n; i++)
		s[i] = sample_at((int64_t)i, 100);
	assert_int_equal(db_tick_insert(c, "boot", s, n + 1, NULL), RC_TOO_LARGE);
	assert_int_equal(db_tick_insert(c, "boot", s, 0, NULL), RC_TOO_LARGE);
	insert_tick(c, s, n);
	assert_int_equal(db_tick_next(c, 0, &t, NULL), RC_OK);
	assert_int_equal(t.count, n);
	assert_int_equal(t.samples[n - 1].series_id, DB_TICK_MAX_SAMPLES - 1);
	db_tick_release(&t);
}

static void ticks_are_pruned_but_for_the_newest(void **state) {
	struct db_conn *c = temp_db_conn(state);
	struct tick t;
	int64_t newest;
	int removed;
	insert_ticks(c);
	assert_int_equal(db_tick_prune(c, 3, 1, &removed, NULL), RC_OK);
	assert_int_equal(removed, 1);
	assert_int_equal(db_tick_prune(c, 3, 9, &removed, NULL), RC_OK);
	assert_int_equal(removed, 1);
	assert_int_equal(db_tick_next(c, 0, &t, NULL), RC_OK);
	assert_int_equal(t.id, 3);
	db_tick_release(&t);
	assert_int_equal(db_tick_prune(c, 100, 9, &removed, NULL), RC_OK);
	assert_int_equal(removed, 2);
	assert_int_equal(db_tick_newest(c, &newest, NULL), RC_OK);
	assert_int_equal(newest, 5);
	insert_ticks(c);
	assert_int_equal(db_tick_newest(c, &newest, NULL), RC_OK);
	assert_int_equal(newest, 10);
}

static void damaged_ticks_are_told(void **state) {
	struct db_conn *c = temp_db_conn(state);
	struct tick t;
	struct err err;
	insert_ticks(c);
	assert_int_equal(
		conn_exec(c, "UPDATE tick SET samples = x'01ffff' WHERE id = 3", &err), RC_OK);
	assert_int_equal(db_tick_next(c, 2, &t, &err), RC_CORRUPT);
	assert_string_equal(err.msg, "test.db: a row makes no sense");
	assert_null(t.samples);
	assert_int_equal(conn_exec(c, "UPDATE tick SET samples = x'' WHERE id = 3", &err), RC_OK);
	assert_int_equal(db_tick_next(c, 2, &t, &err), RC_CORRUPT);
}

static void boots_are_numbered(void **state) {
	struct db_conn *c = temp_db_conn(state);
	int32_t number;
	bool known;
	assert_int_equal(db_boot_find(c, "a", &number, &known, NULL), RC_OK);
	assert_int_equal(number, 1);
	assert_false(known);
	assert_int_equal(db_boot_put(c, "a", 1, NULL), RC_OK);
	assert_int_equal(db_boot_put(c, "a", 1, NULL), RC_OK);
	assert_int_equal(db_boot_find(c, "b", &number, &known, NULL), RC_OK);
	assert_int_equal(number, 2);
	assert_false(known);
	assert_int_equal(db_boot_put(c, "b", 2, NULL), RC_OK);
	assert_int_equal(db_boot_find(c, "a", &number, &known, NULL), RC_OK);
	assert_int_equal(number, 1);
	assert_true(known);
}

static void ranges_grow_and_are_cut(void **state) {
	struct db_conn *c = temp_db_conn(state);
	struct series s = power, heat = power, got;
	heat.key.quantity = QUANTITY_TEMPERATURE;
	assert_int_equal(db_series_put(c, &s, NULL), RC_OK);
	assert_int_equal(db_series_put(c, &heat, NULL), RC_OK);
	assert_int_equal(db_series_range(c, s.id, 100, 200, NULL), RC_OK);
	assert_int_equal(db_series_range(c, s.id, 50, 150, NULL), RC_OK);
	assert_int_equal(db_series_range(c, heat.id, 10, 20, NULL), RC_OK);
	assert_int_equal(db_series_get(c, s.id, &got, NULL), RC_OK);
	assert_int_equal(got.first_ms, 50);
	assert_int_equal(got.last_ms, 200);
	assert_int_equal(db_series_cut(c, true, 120, NULL), RC_OK);
	assert_int_equal(db_series_get(c, s.id, &got, NULL), RC_OK);
	assert_int_equal(got.first_ms, 120);
	assert_int_equal(db_series_get(c, heat.id, &got, NULL), RC_OK);
	assert_int_equal(got.first_ms, 10);
	assert_int_equal(db_series_cut(c, false, 120, NULL), RC_OK);
	assert_int_equal(db_series_get(c, heat.id, &got, NULL), RC_OK);
	assert_int_equal(got.first_ms, NONE);
	assert_int_equal(got.last_ms, NONE);
}

#define WITH_DB(f) cmocka_unit_test_setup_teardown(f, temp_samples_begin, temp_db_end)

int main(void) {
	const struct CMUnitTest tests[] = {
		WITH_DB(a_series_is_made_once),
		WITH_DB(a_series_is_forgotten_unless_it_is_used),
		WITH_DB(series_are_filtered_by_what_they_are_of),
		WITH_DB(qualities_never_mix),
		WITH_DB(ticks_come_in_their_order),
		WITH_DB(an_empty_log_has_no_ticks),
		WITH_DB(a_tick_has_a_hard_maximum),
		WITH_DB(ticks_are_pruned_but_for_the_newest),
		WITH_DB(damaged_ticks_are_told),
		WITH_DB(boots_are_numbered),
		WITH_DB(ranges_grow_and_are_cut),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
