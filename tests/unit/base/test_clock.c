#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/clock.h"

static int64_t fake_wall(void) {
	return 123;
}

static int64_t fake_mono(void) {
	return 7999999;
}

static void clocks_are_real(void **state) {
	(void)state;
	assert_true(clock_wall_ms() > 1600000000000);
	int64_t before = clock_mono_ns();
	assert_true(before > 0);
	assert_true(clock_mono_ns() >= before);
}

static void clocks_can_be_replaced(void **state) {
	(void)state;
	clock_replace(fake_wall, fake_mono);
	assert_int_equal(clock_wall_ms(), 123);
	assert_int_equal(clock_mono_ns(), 7999999);
	assert_int_equal(clock_mono_ms(), 7);
	clock_replace(NULL, NULL);
	assert_true(clock_wall_ms() > 1600000000000);
}

static void boot_id_is_stable(void **state) {
	(void)state;
	const char *id = clock_boot_id();
	assert_int_equal(strlen(id), 36);
	assert_ptr_equal(id, clock_boot_id());
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(clocks_are_real),
		cmocka_unit_test(clocks_can_be_replaced),
		cmocka_unit_test(boot_id_is_stable),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
