/* Chunks: what goes in comes out, and an hour's energy needs no other hour. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "core/energy/chunk.h"

#define HOUR_0 (INT64_C(490000) * HOUR_MS)
#define NS 1000000

static const struct joining meter = {.max_gap_ms = 60000};
static uint64_t seed = 7;

static int64_t below(int64_t n) {
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (int64_t)(seed % (uint64_t)n);
}

static void add(struct readings *rs, int64_t at_ms, int64_t mono_ms, int64_t mw, int32_t boot) {
	assert_true(readings_add(rs, &(struct reading){at_ms, mono_ms * NS, mw, boot, LINK_NEXT}));
}

/* A sample every ten seconds or so, with all that can go wrong. */
static void make_readings(struct readings *rs, int64_t from_ms, int64_t to_ms) {
	int64_t at_ms = from_ms, mono_ms = 5000000;
	int32_t boot = 1;
	while (at_ms < to_ms) {
		int64_t step_ms = 9990 + below(20);
		if (below(100) == 0)
			step_ms += below(200000);
		at_ms += step_ms;
		mono_ms += step_ms;
		if (below(300) == 0)
			at_ms += below(7200000) - 3600000;
		if (below(500) == 0) {
			boot++;
			mono_ms = 1000;
		}
		add(rs, at_ms, mono_ms, 1000 * (80 + below(40)), boot);
		if (below(50) == 0)
			add(rs, at_ms, mono_ms, 1000 * below(500) + 1, boot);
	}
}

static void copy(struct readings *to, const struct readings *from) {
	for (size_t i = 0; i < from->count; i++)
		assert_true(readings_add(to, &from->all[i]));
}

static void shuffle_some(struct readings *rs) {
	for (size_t i = 1; i < rs->count; i += 1 + (size_t)below(30)) {
		struct reading r = rs->all[i];
		rs->all[i] = rs->all[i - 1];
		rs->all[i - 1] = r;
	}
}

/* --- */

static void check_same(const struct readings *a, const struct readings *b) {
	assert_int_equal(a->count, b->count);
	for (size_t i = 0; i < a->count; i++) {
		assert_int_equal(a->all[i].at_ms, b->all[i].at_ms);
		assert_int_equal(a->all[i].at_mono_ns, b->all[i].at_mono_ns);
		assert_int_equal(a->all[i].value_milli, b->all[i].value_milli);
		assert_int_equal(a->all[i].boot, b->all[i].boot);
		if (i)
			assert_int_equal(a->all[i].link, b->all[i].link);
	}
}

static size_t put_and_get(const struct readings *rs, int64_t begin_ms, bool has_minutes) {
	struct buf b;
	struct chunk c;
	struct readings got = {0};
	struct aggregates minutes, again = {0};
	assert_true(aggregates_init(&minutes, MINUTES_OF_HOUR));
	buf_init(&b, CHUNK_MAX_BYTES);
	chunk_minutes(rs, begin_ms, &meter, &minutes);
	chunk_put(&b, begin_ms, &meter, rs, &minutes);
	assert_int_equal(buf_status(&b, NULL), RC_OK);
	assert_true(chunk_open(&c, b.data, b.len, begin_ms, &(struct joining){0}));
	assert_int_equal(c.how.max_gap_ms, meter.max_gap_ms);
	assert_true(chunk_read(&c, &got));
	check_same(&got, rs);
	assert_int_equal(chunk_has_minutes(&c), has_minutes);
	if (has_minutes) {
		assert_true(chunk_read_minutes(&c, &again));
		assert_int_equal(again.count, minutes.count);
		for (size_t i = 0; i < again.count; i++) {
			struct aggregate x = aggregates_get(&again, i);
			struct aggregate y = aggregates_get(&minutes, i);
			assert_memory_equal(&x, &y, sizeof(x));
		}
	}
	size_t len = b.len;
	for (size_t cut = 0; cut < b.len; cut += 1 + b.len / 100) {
		struct chunk bad;
		if (chunk_open(&bad, b.data, cut, begin_ms, &meter))
			assert_false(chunk_read(&bad, &got));
	}
	aggregates_release(&minutes);
	aggregates_release(&again);
	readings_release(&got);
	buf_release(&b);
	return len;
}

static void samples_come_back(void **state unused_arg) {
	for (int round = 0; round < 50; round++) {
		struct readings rs = {0};
		make_readings(&rs, HOUR_0, HOUR_0 + HOUR_MS);
		assert_true(chunk_settle(&rs, HOUR_0, &meter));
		put_and_get(&rs, HOUR_0, false);
		readings_release(&rs);
	}
	struct readings none = {0};
	put_and_get(&none, HOUR_0, false);
}

