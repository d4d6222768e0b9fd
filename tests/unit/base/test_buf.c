#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/buf.h"

static void empty_is_an_empty_string(void **state) {
	(void)state;
	struct buf b;
	buf_init(&b, 10);
	assert_string_equal(buf_str(&b), "");
	assert_int_equal(buf_status(&b, NULL), RC_OK);
	assert_null(buf_take(&b, NULL));
	buf_release(&b);
	buf_release(NULL);
}

static void appends_in_order(void **state) {
	(void)state;
	struct buf b;
	buf_init(&b, 1000);
	buf_add(&b, "a\0b", 3);
	buf_adds(&b, "cd");
	buf_addc(&b, 'e');
	buf_printf(&b, "%d-%s", 42, "x");
	assert_int_equal(b.len, 10);
	assert_memory_equal(b.data, "a\0bcde42-x", 11);
	buf_release(&b);
}

static void fills_to_the_last_byte(void **state) {
	(void)state;
	for (size_t max = 0; max < 1030; max += 7) {
		struct buf b;
		buf_init(&b, max);
		for (size_t i = 0; i < max; i++)
			buf_addc(&b, 'x');
		assert_int_equal(buf_status(&b, NULL), RC_OK);
		assert_int_equal(b.len, max);
		assert_true(b.cap <= max + 1);
		buf_addc(&b, 'y');
		assert_int_equal(buf_status(&b, NULL), RC_TOO_LARGE);
		assert_int_equal(strlen(buf_str(&b)), max);
		buf_release(&b);
	}
}

static void overflow_keeps_what_was_there(void **state) {
	(void)state;
	struct buf b;
	struct err err;
	buf_init(&b, 5);
	buf_adds(&b, "abc");
	buf_adds(&b, "def");
	buf_adds(&b, "g"); /* would fit, but comes after the gap */
	assert_string_equal(buf_str(&b), "abc");
	assert_int_equal(buf_status(&b, &err), RC_TOO_LARGE);
	assert_non_null(strstr(err.msg, "5 bytes"));
	assert_null(buf_take(&b, NULL));
	assert_int_equal(buf_status(&b, NULL), RC_OK);
	buf_release(&b);
}

static void printf_respects_the_maximum(void **state) {
	(void)state;
	struct buf b;
	buf_init(&b, 8);
	buf_printf(&b, "%s", "12345678");
	assert_int_equal(buf_status(&b, NULL), RC_OK);
	buf_printf(&b, "%d", 1);
	assert_int_equal(buf_status(&b, NULL), RC_TOO_LARGE);
	assert_string_equal(buf_str(&b), "12345678");
	buf_release(&b);
}

static void reset_forgets_the_failure(void **state) {
	(void)state;
	struct buf b;
	buf_init(&b, 3);
	buf_adds(&b, "abcd");
	buf_reset(&b);
	assert_int_equal(buf_status(&b, NULL), RC_OK);
	buf_adds(&b, "xyz");
	assert_string_equal(buf_str(&b), "xyz");
	buf_reset(&b);
	assert_string_equal(buf_str(&b), "");
	buf_release(&b);
}

static void take_hands_over(void **state) {
	(void)state;
	struct buf b;
	size_t len = 99;
	buf_init(&b, 100);
	buf_adds(&b, "hello");
	char *text = buf_take(&b, &len);
	assert_string_equal(text, "hello");
	assert_int_equal(len, 5);
	free(text);
	assert_null(b.data);
	buf_adds(&b, "again");
	assert_string_equal(buf_str(&b), "again");
	buf_release(&b);
}

static void room_beyond_memory_is_nomem(void **state) {
	(void)state;
	struct buf b;
	buf_init(&b, SIZE_MAX / 4);
	buf_adds(&b, "kept");
	assert_null(buf_room(&b, SIZE_MAX / 8));
	assert_int_equal(buf_status(&b, NULL), RC_NOMEM);
	assert_string_equal(buf_str(&b), "kept");
	buf_release(&b);
}

/* Without it, asking AddressSanitizer for too much is fatal, not NULL. */
const char *__asan_default_options(void);
const char *__asan_default_options(void) {
	return "allocator_may_return_null=1";
}
const char *__tsan_default_options(void);
const char *__tsan_default_options(void) {
	return "allocator_may_return_null=1";
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(empty_is_an_empty_string),
		cmocka_unit_test(appends_in_order),
		cmocka_unit_test(fills_to_the_last_byte),
		cmocka_unit_test(overflow_keeps_what_was_there),
		cmocka_unit_test(printf_respects_the_maximum),
		cmocka_unit_test(reset_forgets_the_failure),
		cmocka_unit_test(take_hands_over),
		cmocka_unit_test(room_beyond_memory_is_nomem),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
