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
	auto_free uint8_t *bytes = malloc(pack_bound(n));
	struct unpacker u;
	struct sample got;
	const size_t len = pack_samples(s, n, bytes);
	assert_in_range(len, 1, pack_bound(n));
	assert_true(unpack_begin(&u, bytes, len));
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(unpack_next(&u, &got), UNPACKED_SAMPLE);
		assert_memory_equal(&got, &s[i], sizeof(got));
	}
	assert_int_equal(unpack_next(&u, &got), UNPACKED_END);
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
static void a_usual_tick_takes_less_than_ten_bytes_a_sample(void **state) {
	(void)state;
	struct sample s[1000];
	uint8_t bytes[1 + 40 * array_len(s)];
	for (size_t i = 0; i < array_len(s); i++)
		s[i] = (struct sample){(int64_t)i + 1, 1700000000000 + (int64_t)i % 3,
			5000000000 + (int64_t)i * 90000, 8000 + (int64_t)(i * 7919 % 9000)};
	assert_in_range(pack_samples(s, array_len(s), bytes), 1, array_len(s) * 10);
}

static void damaged_bytes_are_noticed(void **state) {
	(void)state;
	const struct sample s[] = {{1, 1700000000000, 5000000000, 12345}};
	uint8_t bytes[64];
	struct unpacker u;
	struct sample got;
	const size_t len = pack_samples(s, 1, bytes);
	for (size_t cut = 2; cut < len; cut++) {
		assert_true(unpack_begin(&u, bytes, cut));
		assert_int_equal(unpack_next(&u, &got), UNPACKED_DAMAGED);
	}
	memset(bytes + 1, 0xff, sizeof(bytes) - 1);
	assert_true(unpack_begin(&u, bytes, sizeof(bytes)));
	assert_int_equal(unpack_next(&u, &got), UNPACKED_DAMAGED);
	bytes[0] = 2;
	assert_false(unpack_begin(&u, bytes, sizeof(bytes)));
	assert_false(unpack_begin(&u, bytes, 0));
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
		cmocka_unit_test(a_usual_tick_takes_less_than_ten_bytes_a_sample),
		cmocka_unit_test(damaged_bytes_are_noticed),
		cmocka_unit_test(texts_are_deflated_and_inflated),
		cmocka_unit_test(damaged_documents_are_noticed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
