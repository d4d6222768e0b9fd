#include "api/json_in.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/parse.h"

#define BODY_MAX_DEPTH 16
#define LABELS_MAX 16
#define LABEL_VALUE_MAX 128

static unsigned depth_of(const json_t *v, unsigned limit) {
	unsigned deepest = 0;
	if (limit == 0)
		return 1;
	if (json_is_object(v)) {
		const char *key;
		json_t *member;
		json_object_foreach((json_t *)v, key, member) {
			unsigned d = depth_of(member, limit - 1);
			deepest = d > deepest ? d : deepest;
		}
		return deepest + 1;
	}
	for (size_t i = 0; json_is_array(v) && i < json_array_size(v); i++) {
		unsigned d = depth_of(json_array_get(v, i), limit - 1);
		deepest = d > deepest ? d : deepest;
	}
	return deepest + (json_is_array(v) ? 1 : 0);
}

enum rc json_in_body(const struct http_request *q, json_t **out, struct err *err) {
	size_t len;
	const char *text = http_body(q, &len);
	json_error_t e;
	if (len == 0)
		return err_set(err, RC_INVALID, "the request needs a JSON object as its body");
	json_t *v = json_loadb(text, len, JSON_REJECT_DUPLICATES, &e);
	if (!v)
		return err_set(err, RC_INVALID, "the body is not JSON: %.120s (line %d, column %d)",
			e.text, e.line, e.column);
	if (json_is_object(v) && depth_of(v, BODY_MAX_DEPTH) <= BODY_MAX_DEPTH) {
		*out = v;
		return RC_OK;
	}
	bool is_object = json_is_object(v);
	json_decref(v);
	return err_set(err, RC_INVALID,
		is_object ? "the body is nested too deeply" : "the body must be a JSON object");
}

static const char *type_word(enum json_in_type t) {
	static const char *const words[] = {
		[JSON_IN_STR] = "a string",
		[JSON_IN_INT] = "an integer",
		[JSON_IN_MILLI] = "a number",
		[JSON_IN_BOOL] = "true or false",
		[JSON_IN_OBJECT] = "an object",
		[JSON_IN_ARRAY] = "an array",
		[JSON_IN_ANY] = "a value",
	};
	return words[t];
}

static bool type_fits(const json_t *v, enum json_in_type t) {
	switch (t) {
	case JSON_IN_STR:
		return json_is_string(v);
	case JSON_IN_INT:
		return json_is_integer(v);
	case JSON_IN_MILLI:
		return json_is_number(v);
	case JSON_IN_BOOL:
		return json_is_boolean(v);
	case JSON_IN_OBJECT:
		return json_is_object(v);
	case JSON_IN_ARRAY:
		return json_is_array(v);
	case JSON_IN_ANY:
		return true;
	}
	return false;
}

static enum rc store_string(const json_t *v, const char *pointer, const struct json_in_field *f,
	char *place, struct err *err) {
	const char *s = json_string_value(v);
	if (strlen(s) != json_string_length(v))
		return err_field(err, RC_INVALID, pointer, "must not contain U+0000");
	if (!str_copy(place, f->size, s))
		return err_field(
			err, RC_INVALID, pointer, "must be at most %zu bytes long", f->size - 1);
	return RC_OK;
}

static enum rc store(const json_t *v, const char *pointer, const struct json_in_field *f,
	char *place, struct err *err) {
	switch (f->type) {
	case JSON_IN_STR:
		return store_string(v, pointer, f, place, err);
	case JSON_IN_INT: {
		int64_t i = json_integer_value(v);
		if (i < f->min || i > f->max)
			return err_field(err, RC_INVALID, pointer, "must be from %lld to %lld",
				(long long)f->min, (long long)f->max);
		memcpy(place, &i, sizeof(i));
		return RC_OK;
	}
	case JSON_IN_MILLI: {
		double d = json_number_value(v);
		if (!(d >= (double)f->min && d <= (double)f->max))
			return err_field(err, RC_INVALID, pointer, "must be from %lld to %lld",
				(long long)f->min, (long long)f->max);
		int64_t milli = llround(d * 1000.0);
		memcpy(place, &milli, sizeof(milli));
		return RC_OK;
	}
	case JSON_IN_BOOL: {
		bool b = json_is_true(v);
		memcpy(place, &b, sizeof(b));
		return RC_OK;
	}
	case JSON_IN_OBJECT:
	case JSON_IN_ARRAY:
	case JSON_IN_ANY:
		memcpy(place, &v, sizeof(v));
		return RC_OK;
	}
	return err_set(err, RC_INTERNAL, "field table has an unknown type");
}

static const struct json_in_field *find(
	const struct json_in_field *fields, size_t n, const char *name) {
	for (size_t i = 0; i < n; i++)
		if (strcmp(fields[i].name, name) == 0)
			return &fields[i];
	return NULL;
}

static enum rc take_member(const char *name, const json_t *v, const char *base,
	const struct json_in_field *fields, size_t n, char *out, struct err *err) {
	char pointer[96];
	snprintf(pointer, sizeof(pointer), "%s/%s", base, name);
	const struct json_in_field *f = find(fields, n, name);
	if (!f)
		return err_field(err, RC_INVALID, pointer, "is not a field of this resource");
	if (f->seen_offset)
		*(bool *)(out + f->seen_offset - 1) = true;
	if (json_is_null(v) && f->nullable)
		return RC_OK;
	if (!type_fits(v, f->type))
		return err_field(err, RC_INVALID, pointer, "must be %s", type_word(f->type));
	return store(v, pointer, f, out + f->offset, err);
}

enum rc json_in_fields(const json_t *object, const char *base, const struct json_in_field *fields,
	size_t n, void *out, struct err *err) {
	const char *name;
	json_t *v;
	json_object_foreach((json_t *)object, name, v) {
		enum rc rc = take_member(name, v, base, fields, n, out, err);
		if (rc != RC_OK)
			return rc;
	}
	for (size_t i = 0; i < n; i++) {
		if (!fields[i].required || json_object_get(object, fields[i].name))
			continue;
		char pointer[96];
		snprintf(pointer, sizeof(pointer), "%s/%s", base, fields[i].name);
		return err_field(err, RC_INVALID, pointer, "is required");
	}
	return RC_OK;
}

enum rc json_in_labels(
	const json_t *labels, const char *pointer, char *out, size_t size, struct err *err) {
	const char *name;
	json_t *v;
	out[0] = '\0';
	if (json_object_size(labels) > LABELS_MAX)
		return err_field(
			err, RC_INVALID, pointer, "must have at most %d members", LABELS_MAX);
	json_object_foreach((json_t *)labels, name, v) {
		if (!json_is_string(v) || json_string_length(v) > LABEL_VALUE_MAX)
			return err_field(err, RC_INVALID, pointer,
				"every label must be a string of at most %d bytes",
				LABEL_VALUE_MAX);
	}
	if (json_object_size(labels) == 0)
		return RC_OK;
	size_t len = json_dumpb(labels, out, size - 1, JSON_COMPACT | JSON_SORT_KEYS);
	if (len == 0 || len >= size) {
		out[0] = '\0';
		return err_field(
			err, RC_INVALID, pointer, "must be at most %zu bytes of JSON", size - 1);
	}
	out[len] = '\0';
	return RC_OK;
}
