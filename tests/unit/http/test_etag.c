#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <string.h>
#include <cmocka.h>

#include "http/etag.h"
#include "http/request.h"

static void lists_name_whole_tags(void **state) {
	(void)state;
	const char *tag = "\"c7.o9\"";
	assert_true(etag_list_has("\"c7.o9\"", tag));
	assert_true(etag_list_has("W/\"c7.o9\"", tag));
	assert_true(etag_list_has(" * ", tag));
	assert_true(etag_list_has("\"a\",\"b\" , \"c7.o9\"", tag));
	assert_true(etag_list_has("\"c7.o9-gz\"", tag));
	assert_true(etag_list_has("\"c7.o9\"", "\"c7.o9-gz\""));
	assert_false(etag_list_has("\"c7\"", tag));
	assert_false(etag_list_has("\"c7.o99\"", tag));
	assert_false(etag_list_has("c7.o9", tag));
	assert_false(etag_list_has("", tag));
	assert_false(etag_list_has("\"c7.o9", tag));
	assert_false(etag_list_has("**", tag));
	assert_false(etag_list_has("W/", tag));
	assert_false(etag_list_has("\"c7.o9\"", ""));
}

static void lists_name_configurations(void **state) {
	(void)state;
	assert_true(etag_list_has_config("\"c7\"", 7, false));
	assert_true(etag_list_has_config("\"c7.o1\"", 7, false));
	assert_true(etag_list_has_config("\"c7-gz\"", 7, false));
	assert_true(etag_list_has_config("\"x\", \"c7.o1-gz\"", 7, false));
	assert_true(etag_list_has_config("*", 7, false));
	assert_true(etag_list_has_config("\"c18446744073709551615\"", UINT64_MAX, false));
	assert_false(etag_list_has_config("W/\"c7\"", 7, false));
	assert_false(etag_list_has_config("\"c70\"", 7, false));
	assert_false(etag_list_has_config("\"c7\"", 70, false));
	assert_false(etag_list_has_config("\"7\"", 7, false));
	assert_false(etag_list_has_config("\"c07\"", 7, false));
	assert_false(etag_list_has_config("", 7, false));
	assert_true(etag_list_has_config("W/\"c7.o1\"", 7, true));
	assert_false(etag_list_has_config("W/\"c8\"", 7, true));
}

static void tags_are_made(void **state) {
	(void)state;
	struct http_response r = {.status = 0};
	http_set_etag(&r, 7, UINT64_MAX);
	assert_string_equal(r.etag, "\"c7\"");
	http_set_etag(&r, UINT64_MAX, UINT64_MAX - 1);
	assert_string_equal(r.etag, "\"c18446744073709551615.o18446744073709551614\"");
	etag_mark_gzip(r.etag, sizeof(r.etag));
	assert_string_equal(r.etag, "\"c18446744073709551615.o18446744073709551614-gz\"");
	char none[8] = "";
	etag_mark_gzip(none, sizeof(none));
	assert_string_equal(none, "");
	char fits[8] = "\"ab\"";
	etag_mark_gzip(fits, sizeof(fits));
	assert_string_equal(fits, "\"ab-gz\"");
	char too_long[8] = "\"abc\"";
	etag_mark_gzip(too_long, sizeof(too_long));
	assert_string_equal(too_long, "");
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lists_name_whole_tags),
		cmocka_unit_test(lists_name_configurations),
		cmocka_unit_test(tags_are_made),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
