#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <time.h>

#include "base/parse.h"

#define BAD INT64_MIN /* the case must be refused */

struct text_case {
	const char *text;
	int64_t value;
};

static void check(const struct text_case *c, enum rc rc, int64_t v, const struct err *err) {
	if (rc != (c->value == BAD ? RC_INVALID : RC_OK))
		fail_msg("\"%s\": %s", c->text, rc_name(rc));
	if (rc == RC_OK && v != c->value)
		fail_msg("\"%s\": got %lld", c->text, (long long)v);
	if (rc != RC_OK) {
		assert_int_equal(err->rc, RC_INVALID);
		assert_string_equal(err->field, "limit");
		assert_true(err->msg[0] != '\0');
	}
}

static void integers(void **state) {
	(void)state;
	static const struct text_case cases[] = {
		{"0", 0},
		{"42", 42},
		{"-5", -5},
		{"1000", 1000},
		{"1001", BAD},
		{"-1001", BAD},
		{"", BAD},
		{"-", BAD},
		{"+1", BAD},
		{" 1", BAD},
		{"1 ", BAD},
		{"1.0", BAD},
		{"1e3", BAD},
		{"0x10", BAD},
		{"--1", BAD},
		{"9223372036854775808", BAD},
		{"99999999999999999999999", BAD},
	};
	for (size_t i = 0; i < array_len(cases); i++) {
		int64_t v = 0;
		struct err err;
		enum rc rc = parse_i64(cases[i].text, -1000, 1000, &v, "limit", &err);
		check(&cases[i], rc, v, &err);
	}
	int64_t v;
	assert_int_equal(
		parse_i64("9223372036854775807", INT64_MIN, INT64_MAX, &v, "limit", NULL), RC_OK);
	assert_true(v == INT64_MAX);
	assert_int_equal(
		parse_i64("-9223372036854775808", INT64_MIN, INT64_MAX, &v, "limit", NULL), RC_OK);
	assert_true(v == INT64_MIN);
	assert_int_equal(parse_i64("-9223372036854775809", INT64_MIN, INT64_MAX, &v, "limit", NULL),
		RC_INVALID);
}

static void booleans(void **state) {
	(void)state;
	static const struct text_case cases[] = {
		{"true", 1},
		{"yes", 1},
		{"on", 1},
		{"1", 1},
		{"false", 0},
		{"no", 0},
		{"off", 0},
		{"0", 0},
		{"", BAD},
		{"2", BAD},
		{"True", BAD},
		{"truely", BAD},
	};
	for (size_t i = 0; i < array_len(cases); i++) {
		bool v = false;
		struct err err;
		enum rc rc = parse_bool(cases[i].text, &v, "limit", &err);
		check(&cases[i], rc, v, &err);
	}
}

static void durations(void **state) {
	(void)state;
	static const struct text_case cases[] = {
		{"250ms", 250},
		{"10s", 10000},
		{"5m", 300000},
		{"24h", 86400000},
		{"7d", 604800000},
		{"0s", 0},
		{"-1s", BAD},
		{"10", BAD},
		{"s", BAD},
		{"", BAD},
		{"1.5h", BAD},
		{"10 s", BAD},
		{"10sec", BAD},
		{"106751991168d", BAD},
		{"9223372036854775807ms", INT64_MAX},
	};
	for (size_t i = 0; i < array_len(cases); i++) {
		int64_t v = 0;
		struct err err;
		enum rc rc = parse_duration_ms(cases[i].text, &v, "limit", &err);
		check(&cases[i], rc, v, &err);
	}
}

static void byte_sizes(void **state) {
	(void)state;
	static const struct text_case cases[] = {
		{"512", 512},
		{"64k", 65536},
		{"128KiB", 131072},
		{"4kb", 4096},
		{"1M", 1048576},
		{"2g", 2147483648},
		{"1TiB", 1099511627776},
		{"511", BAD},
		{"2TiB", BAD},
		{"k", BAD},
		{"", BAD},
		{"-1k", BAD},
		{"1kk", BAD},
		{"1.5k", BAD},
		{"9007199254740992t", BAD},
	};
	for (size_t i = 0; i < array_len(cases); i++) {
		int64_t v = 0;
		struct err err;
		enum rc rc = parse_bytes(cases[i].text, 512, INT64_C(1) << 40, &v, "limit", &err);
		check(&cases[i], rc, v, &err);
	}
}

