#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <string.h>
#include <zlib.h>
#include <cmocka.h>

#include "base/compiler.h"
#include "http/gzip.h"

static void gzip_suits_text(void **state) {
	(void)state;
	assert_true(gzip_suits("application/json", 1024));
	assert_true(gzip_suits("application/problem+json", 5000));
	assert_true(gzip_suits("text/html; charset=utf-8", 5000));
	assert_true(gzip_suits("image/svg+xml", 5000));
	assert_false(gzip_suits("application/json", 1023));
	assert_false(gzip_suits("image/png", 5000));
	assert_false(gzip_suits("text/event-stream", 5000));
}

static void gzip_gives_the_bytes_back(void **state) {
	(void)state;
	char text[5000], out[5000];
	memset(text, 'x', sizeof(text));
	size_t len;
	auto_free char *packed = gzip_compress(text, sizeof(text), &len);
	assert_non_null(packed);
	assert_true(len < 200);
	z_stream z = {.next_in = (unsigned char *)packed,
		.avail_in = (unsigned)len,
		.next_out = (unsigned char *)out,
		.avail_out = sizeof(out)};
	assert_int_equal(inflateInit2(&z, 15 + 16), Z_OK);
	assert_int_equal(inflate(&z, Z_FINISH), Z_STREAM_END);
	assert_int_equal(z.total_out, sizeof(text));
	assert_memory_equal(text, out, sizeof(text));
	inflateEnd(&z);
}

static void gzip_that_does_not_pay_is_none(void **state) {
	(void)state;
	unsigned char noise[2000];
	uint32_t x = 1;
	for (size_t i = 0; i < sizeof(noise); i++) {
		x = x * 1664525 + 1013904223;
		noise[i] = (unsigned char)(x >> 24);
	}
	size_t len;
	assert_null(gzip_compress((const char *)noise, sizeof(noise), &len));
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gzip_suits_text),
		cmocka_unit_test(gzip_gives_the_bytes_back),
		cmocka_unit_test(gzip_that_does_not_pay_is_none),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
