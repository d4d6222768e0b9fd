#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/compiler.h"
#include "http/target.h"

static struct target t;
static char scratch[8192];

static enum rc parse(const char *raw) {
	struct err err;
	assert_true(strlen(raw) + 2 <= sizeof(scratch));
	return target_parse(&t, raw, scratch, &err);
}

static void segments_are_decoded_one_by_one(void **state) {
	(void)state;
	assert_int_equal(parse("/a/b%2Fc/%C3%A9?x=1"), RC_OK);
	assert_int_equal(t.segment_count, 3);
	assert_string_equal(t.segments[0], "a");
	assert_string_equal(t.segments[1], "b/c");
	assert_string_equal(t.segments[2], "\xc3\xa9");
	assert_int_equal(t.path_len, strlen("/a/b%2Fc/%C3%A9"));
	assert_int_equal(parse("/a+b"), RC_OK);
	assert_string_equal(t.segments[0], "a+b");
}

static void one_slash_at_the_end_is_dropped(void **state) {
	(void)state;
	static const struct {
		const char *raw;
		unsigned segments;
	} cases[] = {{"/", 0}, {"//", 1}, {"/a", 1}, {"/a/", 1}, {"/a//", 2}, {"/?a", 0}, {"?a", 0},
		{"", 0}};
	for (size_t i = 0; i < array_len(cases); i++) {
		assert_int_equal(parse(cases[i].raw), RC_OK);
		assert_int_equal(t.segment_count, cases[i].segments);
	}
}

static void arguments(void **state) {
	(void)state;
	assert_int_equal(parse("/?a=1&b&c=&a=2&&=&x=a%3Db%26+c&d=e=f&%24top=3"), RC_OK);
	assert_string_equal(target_arg(&t, "a"), "1");
	assert_string_equal(target_arg(&t, "b"), "");
	assert_string_equal(target_arg(&t, "c"), "");
	assert_string_equal(target_arg(&t, "x"), "a=b& c");
	assert_string_equal(target_arg(&t, "d"), "e=f");
	assert_string_equal(target_arg(&t, "$top"), "3");
	assert_null(target_arg(&t, "e"));
	assert_int_equal(t.arg_count, 7);
	assert_string_equal(t.args[3].name, "a");
}

static void bad_targets(void **state) {
	(void)state;
	static const char *const bad[] = {"/%", "/%4", "/%zz", "/%4g", "/a%00b", "/?a=%00", "/?%zz",
		"/\xff", "/%c0%af", "/%ed%a0%80", "/%f4%90%80%80", "/%f5%80%80%80", "/%e2%82",
		"/?a=%80", "/%c3/%a9"};
	for (size_t i = 0; i < array_len(bad); i++)
		assert_int_equal(parse(bad[i]), RC_INVALID);
	assert_int_equal(parse("*"), RC_NOT_FOUND);
	assert_int_equal(parse("a"), RC_NOT_FOUND);
}

static void good_utf8(void **state) {
	(void)state;
	static const char *const good[] = {"/%c2%80", "/%e0%a0%80", "/%ed%9f%bf", "/%ee%80%80",
		"/%f0%90%80%80", "/%f4%8f%bf%bf", "/%7f"};
	for (size_t i = 0; i < array_len(good); i++)
		assert_int_equal(parse(good[i]), RC_OK);
}

static void arguments_are_limited(void **state) {
	(void)state;
	char raw[400] = "/?a=1";
	for (int i = 1; i < TARGET_MAX_ARGS; i++)
		memcpy(raw + strlen(raw), "&a=1", 5);
	assert_int_equal(parse(raw), RC_OK);
	assert_int_equal(t.arg_count, TARGET_MAX_ARGS);
	memcpy(raw + strlen(raw), "&a=1", 5);
	assert_int_equal(parse(raw), RC_INVALID);
}

static void absolute_form(void **state) {
	(void)state;
	assert_string_equal(target_origin("/a?b"), "/a?b");
	assert_string_equal(target_origin("http://h:1/a?b"), "/a?b");
	assert_string_equal(target_origin("HTTPS://h/a"), "/a");
	assert_string_equal(target_origin("http://h"), "/");
	assert_string_equal(target_origin("http://h?x=/a"), "/");
	assert_string_equal(target_origin("*"), "*");
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(segments_are_decoded_one_by_one),
		cmocka_unit_test(one_slash_at_the_end_is_dropped),
		cmocka_unit_test(arguments),
		cmocka_unit_test(bad_targets),
		cmocka_unit_test(good_utf8),
		cmocka_unit_test(arguments_are_limited),
		cmocka_unit_test(absolute_form),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
