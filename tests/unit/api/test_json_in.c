/* Bodies into structs: types, ranges, what is required, null and unknown; depth; labels. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "api/json_in.h"
#include "base/parse.h"

#define UNTOUCHED 77

struct thing {
	char name[9];
	int64_t count, watts_mw, maybe;
	bool on, has_name, has_maybe;
	const json_t *object, *array, *any;
};

static const struct json_in_field fields[] = {
	{"name", JSON_IN_STR, offsetof(struct thing, name), .size = 9,
		.seen_offset = JSON_IN_SEEN(struct thing, has_name)},
	{"count", JSON_IN_INT, offsetof(struct thing, count), .min = -3, .max = 10},
	{"watts", JSON_IN_MILLI, offsetof(struct thing, watts_mw), .min = 0, .max = 1000},
	{"maybe", JSON_IN_INT, offsetof(struct thing, maybe), .min = 1, .max = 2, .nullable = true,
		.seen_offset = JSON_IN_SEEN(struct thing, has_maybe)},
	{"on", JSON_IN_BOOL, offsetof(struct thing, on), .size = 0},
	{"object", JSON_IN_OBJECT, offsetof(struct thing, object), .size = 0},
	{"array", JSON_IN_ARRAY, offsetof(struct thing, array), .size = 0},
	{"any", JSON_IN_ANY, offsetof(struct thing, any), .size = 0},
	{"a/b~c", JSON_IN_BOOL, offsetof(struct thing, on), .size = 0},
};

static json_t *parse(const char *text) {
	json_t *v = NULL;
	struct err err = {0};
	if (json_in_text(text, strlen(text), &v, &err) != RC_OK)
		fail_msg("%s: %s", text, err.msg);
	return v;
}

static struct thing fresh(void) {
	return (struct thing){
		.name = "kept", .count = UNTOUCHED, .watts_mw = UNTOUCHED, .maybe = UNTOUCHED};
}

/* --- values that are taken --- */

static void test_every_type(void **state) {
	(void)state;
	struct thing t = fresh();
	struct err err = {0};
	json_t *body = parse("{\"name\":\"eight888\",\"count\":-3,\"watts\":5.5,\"maybe\":2,"
			     "\"on\":true,\"object\":{\"a\":1},\"array\":[1,2],\"any\":\"x\"}");
	assert_int_equal(json_in_fields(body, "", fields, array_len(fields), &t, &err), RC_OK);
	assert_string_equal(t.name, "eight888");
	assert_int_equal(t.count, -3);
	assert_int_equal(t.watts_mw, 5500);
	assert_int_equal(t.maybe, 2);
	assert_true(t.on);
	assert_true(t.has_name);
	assert_true(t.has_maybe);
	assert_int_equal(json_object_size(t.object), 1);
	assert_int_equal(json_array_size(t.array), 2);
	assert_string_equal(json_string_value(t.any), "x");
	json_decref(body);
}

static void test_absent_is_left_alone(void **state) {
	(void)state;
	struct thing t = fresh();
	struct err err = {0};
	json_t *body = parse("{}");
	assert_int_equal(json_in_fields(body, "", fields, array_len(fields), &t, &err), RC_OK);
	assert_string_equal(t.name, "kept");
	assert_int_equal(t.count, UNTOUCHED);
	assert_int_equal(t.watts_mw, UNTOUCHED);
	assert_false(t.has_name);
	assert_null(t.object);
	json_decref(body);
}

static void test_null_is_absent_but_seen(void **state) {
	(void)state;
	struct thing t = fresh();
	struct err err = {0};
	json_t *body = parse("{\"maybe\":null}");
	assert_int_equal(json_in_fields(body, "", fields, array_len(fields), &t, &err), RC_OK);
	assert_int_equal(t.maybe, UNTOUCHED);
	assert_true(t.has_maybe);
	json_decref(body);
}

static const struct {
	const char *text;
	int64_t mw;
} watts[] = {
	{"150", 150000}, /* an integer is a number too */
	{"0", 0},
	{"-0.0", 0},
	{"0.0004", 0},
	{"0.0005", 1},
	{"1e3", 1000000},
	{"999.9996", 1000000},
	{"8.25", 8250},
};

static void test_watts_become_milliwatts(void **state) {
	(void)state;
	for (size_t i = 0; i < array_len(watts); i++) {
		char text[64];
		struct thing t = fresh();
		struct err err = {0};
		snprintf(text, sizeof(text), "{\"watts\":%s}", watts[i].text);
		json_t *body = parse(text);
		assert_int_equal(
			json_in_fields(body, "", fields, array_len(fields), &t, &err), RC_OK);
		assert_int_equal(t.watts_mw, watts[i].mw);
		json_decref(body);
	}
}

/* --- values that are refused --- */

