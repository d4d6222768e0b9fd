/* Columns of integers: all values come back, usual ones take few bytes, damage is noticed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/column.h"
#include "base/compiler.h"

#define MAX 5000

static uint64_t seed = 1;

static uint64_t any(void) {
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

static int64_t below(int64_t n) {
	return (int64_t)(any() % (uint64_t)n);
}

/* Puts a column and a varint behind it, reads both back; returns the column's bytes. */
static size_t round_trip(const int64_t *v, size_t n) {
	static int64_t scratch[MAX], got[MAX];
	struct buf b;
	int64_t mark;
	buf_init(&b, 1 << 20);
	memcpy(scratch, v, n * sizeof(*v));
	column_put(&b, scratch, n);
	size_t len = b.len;
	varint_put(&b, -77);
	assert_int_equal(buf_status(&b, NULL), RC_OK);
	for (int skip = 0; skip < 2; skip++) {
		struct column_reader r = column_reader(b.data, b.len);
		assert_true(column_get(&r, skip ? NULL : got, n));
		assert_true(varint_get(&r, &mark));
		assert_int_equal(mark, -77);
		assert_ptr_equal(r.at, r.end);
	}
	for (size_t i = 0; i < n; i++)
		assert_int_equal(got[i], v[i]);
	buf_release(&b);
	return len;
}

static void few_values_come_back(void **state unused_arg) {
	static const int64_t v[] = {INT64_MIN, INT64_MAX, 0, -1, INT64_MIN, 1, INT64_MAX, INT64_MAX,
		1700000000000, -1700000000000, INT64_MIN + 1, 64, 63, -64, 127, 128};
	for (size_t from = 0; from < array_len(v); from++) {
		for (size_t n = 0; n <= array_len(v) - from; n++)
			round_trip(v + from, n);
	}
	int64_t wide[] = {0, INT64_MIN, 0, INT64_MIN, INT64_MIN};
	round_trip(wide, array_len(wide));
}

static void many_values_come_back(void **state unused_arg) {
	static int64_t v[MAX];
	for (int bits = 1; bits <= 64; bits++) {
		size_t n = (size_t)below(MAX);
		for (size_t i = 0; i < n; i++)
			v[i] = (int64_t)(any() >> (64 - bits)) - below(1000);
		round_trip(v, n);
		for (size_t i = 0; i < n; i++)
			v[i] = (int64_t)((uint64_t)v[i] * 1000);
		round_trip(v, n);
	}
}

/* What the store's size is planned with, in bits a value. */
static void usual_columns_are_small(void **state unused_arg) {
	static int64_t constant[MAX], regular[MAX], late[MAX], watts[MAX], ids[MAX];
	for (int i = 0; i < MAX; i++) {
		constant[i] = 60000;
		regular[i] = 1700000000000 + i * 10000;
		/* a poll in ten thousand is left out */
		late[i] = 1700000000000 + i * 10000 + below(16) + (i > 2500 ? 10000 : 0);
		watts[i] = (i ? watts[i - 1] : 200000) + 1000 * (below(5) - 2);
		ids[i] = i * 2 + below(2);
	}
	assert_in_range(round_trip(constant, MAX), 1, 8);
	assert_in_range(round_trip(regular, MAX), 1, 16);
	assert_in_range(round_trip(late, MAX), 1, MAX * 5 / 8 + 20);
	assert_in_range(round_trip(watts, MAX), 1, MAX * 3 / 8);
	assert_in_range(round_trip(ids, MAX), 1, MAX * 5 / 16);
}

static void damage_is_noticed(void **state unused_arg) {
	int64_t v[100], got[100];
	struct buf b;
	buf_init(&b, 1 << 20);
	for (int i = 0; i < 100; i++)
		v[i] = below(INT64_C(1) << (i % 60));
	column_put(&b, v, 100);
	for (size_t cut = 0; cut < b.len; cut++) {
		struct column_reader r = column_reader(b.data, cut);
		assert_false(column_get(&r, got, 100));
	}
	/* More values than were put. */
	int64_t more[400];
	struct column_reader r = column_reader(b.data, b.len);
	assert_false(column_get(&r, more, 400));
	b.data[0] = (char)0xbf;
	r = column_reader(b.data, b.len);
	assert_false(column_get(&r, got, 100));
	buf_release(&b);
}

static void a_full_buffer_tells(void **state unused_arg) {
	int64_t v[100];
	struct buf b;
	buf_init(&b, 64);
	for (int i = 0; i < 100; i++)
		v[i] = (int64_t)any();
	column_put(&b, v, 100);
	assert_int_equal(buf_status(&b, NULL), RC_TOO_LARGE);
	buf_release(&b);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(few_values_come_back),
		cmocka_unit_test(many_values_come_back),
		cmocka_unit_test(usual_columns_are_small),
		cmocka_unit_test(damage_is_noticed),
		cmocka_unit_test(a_full_buffer_tells),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