static void times(void **state) {
	(void)state;
	const int64_t now_ms = 1000000000000;
	static const struct text_case cases[] = {
		{"1970-01-01T00:00:00Z", 0},
		{"1970-01-01T00:00:00.001Z", 1},
		{"1969-12-31T23:59:59.999Z", -1},
		{"2026-11-30T18:58:00Z", 1796065080000},
		{"2026-11-30T18:58:00.1Z", 1796065080100},
		{"2026-11-30T18:58:00.123987z", 1796065080123},
		{"2026-11-30t19:58:00+01:00", 1796065080000},
		{"2026-11-30T13:28:00-05:30", 1796065080000},
		{"2000-02-29T00:00:00Z", 951782400000},
		{"2016-12-31T23:59:60Z", 1483228800000},
		{"now", 1000000000000},
		{"-24h", 1000000000000 - 86400000},
		{"-250ms", 1000000000000 - 250},
		/* Nothing that format_time could not show. */
		{"-106751991167d", BAD},
		{"0000-01-01T00:00:00+00:01", BAD},
		{"0000-01-01T00:00:00Z", -62167219200000},
		{"9999-12-31T23:59:59.999Z", 253402300799999},
		{"9999-12-31T23:59:59-00:01", BAD},
		{"2023-02-29T00:00:00Z", BAD},
		{"1900-02-29T00:00:00Z", BAD},
		{"2026-04-31T00:00:00Z", BAD},
		{"2026-13-01T00:00:00Z", BAD},
		{"2026-00-01T00:00:00Z", BAD},
		{"2026-11-30T24:00:00Z", BAD},
		{"2026-11-30T18:60:00Z", BAD},
		{"2026-11-30T18:58:61Z", BAD},
		{"2026-11-30T18:58:00", BAD},
		{"2026-11-30T18:58:00.Z", BAD},
		{"2026-11-30T18:58:00+1:00", BAD},
		{"2026-11-30T18:58:00+24:00", BAD},
		{"2026-11-30T18:58:00Zx", BAD},
		{"2026-11-30 18:58:00Z", BAD},
		{"2026-11-30", BAD},
		{"26-11-30T18:58:00Z", BAD},
		{"24h", BAD},
		{"-", BAD},
		{"--24h", BAD},
		{"", BAD},
	};
	for (size_t i = 0; i < array_len(cases); i++) {
		int64_t v = 0;
		struct err err;
		enum rc rc = parse_time_ms(cases[i].text, now_ms, &v, "limit", &err);
		check(&cases[i], rc, v, &err);
	}
}

/* libc's calendar is the judge, over all days of several centuries. */
static void formatted_times_agree_with_libc(void **state) {
	(void)state;
	for (int64_t s = -5000000000; s < 8000000000; s += 86400 * 3 + 7919) {
		char ours[32], theirs[64];
		struct tm tm;
		time_t t = s;
		assert_non_null(gmtime_r(&t, &tm));
		strftime(theirs, sizeof(theirs), "%Y-%m-%dT%H:%M:%S.042Z", &tm);
		format_time(s * 1000 + 42, ours);
		assert_string_equal(ours, theirs);
		int64_t back;
		assert_int_equal(parse_time_ms(ours, 0, &back, "t", NULL), RC_OK);
		assert_true(back == s * 1000 + 42);
	}
}

static void formatted_times_are_clamped(void **state) {
	(void)state;
	char text[32];
	format_time(INT64_MAX, text);
	assert_string_equal(text, "9999-12-31T23:59:59.999Z");
	format_time(INT64_MIN, text);
	assert_string_equal(text, "0000-01-01T00:00:00.000Z");
}

static void copies_are_bounded(void **state) {
	(void)state;
	char out[4] = "xxx";
	assert_true(str_copy(out, sizeof(out), "abc"));
	assert_string_equal(out, "abc");
	assert_false(str_copy(out, sizeof(out), "defg"));
	assert_string_equal(out, "def");
	assert_false(str_copy(out, 0, "z"));
	assert_string_equal(out, "def");
}

static void padded_fields_are_trimmed(void **state) {
	(void)state;
	char out[8];
	str_copy_padded(out, sizeof(out), "  AB 1    ", 10);
	assert_string_equal(out, "AB 1");
	str_copy_padded(out, sizeof(out), "          ", 10);
	assert_string_equal(out, "");
	str_copy_padded(out, sizeof(out), "A\x01\xff", 3);
	assert_string_equal(out, "A??");
	str_copy_padded(out, sizeof(out), "AB\0CD", 5);
	assert_string_equal(out, "AB");
	str_copy_padded(out, sizeof(out), "0123456789", 10);
	assert_string_equal(out, "0123456");
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(integers),
		cmocka_unit_test(booleans),
		cmocka_unit_test(durations),
		cmocka_unit_test(byte_sizes),
		cmocka_unit_test(times),
		cmocka_unit_test(formatted_times_agree_with_libc),
		cmocka_unit_test(formatted_times_are_clamped),
		cmocka_unit_test(copies_are_bounded),
		cmocka_unit_test(padded_fields_are_trimmed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
