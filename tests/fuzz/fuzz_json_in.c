/* Bodies of requests: any bytes, through a table with a field of every type. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "api/json_in.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct thing {
	char name[9], before;
	int64_t count, watts_mw, maybe;
	bool on, has_maybe;
	const json_t *labels, *array, *any;
};

static const struct json_in_field fields[] = {
	{"name", JSON_IN_STR, offsetof(struct thing, name), .size = 9},
	{"count", JSON_IN_INT, offsetof(struct thing, count), .min = -3, .max = 10},
	{"watts", JSON_IN_MILLI, offsetof(struct thing, watts_mw), .min = 0, .max = 1000},
	{"maybe", JSON_IN_INT, offsetof(struct thing, maybe), .min = INT64_MIN, .max = INT64_MAX,
		.nullable = true, .seen_offset = JSON_IN_SEEN(struct thing, has_maybe)},
	{"on", JSON_IN_BOOL, offsetof(struct thing, on), .size = 0},
	{"labels", JSON_IN_OBJECT, offsetof(struct thing, labels), .size = 0},
	{"array", JSON_IN_ARRAY, offsetof(struct thing, array), .size = 0},
	{"any", JSON_IN_ANY, offsetof(struct thing, any), .required = true},
};

static void must(bool holds) {
	if (!holds)
		abort();
}

static bool told(const struct err *err) {
	return err->rc == RC_INVALID && err->msg[0] && strlen(err->field) < sizeof(err->field);
}

/* What was written as labels reads back to the same text. */
static void try_labels(const json_t *labels) {
	char text[512], again[512];
	struct err err = {0};
	json_t *v = NULL;
	if (json_in_labels(labels, "/labels", text, sizeof(text), &err) != RC_OK) {
		must(told(&err) && text[0] == '\0');
		return;
	}
	if (text[0] == '\0')
		return;
	must(json_in_text(text, strlen(text), &v, &err) == RC_OK);
	must(json_in_labels(v, "/labels", again, sizeof(again), &err) == RC_OK);
	must(strcmp(text, again) == 0);
	json_decref(v);
}

static void try_fields(const json_t *body) {
	struct thing t = {.before = 'x'};
	struct err err = {0};
	enum rc rc = json_in_fields(body, "/base", fields, array_len(fields), &t, &err);
	must(t.before == 'x' && memchr(t.name, 0, sizeof(t.name)));
	must(t.count >= -3 && t.count <= 10 && t.watts_mw >= 0 && t.watts_mw <= 1000000);
	must(rc == RC_OK ? t.any != NULL : told(&err));
	if (rc == RC_OK && t.labels)
		try_labels(t.labels);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	json_t *v = NULL;
	struct err err = {0};
	if (json_in_text((const char *)data, size, &v, &err) != RC_OK) {
		must(told(&err) && !v);
		return 0;
	}
	try_fields(v);
	try_labels(v);
	json_decref(v);
	return 0;
}