/* The store's size is planned with these. */
static void an_usual_hour_is_small(void **state unused_arg) {
	static const struct {
		int64_t period_ms;
		bool minutes;
		double bytes; /* a sample at most */
	} cases[] = {{10000, false, 1.3}, {1000, true, 1.3}, {60000, false, 2}};
	for (size_t i = 0; i < 3; i++) {
		struct readings rs = {0};
		int64_t mw = 200000;
		for (int64_t t = 0; t < HOUR_MS; t += cases[i].period_ms) {
			mw += 1000 * (below(5) - 2);
			add(&rs, HOUR_0 + t + below(8), t + 100 + below(1), mw, 3);
		}
		for (size_t k = 0; k < rs.count; k++)
			rs.all[k].at_mono_ns = (rs.all[k].at_ms - HOUR_0 + 99) * NS;
		assert_true(chunk_settle(&rs, HOUR_0, &meter));
		double bytes = (double)put_and_get(&rs, HOUR_0, cases[i].minutes);
		if (bytes / (double)rs.count > cases[i].bytes)
			fail_msg("%.2f bytes a sample", bytes / (double)rs.count);
		readings_release(&rs);
	}
}

static void doubles_and_order_are_settled(void **state unused_arg) {
	struct readings rs = {0}, once = {0};
	make_readings(&once, HOUR_0, HOUR_0 + HOUR_MS);
	assert_true(chunk_settle(&once, HOUR_0, &meter));
	copy(&rs, &once);
	shuffle_some(&rs);
	copy(&rs, &once);
	assert_true(chunk_settle(&rs, HOUR_0, &meter));
	check_same(&rs, &once);
	readings_release(&rs);
	readings_release(&once);
}

/* --- */

static void lay(const struct readings *rs, const struct joining *how, int64_t begin_ms,
	struct integral steps[MINUTES_OF_HOUR]) {
	struct integrator in;
	for (int i = 0; i < MINUTES_OF_HOUR; i++)
		steps[i].at_ms = begin_ms + i * MINUTE_MS;
	integrator_init(&in, how, steps, MINUTES_OF_HOUR, begin_ms + HOUR_MS);
	for (size_t i = 0; i < rs->count; i++)
		integrator_add(&in, &rs->all[i]);
}

/* The samples near an hour alone give what all samples give. */
static void an_hour_stands_alone(void **state unused_arg) {
	for (int round = 0; round < 100; round++) {
		struct readings all = {0};
		int64_t hours = 5;
		make_readings(&all, HOUR_0, HOUR_0 + hours * HOUR_MS);
		for (int64_t h = -1; h <= hours; h++) {
			struct readings rs = {0};
			struct integral alone[MINUTES_OF_HOUR], among[MINUTES_OF_HOUR];
			int64_t begin_ms = HOUR_0 + h * HOUR_MS;
			copy(&rs, &all);
			assert_true(chunk_settle(&rs, begin_ms, &meter));
			lay(&rs, &meter, begin_ms, alone);
			lay(&all, &meter, begin_ms, among);
			for (int i = 0; i < MINUTES_OF_HOUR; i++) {
				assert_true(fabs(alone[i].milli_ms - among[i].milli_ms) < 1);
				assert_true(fabs(alone[i].covered_ms - among[i].covered_ms) < 1e-3);
				assert_int_equal(alone[i].count, among[i].count);
				assert_int_equal(alone[i].min_milli, among[i].min_milli);
			}
			readings_release(&rs);
		}
		readings_release(&all);
	}
}

static void a_counter_reaches_over_a_long_silence(void **state unused_arg) {
	static const struct joining counter = {.max_gap_ms = 24 * HOUR_MS, .per_milli = 3.6e9};
	struct readings rs = {0};
	struct integral steps[MINUTES_OF_HOUR];
	add(&rs, HOUR_0 - HOUR_MS, 0, 5000, 1);
	add(&rs, HOUR_0 + 3 * HOUR_MS, 4 * HOUR_MS, 9000, 1);
	assert_true(chunk_settle(&rs, HOUR_0, &counter));
	assert_int_equal(rs.count, 2);
	lay(&rs, &counter, HOUR_0, steps);
	double wh = 0;
	for (int i = 0; i < MINUTES_OF_HOUR; i++)
		wh += steps[i].milli_ms / 3.6e9;
	assert_true(fabs(wh - 1000) < 1e-6);
	assert_int_equal(steps[0].count, 0);
	readings_release(&rs);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(samples_come_back),
		cmocka_unit_test(an_usual_hour_is_small),
		cmocka_unit_test(doubles_and_order_are_settled),
		cmocka_unit_test(an_hour_stands_alone),
		cmocka_unit_test(a_counter_reaches_over_a_long_silence),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
