#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/address.h"

static bool are_one(const char *a, const char *b) {
	uint8_t of_a[ADDRESS_NETWORK_BYTES], of_b[ADDRESS_NETWORK_BYTES];
	address_network(a, of_a);
	address_network(b, of_b);
	return memcmp(of_a, of_b, sizeof(of_a)) == 0;
}

static void what_counts_as_one_client(void **state) {
	(void)state;
	assert_true(are_one("192.0.2.1", "192.0.2.1"));
	assert_false(are_one("192.0.2.1", "192.0.2.2"));
	assert_true(are_one("2001:db8:1:2::1", "2001:db8:1:2:ffff::9"));
	assert_false(are_one("2001:db8:1:2::1", "2001:db8:1:3::1"));
	assert_true(are_one("", "no address"));
	assert_false(are_one("", "0.0.0.0"));
	assert_false(are_one("127.0.0.1", "::1"));
}

int main(void) {
	const struct CMUnitTest tests[] = {cmocka_unit_test(what_counts_as_one_client)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