static const struct {
	const char *text, *base, *field, *says;
} refused[] = {
	{"{\"nosuch\":1}", "", "/nosuch", "is not a field"},
	{"{\"Name\":\"x\"}", "", "/Name", "is not a field"},
	{"{\"\":1}", "", "/", "is not a field"},
	{"{\"x/y~z\":1}", "/bmc", "/bmc/x~1y~0z", "is not a field"},
	{"{\"a/b~c\":1}", "", "/a~1b~0c", "must be true or false"},
	{"{\"name\":1}", "", "/name", "must be a string"},
	{"{\"name\":null}", "", "/name", "must be a string"},
	{"{\"name\":\"nine99999\"}", "", "/name", "at most 8 bytes"},
	{"{\"count\":\"1\"}", "", "/count", "must be an integer"},
	{"{\"count\":1.0}", "", "/count", "must be an integer"},
	{"{\"count\":11}", "", "/count", "from -3 to 10"},
	{"{\"count\":-4}", "", "/count", "from -3 to 10"},
	{"{\"count\":9223372036854775807}", "", "/count", "from -3 to 10"},
	{"{\"watts\":true}", "", "/watts", "must be a number"},
	{"{\"watts\":1000.001}", "", "/watts", "from 0 to 1000"},
	{"{\"watts\":-0.001}", "", "/watts", "from 0 to 1000"},
	{"{\"watts\":1e300}", "", "/watts", "from 0 to 1000"},
	{"{\"maybe\":3}", "/deep", "/deep/maybe", "from 1 to 2"},
	{"{\"on\":0}", "", "/on", "must be true or false"},
	{"{\"object\":[]}", "", "/object", "must be an object"},
	{"{\"array\":{}}", "", "/array", "must be an array"},
};

static void test_refusals_name_the_field(void **state) {
	(void)state;
	for (size_t i = 0; i < array_len(refused); i++) {
		struct thing t = fresh();
		struct err err = {0};
		json_t *body = parse(refused[i].text);
		assert_int_equal(
			json_in_fields(body, refused[i].base, fields, array_len(fields), &t, &err),
			RC_INVALID);
		assert_string_equal(err.field, refused[i].field);
		if (!strstr(err.msg, refused[i].says))
			fail_msg("%s: %s", refused[i].text, err.msg);
		json_decref(body);
	}
}

static void test_required(void **state) {
	(void)state;
	static const struct json_in_field needed[] = {
		{"name", JSON_IN_STR, offsetof(struct thing, name), .size = 9, .required = true},
		{"maybe", JSON_IN_INT, offsetof(struct thing, maybe), .max = 2, .required = true,
			.nullable = true},
	};
	struct thing t = fresh();
	struct err err = {0};
	json_t *body = parse("{\"maybe\":1}");
	assert_int_equal(
		json_in_fields(body, "/w", needed, array_len(needed), &t, &err), RC_INVALID);
	assert_string_equal(err.field, "/w/name");
	assert_string_equal(err.msg, "is required");
	json_decref(body);
	/* null answers the question where it is allowed. */
	body = parse("{\"name\":\"x\",\"maybe\":null}");
	assert_int_equal(json_in_fields(body, "", needed, array_len(needed), &t, &err), RC_OK);
	json_decref(body);
}

/* A name as long as the body may be does not run over. */
static void test_long_names_are_cut(void **state) {
	(void)state;
	char text[400] = "{\"";
	struct thing t = fresh();
	struct err err = {0};
	memset(text + 2, '~', 300);
	memcpy(text + 302, "\":1}", 5);
	json_t *body = parse(text);
	assert_int_equal(
		json_in_fields(body, "/base", fields, array_len(fields), &t, &err), RC_INVALID);
	assert_in_range(strlen(err.field), 90, sizeof(err.field) - 1);
	assert_memory_equal(err.field, "/base/~0~0", 10);
	json_decref(body);
}

/* --- text --- */

static const struct {
	const char *text;
	size_t len; /* 0: strlen */
	const char *says;
} bad_texts[] = {
	{"", 0, "needs a JSON object"},
	{"[]", 0, "must be a JSON object"},
	{"\"x\"", 0, "not JSON"},
	{"{\"a\":1", 0, "not JSON"},
	{"{\"a\":1} x", 0, "not JSON"},
	{"{\"a\":1,\"a\":2}", 0, "duplicate"},
	{"{\"a\":{\"b\":1,\"b\":1}}", 0, "duplicate"},
	{"{\"a\":\"\xff\"}", 0, "not JSON"},
	{"\xef\xbb\xbf{}", 0, "not JSON"},
	{"{\"a\":18446744073709551615}", 0, "not JSON"},
	{"{\"a\":NaN}", 0, "not JSON"},
	{"{\"a\":\"\\u0000\"}", 0, "not JSON"},
	{"{}\0", 3, "not JSON"},
};

