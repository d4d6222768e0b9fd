/* The packing of a tick's samples, and of long texts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "db/compress.h"
#include "db/pack.h"

static void check_round_trip(const struct sample *s, size_t n) {
	struct buf b;
	struct sample *got;
	size_t count;
	buf_init(&b, 1 << 20);
	pack_samples(&b, s, n);
	assert_int_equal(buf_status(&b, NULL), RC_OK);
	assert_true(unpack_samples(b.data, b.len, n, &got, &count));
	assert_int_equal(count, n);
	assert_memory_equal(got, s, n * sizeof(*s));
	free(got);
	assert_false(unpack_samples(b.data, b.len, n - 1, &got, &count));
	free(got);
	buf_release(&b);
}

static void samples_come_back_as_they_were(void **state) {
	(void)state;
	const struct sample s[] = {
		{1, 1700000000000, 5000000000, 12345},
		{2, 1700000000000, 5000001000, -12345},
		{2, 1699999999000, 4000000000, 0},
		{1, 1700000000000, 5000000000, NONE},
		{INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX},
		{INT64_MIN, INT64_MIN, INT64_MIN, INT64_MIN},
		{0, 0, 0, 0},
	};
	check_round_trip(s, array_len(s));
	for (size_t i = 0; i < array_len(s); i++)
		check_round_trip(&s[i], 1);
}

/* The store's size is planned with this figure. */
static void a_usual_tick_takes_four_bytes_a_sample(void **state) {
	(void)state;
	struct sample s[1000];
	struct buf b;
	for (size_t i = 0; i < array_len(s); i++) {
		int64_t at_ms = 1700000000000 + (int64_t)i % 3;
		s[i] = (struct sample){(int64_t)i + 1, at_ms, (at_ms - 1600000000000) * 1000000,
			8000 + (int64_t)(i * 7919 % 9000)};
	}
	buf_init(&b, 1 << 20);
	pack_samples(&b, s, array_len(s));
	assert_in_range(b.len, 1, array_len(s) * 4);
	buf_release(&b);
}

static void must_be_damaged(const void *bytes, size_t len) {
	struct sample *got;
	size_t n;
	assert_false(unpack_samples(bytes, len, 100, &got, &n));
	free(got);
}

static void damaged_bytes_are_noticed(void **state) {
	(void)state;
	const struct sample s[] = {
		{1, 1700000000000, 5000000000, 12345}, {7, 5, 3, 1}, {2, 9, 8, 7}};
	struct buf b;
	buf_init(&b, 1 << 20);
	pack_samples(&b, s, array_len(s));
	for (size_t cut = 0; cut < b.len; cut++)
		must_be_damaged(b.data, cut);
	b.data[0] = 3;
	must_be_damaged(b.data, b.len);
	buf_release(&b);
}

/* As the first version wrote them: series, time, monotonic time and value, as differences. */
static void rows_of_version_1_are_read(void **state) {
	(void)state;
	static const uint8_t bytes[] = {1, 2, 4, 6, 8, 1, 2, 0, 3};
	struct sample *got;
	size_t n;
	assert_true(unpack_samples(bytes, sizeof(bytes), 100, &got, &n));
	assert_int_equal(n, 2);
	assert_memory_equal(
		got, ((const struct sample[]){{1, 2, 3, 4}, {0, 3, 3, 2}}), 2 * sizeof(*got));
	free(got);
	assert_false(unpack_samples(bytes, sizeof(bytes), 1, &got, &n));
	free(got);
	must_be_damaged(bytes, sizeof(bytes) - 1);
	must_be_damaged((const uint8_t[]){1, 0xff, 0xff}, 3);
}

static void texts_are_deflated_and_inflated(void **state) {
	(void)state;
	char text[100000];
	for (size_t i = 0; i < sizeof(text); i++)
		text[i] = "0123456789"[i * i / 7 % 10];
	static const size_t lengths[] = {0, 1, 100, sizeof(text)};
	for (size_t i = 0; i < array_len(lengths); i++) {
		auto_free void *bytes = NULL;
		auto_free char *back = NULL;
		size_t len;
		assert_int_equal(text_deflate(text, lengths[i], &bytes, &len, NULL), RC_OK);
		assert_int_equal(text_inflate(bytes, len, lengths[i], &back, NULL), RC_OK);
		assert_memory_equal(back, text, lengths[i]);
		assert_int_equal(back[lengths[i]], '\0');
		if (lengths[i] > 1000)
			assert_in_range(len, 1, lengths[i] / 2);
	}
}

static void damaged_documents_are_noticed(void **state) {
	(void)state;
	const char text[] = "a text that is long enough to be damaged in the middle of it";
	auto_free void *bytes = NULL;
	char *back = NULL;
	size_t len;
	assert_int_equal(text_deflate(text, strlen(text), &bytes, &len, NULL), RC_OK);
	assert_int_equal(text_inflate(bytes, len, strlen(text) - 1, &back, NULL), RC_CORRUPT);
	assert_int_equal(text_inflate(bytes, len, strlen(text) + 1, &back, NULL), RC_CORRUPT);
	assert_int_equal(text_inflate(bytes, len - 1, strlen(text), &back, NULL), RC_CORRUPT);
	((uint8_t *)bytes)[len / 2] ^= 0x55;
	assert_int_equal(text_inflate(bytes, len, strlen(text), &back, NULL), RC_CORRUPT);
	assert_null(back);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(samples_come_back_as_they_were),
		cmocka_unit_test(a_usual_tick_takes_four_bytes_a_sample),
		cmocka_unit_test(damaged_bytes_are_noticed),
		cmocka_unit_test(rows_of_version_1_are_read),
		cmocka_unit_test(texts_are_deflated_and_inflated),
		cmocka_unit_test(damaged_documents_are_noticed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
