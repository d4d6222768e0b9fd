#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "http/accept.h"

static void types(void **state) {
	(void)state;
	static const struct {
		const char *accept, *types;
		int index;
	} cases[] = {
		{NULL, "application/json", 0},
		{"", "application/json", 0},
		{" , ", "application/json", 0},
		{"*/*", "application/json", 0},
		{"application/*", "application/json", 0},
		{"APPLICATION/JSON", "application/json", 0},
		{"application/json;charset=utf-8", "application/json", 0},
		{"application/json;q=0", "application/json", -1},
		{"application/json;q=0, */*", "application/json", -1},
		{"application/json;q=0.000", "application/json", -1},
		{"application/json;q=0.001", "application/json", 0},
		{"application/problem+json", "application/json", 0},
		{"application/vnd.x+json", "application/json", 0},
		{"text/html", "application/json", -1},
		{"text/*", "application/json", -1},
		{"text/html, */*;q=0.1", "application/json", 0},
		{"text/csv", "application/json,text/csv", 1},
		{"text/csv, application/json", "application/json,text/csv", 0},
		{"text/csv, */*", "application/json,text/csv", 1},
		{"text/csv;q=0.5, application/json;q=0.4", "application/json,text/csv", 1},
		{"text/csv;q=0.4, application/json;q=0.5", "application/json,text/csv", 0},
		{"text/*", "application/json, text/csv", 1},
		{"*/*", "application/json,text/csv", 0},
		{"text/event-stream;charset=utf-8", "text/event-stream", 0},
		{"text/plain;version=0.0.4;q=0.5,*/*;q=0.1", "text/plain", 0},
		{"a/b;p=\"x,y;q=0\", text/csv", "text/csv", 0},
		{"text", "text/csv", -1},
		{"*", "text/csv", -1},
		{";", "text/csv", -1},
		{"text/csv;q=2", "text/csv", 0},
		{"text/csv;q=", "text/csv", 0},
	};
	for (size_t i = 0; i < array_len(cases); i++) {
		if (accept_choose(cases[i].accept, cases[i].types) != cases[i].index)
			fail_msg("case %zu: %s", i, cases[i].accept ? cases[i].accept : "none");
	}
}

static void preference_over_json(void **state) {
	(void)state;
	assert_true(accept_prefers("text/csv", "text/csv"));
	assert_true(accept_prefers("text/csv, */*;q=0.1", "text/csv"));
	assert_true(accept_prefers("text/csv, */*", "text/csv"));
	assert_false(accept_prefers("text/csv, application/json", "text/csv"));
	assert_false(accept_prefers("*/*", "text/csv"));
	assert_false(accept_prefers(NULL, "text/csv"));
	assert_false(accept_prefers("text/html", "text/csv"));
	assert_false(accept_prefers("text/csv;q=0", "text/csv"));
}

static void encodings(void **state) {
	(void)state;
	static const struct {
		const char *header;
		bool gzip;
	} cases[] = {
		{NULL, false},
		{"", false},
		{"gzip", true},
		{"GZip", true},
		{"x-gzip", true},
		{"br, gzip, deflate", true},
		{"deflate", false},
		{"gzip;q=0", false},
		{"gzip; q=0.5", true},
		{"gzip;q=0.5, identity", false},
		{"gzip, identity;q=0.5", true},
		{"*", true},
		{"*;q=0", false},
		{"gzip;q=0, *", false},
		{"identity", false},
		{"gzipped", false},
	};
	for (size_t i = 0; i < array_len(cases); i++) {
		if (accept_gzip(cases[i].header) != cases[i].gzip)
			fail_msg("case %zu", i);
	}
}

static void content_types(void **state) {
	(void)state;
	assert_true(media_is_json("application/json"));
	assert_true(media_is_json("Application/JSON ; charset=utf-8"));
	assert_true(media_is_json("application/merge-patch+json"));
	assert_false(media_is_json(NULL));
	assert_false(media_is_json(""));
	assert_false(media_is_json("text/json"));
	assert_false(media_is_json("application/jsonx"));
	assert_false(media_is_json("+json"));
	assert_false(media_is_json("x+json"));
	assert_false(media_is_json(";"));
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(types),
		cmocka_unit_test(preference_over_json),
		cmocka_unit_test(encodings),
		cmocka_unit_test(content_types),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
