#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <stdlib.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/id.h"

static int64_t wall_ms = 1796065080123;

static int64_t fake_wall(void) {
	return wall_ms;
}

static void uuids_are_random(void **state) {
	(void)state;
	char a[ID_UUID_SIZE], b[ID_UUID_SIZE];
	id_uuid(a);
	id_uuid(b);
	assert_true(id_is_uuid(a));
	assert_int_equal(a[14], '4');
	assert_string_not_equal(a, b);
}

/* Also within a millisecond and when the clock goes back. */
static void ordered_uuids_sort_by_creation(void **state) {
	(void)state;
	char before[ID_UUID_SIZE], after[ID_UUID_SIZE];
	clock_replace(fake_wall, NULL);
	id_uuid_ordered(before);
	assert_true(id_is_uuid(before));
	assert_int_equal(before[14], '7');
	assert_non_null(strchr("89ab", before[19]));
	/* The first 48 bits are the time. */
	char first[13] = {0};
	memcpy(first, before, 8);
	memcpy(first + 8, before + 9, 4);
	assert_int_equal(strtoll(first, NULL, 16), wall_ms);
	for (int i = 0; i < 10000; i++) {
		if (i == 5000)
			wall_ms -= 1000;
		id_uuid_ordered(after);
		assert_true(strcmp(before, after) < 0);
		memcpy(before, after, sizeof(before));
	}
	clock_replace(NULL, NULL);
}

static void uuid_syntax(void **state) {
	(void)state;
	assert_true(id_is_uuid("6a2f41a3-c54c-4f37-a3a5-0d6ec4f3a2f1"));
	assert_false(id_is_uuid(""));
	assert_false(id_is_uuid("6a2f41a3-c54c-4f37-a3a5-0d6ec4f3a2f"));
	assert_false(id_is_uuid("6a2f41a3-c54c-4f37-a3a5-0d6ec4f3a2f12"));
	assert_false(id_is_uuid("6a2f41a3-c54c-4f37-a3a5-0d6ec4f3a2fg"));
	assert_false(id_is_uuid("6a2f41a3c54c-4f37-a3a5-0d6ec4f3a2f1--"));
}

static void hashes_are_fixed_for_ever(void **state) {
	(void)state;
	const char *const parts[] = {"144d", "nqn.2014-08.org.nvmexpress:uuid:1", "S4N1"};
	char a[ID_HASH_SIZE], b[ID_HASH_SIZE];
	id_hash(parts, 3, a);
	id_hash(parts, 3, b);
	assert_string_equal(a, b);
	assert_string_equal(a, "gq9DdoQUswKC4MHp7cGQng");
	assert_int_equal(strlen(a), ID_HASH_SIZE - 1);
	assert_int_equal(
		strspn(a, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"),
		strlen(a));
}

static void hashes_tell_parts_apart(void **state) {
	(void)state;
	const char *const ab_c[] = {"ab", "c"}, *const a_bc[] = {"a", "bc"}, *const abc[] = {"abc"};
	char x[ID_HASH_SIZE], y[ID_HASH_SIZE], z[ID_HASH_SIZE];
	id_hash(ab_c, 2, x);
	id_hash(a_bc, 2, y);
	id_hash(abc, 1, z);
	assert_string_not_equal(x, y);
	assert_string_not_equal(x, z);
	assert_string_not_equal(y, z);
}

static void random_hex_has_its_length(void **state) {
	(void)state;
	static const size_t sizes[] = {0, 1, 16, 31, 32, 33, 64, 100};
	for (size_t i = 0; i < array_len(sizes); i++) {
		char text[256];
		memset(text, 'x', sizeof(text));
		id_random_hex(sizes[i], text);
		assert_int_equal(strlen(text), sizes[i] * 2);
		assert_int_equal(strspn(text, "0123456789abcdef"), sizes[i] * 2);
	}
	char a[33], b[33];
	id_random_hex(16, a);
	id_random_hex(16, b);
	assert_string_not_equal(a, b);
}

static void names(void **state) {
	(void)state;
	char longest[66];
	memset(longest, 'a', sizeof(longest));
	longest[64] = '\0';
	assert_true(id_is_name(longest));
	longest[64] = 'a';
	longest[65] = '\0';
	assert_false(id_is_name(longest));
	assert_true(id_is_name("rack-7.node_1"));
	assert_true(id_is_name("-"));
	assert_false(id_is_name(""));
	assert_false(id_is_name(".hidden"));
	assert_false(id_is_name(".."));
	assert_false(id_is_name("a/b"));
	assert_false(id_is_name("a b"));
	assert_false(id_is_name("\xc3\xa4"));
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(uuids_are_random),
		cmocka_unit_test(ordered_uuids_sort_by_creation),
		cmocka_unit_test(uuid_syntax),
		cmocka_unit_test(hashes_are_fixed_for_ever),
		cmocka_unit_test(hashes_tell_parts_apart),
		cmocka_unit_test(random_hex_has_its_length),
		cmocka_unit_test(names),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
