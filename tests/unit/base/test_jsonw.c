#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <math.h>

#include "base/jsonw.h"

struct out {
	struct buf buf;
	struct jsonw w;
};

static void out_init(struct out *o, size_t max) {
	buf_init(&o->buf, max);
	jsonw_init(&o->w, &o->buf);
}

#define assert_text(o, text) \
	do { \
		assert_int_equal(buf_status(&(o)->buf, NULL), RC_OK); \
		assert_string_equal(buf_str(&(o)->buf), text); \
		buf_release(&(o)->buf); \
	} while (0)

static void nests(void **state) {
	(void)state;
	struct out o;
	out_init(&o, 1000);
	jsonw_object(&o.w, NULL);
	jsonw_null(&o.w, "a");
	jsonw_array(&o.w, "b");
	jsonw_int(&o.w, NULL, 1);
	jsonw_object(&o.w, NULL);
	jsonw_object_end(&o.w);
	jsonw_array(&o.w, NULL);
	jsonw_array_end(&o.w);
	jsonw_array_end(&o.w);
	jsonw_bool(&o.w, "c", true);
	jsonw_bool(&o.w, "d", false);
	jsonw_raw(&o.w, "e", "[7]", 3);
	jsonw_strf(&o.w, "f", "%d%%", 5);
	jsonw_object_end(&o.w);
	assert_text(
		&o, "{\"a\":null,\"b\":[1,{},[]],\"c\":true,\"d\":false,\"e\":[7],\"f\":\"5%\"}");
}

static void top_level_may_be_a_value(void **state) {
	(void)state;
	struct out o;
	out_init(&o, 100);
	jsonw_str(&o.w, NULL, "x");
	assert_text(&o, "\"x\"");
}

static void integers(void **state) {
	(void)state;
	struct out o;
	out_init(&o, 1000);
	jsonw_array(&o.w, NULL);
	jsonw_int(&o.w, NULL, 0);
	jsonw_int(&o.w, NULL, -7);
	jsonw_int(&o.w, NULL, INT64_MAX);
	jsonw_int(&o.w, NULL, INT64_MIN);
	jsonw_uint(&o.w, NULL, UINT64_MAX);
	jsonw_array_end(&o.w);
	assert_text(&o, "[0,-7,9223372036854775807,-9223372036854775808,18446744073709551615]");
}

static void thousandths(void **state) {
	(void)state;
	static const struct {
		int64_t v;
		const char *text;
	} cases[] = {
		{0, "0"},
		{5500, "5.5"},
		{-5500, "-5.5"},
		{1, "0.001"},
		{-1, "-0.001"},
		{10, "0.01"},
		{100, "0.1"},
		{1000, "1"},
		{25000, "25"},
		{12345, "12.345"},
		{INT64_MAX, "9223372036854775.807"},
		{INT64_MIN + 1, "-9223372036854775.807"},
		{JSONW_NONE, "null"},
	};
	for (size_t i = 0; i < array_len(cases); i++) {
		struct out o;
		out_init(&o, 100);
		jsonw_milli(&o.w, NULL, cases[i].v);
		assert_text(&o, cases[i].text);
	}
}

static void doubles(void **state) {
	(void)state;
	static const struct {
		double v;
		const char *text;
	} cases[] = {
		{0, "0"},
		{150, "150"},
		{0.1, "0.1"},
		{-0.5, "-0.5"},
		{2.675, "2.675"},
		{0.1 + 0.2, "0.3"},
		{1.0 / 3, "0.333333333333333"},
		{1e-7, "1e-07"},
		{1e22, "1e+22"},
		{123456789012345678.0, "1.23456789012346e+17"},
		{1.7976931348623157e308, "1.79769313486232e+308"},
		{NAN, "null"},
		{INFINITY, "null"},
		{-INFINITY, "null"},
	};
	for (size_t i = 0; i < array_len(cases); i++) {
		struct out o;
		out_init(&o, 100);
		jsonw_double(&o.w, NULL, cases[i].v);
		assert_text(&o, cases[i].text);
	}
}

