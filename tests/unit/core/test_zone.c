/* Days of time zones: against the C library, and hours that were known to be odd. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#include "base/parse.h"
#include "core/energy/zone.h"
#include "core/energy/zone_rule.h"

static int64_t at(const char *text) {
	int64_t ms = 0;
	assert_int_equal(parse_time_ms(text, 0, &ms, "", NULL), RC_OK);
	return ms;
}

static struct zone *load(const char *name) {
	struct err err;
	struct zone *z = zone_load(ZONE_DIR, name, &err);
	assert_non_null(z);
	return z;
}

static void days_have_their_length(void **state unused_arg) {
	static const struct {
		const char *zone, *begin, *next;
	} days[] = {
		{"Europe/Berlin", "2026-03-29T00:00:00+01:00",
			"2026-03-30T00:00:00+02:00"}, /* 23 h */
		{"Europe/Berlin", "2026-10-25T00:00:00+02:00",
			"2026-10-26T00:00:00+01:00"}, /* 25 h */
		{"Europe/Berlin", "2026-10-26T13:14:15+01:00", "2026-10-27T00:00:00+01:00"},
		{"UTC", "2026-03-29T00:00:00Z", "2026-03-30T00:00:00Z"},
		{"Asia/Kolkata", "2026-03-29T00:00:00+05:30", "2026-03-30T00:00:00+05:30"},
		/* There was no midnight. */
		{"America/Sao_Paulo", "2018-11-03T00:00:00-03:00", "2018-11-04T01:00:00-02:00"},
		/* There was no 30 December. */
		{"Pacific/Apia", "2011-12-29T00:00:00-10:00", "2011-12-31T00:00:00+14:00"},
		/* Long after the listed changes, by rule. */
		{"Europe/Berlin", "2090-03-26T00:00:00+01:00", "2090-03-27T00:00:00+02:00"},
		{"Europe/Berlin", "2090-10-29T00:00:00+02:00", "2090-10-30T00:00:00+01:00"},
	};
	for (size_t i = 0; i < array_len(days); i++) {
		struct zone *z = load(days[i].zone);
		assert_int_equal(zone_next_day_ms(z, at(days[i].begin)), at(days[i].next));
		zone_free(z);
	}
}

static void agrees_with_the_c_library(void **state unused_arg) {
	static const char *const names[] = {"Europe/Berlin", "America/New_York", "Australia/Sydney",
		"Asia/Tehran", "Africa/Casablanca", "America/St_Johns", "Asia/Kathmandu"};
	for (size_t i = 0; i < array_len(names); i++) {
		struct zone *z = load(names[i]);
		setenv("TZ", names[i], 1);
		tzset();
		/* Every 5 days and some hours from 1950 to 2100. */
		for (time_t t = -631152000; t < 4102444800; t += 450001) {
			struct tm tm;
			localtime_r(&t, &tm);
			assert_int_equal(zone_offset_s(z, t), tm.tm_gmtoff);
		}
		zone_free(z);
	}
	unsetenv("TZ");
	tzset();
}

static void rules_agree_with_the_c_library(void **state unused_arg) {
	static const char *const rules[] = {"CET-1CEST,M3.5.0,M10.5.0/3", "EST5EDT,M3.2.0,M11.1.0",
		"AEST-10AEDT,M10.1.0,M4.1.0/3", "<+03>-3", "IST-5:30", "XXX3YYY,J60,J300/1",
		"XXX3YYY,59/0,299/25:30", "<-02>2<-01>,M3.5.0/-1,M10.5.0/0"};
	for (size_t i = 0; i < array_len(rules); i++) {
		struct zone_rule r;
		assert_true(zone_rule_parse(rules[i], &r));
		setenv("TZ", rules[i], 1);
		tzset();
		for (time_t t = 0; t < 4102444800; t += 86399) {
			struct tm tm;
			localtime_r(&t, &tm);
			assert_int_equal(zone_rule_offset_s(&r, t), tm.tm_gmtoff);
		}
	}
	unsetenv("TZ");
	tzset();
}

static void refuses_what_is_no_rule(void **state unused_arg) {
	static const char *const bad[] = {"", "CET", "CE-1", "CET-1CEST", "CET-1CEST,M3.5.0",
		"CET-1CEST,M13.5.0,M10.5.0", "CET-1CEST,M3.5.0,M10.5.0x", "<+03-3", "CET-200"};
	struct zone_rule r;
	for (size_t i = 0; i < array_len(bad); i++)
		assert_false(zone_rule_parse(bad[i], &r));
}

static void refuses_other_names(void **state unused_arg) {
	static const char *const bad[] = {"", "Mars/Olympus", "/etc/passwd", "../../etc/passwd",
		"Europe/../../../etc/passwd", "Europe", "Europe//Berlin", "tzdata.zi",
		"Europe/Berlin ",
		"Etc/GMT+1234567890123456789012345678901234567890123456789012345678901234567890"};
	for (size_t i = 0; i < array_len(bad); i++) {
		struct err err = {0};
		assert_null(zone_load(ZONE_DIR, bad[i], &err));
		assert_int_equal(err.rc, RC_INVALID);
		assert_string_equal(err.field, "tz");
	}
}

static void survives_damaged_files(void **state unused_arg) {
	unsigned char data[8192];
	FILE *f = fopen(ZONE_DIR "/Europe/Berlin", "rb");
	assert_non_null(f);
	size_t len = fread(data, 1, sizeof(data), f);
	fclose(f);
	for (size_t cut = 0; cut < len; cut += 3)
		zone_free(zone_parse(data, cut, NULL));
	for (size_t i = 0; i < len; i++) {
		unsigned char whole = data[i];
		data[i] = 0xff;
		zone_free(zone_parse(data, len, NULL));
		data[i] = whole;
	}
	struct zone *z = zone_parse(data, len, NULL);
	assert_non_null(z);
	zone_free(z);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(days_have_their_length),
		cmocka_unit_test(agrees_with_the_c_library),
		cmocka_unit_test(rules_agree_with_the_c_library),
		cmocka_unit_test(refuses_what_is_no_rule),
		cmocka_unit_test(refuses_other_names),
		cmocka_unit_test(survives_damaged_files),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