static void test_text_that_is_no_object(void **state) {
	(void)state;
	for (size_t i = 0; i < array_len(bad_texts); i++) {
		size_t len = bad_texts[i].len ? bad_texts[i].len : strlen(bad_texts[i].text);
		json_t *v = NULL;
		struct err err = {0};
		assert_int_equal(json_in_text(bad_texts[i].text, len, &v, &err), RC_INVALID);
		assert_null(v);
		if (!strstr(err.msg, bad_texts[i].says))
			fail_msg("%s: %s", bad_texts[i].text, err.msg);
	}
}

/* depth containers inside each other, with a number in the middle. */
static enum rc parse_nested(unsigned depth, char open, char close) {
	char text[256] = "{\"a\":";
	size_t len = 5;
	struct err err = {0};
	json_t *v = NULL;
	for (unsigned i = 1; i < depth; i++) {
		len += (size_t)snprintf(
			text + len, sizeof(text) - len, open == '{' ? "{\"a\":" : "[");
	}
	text[len++] = '1';
	for (unsigned i = 1; i < depth; i++)
		text[len++] = close;
	text[len++] = '}';
	enum rc rc = json_in_text(text, len, &v, &err);
	json_decref(v);
	return rc;
}

static void test_depth(void **state) {
	(void)state;
	assert_int_equal(parse_nested(JSON_IN_MAX_DEPTH, '[', ']'), RC_OK);
	assert_int_equal(parse_nested(JSON_IN_MAX_DEPTH + 1, '[', ']'), RC_INVALID);
	assert_int_equal(parse_nested(JSON_IN_MAX_DEPTH, '{', '}'), RC_OK);
	assert_int_equal(parse_nested(JSON_IN_MAX_DEPTH + 1, '{', '}'), RC_INVALID);
}

/* --- labels --- */

static enum rc labels(const char *text, char *out, size_t size, struct err *err) {
	json_t *v = parse(text);
	enum rc rc = json_in_labels(v, "/labels", out, size, err);
	json_decref(v);
	return rc;
}

static void test_labels_are_canonical(void **state) {
	(void)state;
	char a[64], b[64];
	struct err err = {0};
	assert_int_equal(labels("{ \"rack\" : \"r7\",\n\"a\":\"\\u00e9\" }", a, 64, &err), RC_OK);
	assert_string_equal(a, "{\"a\":\"\xc3\xa9\",\"rack\":\"r7\"}");
	assert_int_equal(labels("{\"a\":\"\xc3\xa9\",\"rack\":\"r7\"}", b, 64, &err), RC_OK);
	assert_string_equal(a, b);
	assert_int_equal(labels("{}", a, 64, &err), RC_OK);
	assert_string_equal(a, "");
}

static void test_labels_have_limits(void **state) {
	(void)state;
	char text[1024] = "{", out[512];
	struct err err = {0};
	size_t len = 1;
	for (int i = 0; i < 17; i++)
		len += (size_t)snprintf(
			text + len, sizeof(text) - len, "\"k%d\":\"v\"%c", i, i == 16 ? '}' : ',');
	assert_int_equal(labels(text, out, sizeof(out), &err), RC_INVALID);
	assert_string_equal(err.field, "/labels");
	assert_string_equal(out, "");
	assert_int_equal(labels("{\"a\":1}", out, sizeof(out), &err), RC_INVALID);
	/* {"a":"b"} is nine bytes. */
	assert_int_equal(labels("{\"a\":\"b\"}", out, 9, &err), RC_INVALID);
	assert_string_equal(out, "");
	assert_int_equal(labels("{\"a\":\"b\"}", out, 10, &err), RC_OK);
	assert_string_equal(out, "{\"a\":\"b\"}");
}

static void test_labels_must_be_an_object(void **state) {
	(void)state;
	char out[16];
	struct err err = {0};
	json_t *v = json_array();
	assert_int_equal(json_in_labels(v, "/labels", out, sizeof(out), &err), RC_INVALID);
	json_decref(v);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_type),
		cmocka_unit_test(test_absent_is_left_alone),
		cmocka_unit_test(test_null_is_absent_but_seen),
		cmocka_unit_test(test_watts_become_milliwatts),
		cmocka_unit_test(test_refusals_name_the_field),
		cmocka_unit_test(test_required),
		cmocka_unit_test(test_long_names_are_cut),
		cmocka_unit_test(test_text_that_is_no_object),
		cmocka_unit_test(test_depth),
		cmocka_unit_test(test_labels_are_canonical),
		cmocka_unit_test(test_labels_have_limits),
		cmocka_unit_test(test_labels_must_be_an_object),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