static void strings(void **state) {
	(void)state;
	static const struct {
		const char *in;
		size_t len;
		const char *out;
	} cases[] = {
		{"", 0, "\"\""},
		{"plain", 5, "\"plain\""},
		{"a\"b\\c/d", 7, "\"a\\\"b\\\\c/d\""},
		{"\b\t\n\f\r", 5, "\"\\b\\t\\n\\f\\r\""},
		{"\x01\x1f\x7f", 3, "\"\\u0001\\u001f\x7f\""},
		{"a\0b", 3, "\"a\\u0000b\""},
		{"\xc3\xa4\xe2\x82\xac\xf0\x9f\x94\x8c", 9,
			"\"\xc3\xa4\xe2\x82\xac\xf0\x9f\x94\x8c\""},
		/* a lone tail, a cut sequence, an overlong one, a surrogate, beyond U+10FFFF */
		{"\x80", 1, "\"\xef\xbf\xbd\""},
		{"x\xe2\x82", 3, "\"x\xef\xbf\xbd\xef\xbf\xbd\""},
		{"\xc0\xaf", 2, "\"\xef\xbf\xbd\xef\xbf\xbd\""},
		{"\xed\xa0\x80", 3, "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""},
		{"\xf4\x90\x80\x80z", 5, "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbdz\""},
		{"\xff!", 2, "\"\xef\xbf\xbd!\""},
	};
	for (size_t i = 0; i < array_len(cases); i++) {
		struct out o;
		out_init(&o, 200);
		jsonw_strn(&o.w, NULL, cases[i].in, cases[i].len);
		assert_text(&o, cases[i].out);
	}
}

static void null_string_is_null(void **state) {
	(void)state;
	struct out o;
	out_init(&o, 100);
	jsonw_str(&o.w, NULL, NULL);
	assert_text(&o, "null");
}

static void keys_are_escaped(void **state) {
	(void)state;
	struct out o;
	out_init(&o, 100);
	jsonw_object(&o.w, NULL);
	jsonw_int(&o.w, "a\"\xff", 1);
	jsonw_object_end(&o.w);
	assert_text(&o, "{\"a\\\"\xef\xbf\xbd\":1}");
}

static void times(void **state) {
	(void)state;
	struct out o;
	out_init(&o, 200);
	jsonw_array(&o.w, NULL);
	jsonw_time(&o.w, NULL, 0);
	jsonw_time(&o.w, NULL, 1796065080123);
	jsonw_time(&o.w, NULL, JSONW_NONE);
	jsonw_array_end(&o.w);
	assert_text(&o, "[\"1970-01-01T00:00:00.000Z\",\"2026-11-30T18:58:00.123Z\",null]");
}

static void maximum_is_kept(void **state) {
	(void)state;
	struct out o;
	for (size_t max = 0; max < 20; max++) {
		out_init(&o, max);
		jsonw_array(&o.w, NULL);
		jsonw_str(&o.w, NULL, "0123456789");
		jsonw_strf(&o.w, NULL, "%d", 42);
		jsonw_array_end(&o.w);
		bool fits = max >= strlen("[\"0123456789\",\"42\"]");
		assert_int_equal(buf_status(&o.buf, NULL), fits ? RC_OK : RC_TOO_LARGE);
		buf_release(&o.buf);
	}
}

static void depth_is_bounded(void **state) {
	(void)state;
	struct out o;
	for (unsigned depth = JSONW_MAX_DEPTH; depth <= JSONW_MAX_DEPTH + 3; depth++) {
		out_init(&o, 1000);
		for (unsigned i = 0; i < depth; i++)
			jsonw_array(&o.w, NULL);
		for (unsigned i = 0; i < depth; i++)
			jsonw_array_end(&o.w);
		enum rc wanted = depth <= JSONW_MAX_DEPTH ? RC_OK : RC_TOO_LARGE;
		assert_int_equal(buf_status(&o.buf, NULL), wanted);
		assert_int_equal(o.w.depth, 0);
		buf_release(&o.buf);
	}
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nests),
		cmocka_unit_test(top_level_may_be_a_value),
		cmocka_unit_test(integers),
		cmocka_unit_test(thousandths),
		cmocka_unit_test(doubles),
		cmocka_unit_test(strings),
		cmocka_unit_test(null_string_is_null),
		cmocka_unit_test(keys_are_escaped),
		cmocka_unit_test(times),
		cmocka_unit_test(maximum_is_kept),
		cmocka_unit_test(depth_is_bounded),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
