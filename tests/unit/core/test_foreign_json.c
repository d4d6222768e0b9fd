/* Bodies as BMCs send them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/buf.h"
#include "core/bmc/foreign_json.h"

struct body {
	const char *text;
	const char *reason; /* NULL: it parses */
	bool repaired;
	const char *key; /* then this number is found */
	double value;
};

static const struct body bodies[] = {
	{"{\"Name\":\"Drive tray\rA\",\"W\":42}", NULL, true, "W", 42},
	{"{\"SerialNumber\":\"\xff\xfe\xc0\x80\xed\xa0\x80\",\"W\":118.5}", NULL, true, "W", 118.5},
	{"{\"error\":{\"code\":\"Base.1.8.GeneralError\"}}\n{\"W\":210}", NULL, false, "W", 210},
	{"{\"W\":210}{\"error\":{\"code\":\"Base.1.8.GeneralError\"}}", NULL, false, "W", 210},
	{"{\"W\":1} {\"W\":2}\r\n\t ", NULL, false, "W", 2},
	{"\xef\xbb\xbf{\"W\":55}", NULL, true, "W", 55},
	{" \n{\"W\":18446744073709551615}", NULL, false, "W", 18446744073709551615.0},
	{"{\"a\\\"b\":\"\\\\\",\"W\":7}", NULL, false, "W", 7},
	{"{\"a\":\"\\u0000\",\"W\":8}", NULL, false, "W", 8},
	{"{\"a\":\"gr\xc3\xbc\xc3\x9f \xf0\x9f\x98\x80\",\"W\":9}", NULL, false, "W", 9},
	{"{\"error\":{\"code\":\"Base.1.8.GeneralError\"}}", "bmc_error", false, NULL, 0},
	{"<!DOCTYPE html><html></html>", "bmc_not_json", false, NULL, 0},
	{"", "bmc_not_json", false, NULL, 0},
	{"42", "bmc_not_json", false, NULL, 0},
	{"{\"a\":NaN,\"W\":61}", "bmc_bad_json", false, NULL, 0},
	{"{\"W\":1e400}", "bmc_bad_json", false, NULL, 0},
	{"{\"W\":1}garbage", "bmc_bad_json", false, NULL, 0},
	{"{\"PowerControl\":[{\"PowerConsumedWatts\":2", "bmc_truncated", false, NULL, 0},
};

static void bodies_are_read(void **state unused_arg) {
	for (size_t i = 0; i < array_len(bodies); i++) {
		const struct body *b = &bodies[i];
		struct foreign_json json;
		enum rc rc = foreign_json_parse(b->text, strlen(b->text), &json, NULL);
		if (b->reason) {
			assert_int_not_equal(rc, RC_OK);
			assert_string_equal(json.reason, b->reason);
			assert_int_equal(json.doc != NULL, rc == RC_REFUSED);
			json_decref(json.doc);
			continue;
		}
		assert_int_equal(rc, RC_OK);
		assert_null(json.reason);
		assert_int_equal(json.repaired, b->repaired);
		double value = json_number_value(json_object_get(json.doc, b->key));
		assert_true(value >= b->value && value <= b->value);
		json_decref(json.doc);
	}
}

static void repaired_text_is_kept(void **state unused_arg) {
	static const char text[] = "{\"a\":\"x\ty\xffz\"}";
	struct foreign_json json;
	assert_int_equal(foreign_json_parse(text, sizeof(text) - 1, &json, NULL), RC_OK);
	assert_string_equal(json_string_value(json_object_get(json.doc, "a")), "x y\xef\xbf\xbdz");
	json_decref(json.doc);
}

static void depth_is_bounded(void **state unused_arg) {
	for (int depth = FOREIGN_JSON_MAX_DEPTH - 2; depth < 5000; depth += 700) {
		struct buf text;
		struct foreign_json json;
		buf_init(&text, 20000);
		buf_adds(&text, "{\"a\":\"[[[[\",\"b\":");
		for (int i = 0; i < depth; i++)
			buf_addc(&text, '[');
		for (int i = 0; i < depth; i++)
			buf_addc(&text, ']');
		buf_addc(&text, '}');
		enum rc rc = foreign_json_parse(text.data, text.len, &json, NULL);
		assert_int_equal(rc, depth < FOREIGN_JSON_MAX_DEPTH ? RC_OK : RC_CORRUPT);
		json_decref(json.doc);
		buf_release(&text);
	}
}

static void size_is_bounded(void **state unused_arg) {
	struct foreign_json json;
	size_t len = FOREIGN_JSON_MAX_BYTES;
	auto_free char *text = malloc(len + 1);
	memset(text, ' ', len + 1);
	memcpy(text, "{}", 2);
	assert_int_equal(foreign_json_parse(text, len + 1, &json, NULL), RC_TOO_LARGE);
	assert_int_equal(foreign_json_parse(text, len, &json, NULL), RC_OK);
	json_decref(json.doc);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bodies_are_read),
		cmocka_unit_test(repaired_text_is_kept),
		cmocka_unit_test(depth_is_bounded),
		cmocka_unit_test(size_is_bounded),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
