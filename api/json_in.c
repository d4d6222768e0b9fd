#include "api/json_in.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/parse.h"

#define LABELS_MAX 16
#define POINTER_SIZE 96 /* as err.field */
#define LABEL_VALUE_MAX 128

/* Are there more than limit containers inside each other? */
static bool nests_deeper(const json_t *v, unsigned limit) {
	const char *key;
	json_t *member;
	size_t i;
	if (!json_is_object(v) && !json_is_array(v))
		return false;
	if (limit == 0)
		return true;
	json_object_foreach((json_t *)v, key, member) {
		if (nests_deeper(member, limit - 1))
			return true;
	}
	json_array_foreach(v, i, member) {
		if (nests_deeper(member, limit - 1))
			return true;
	}
	return false;
}

enum rc json_in_text(const char *text, size_t len, json_t **out, struct err *err) {
	json_error_t e;
	if (len == 0)
		return err_set(err, RC_INVALID, "the request needs a JSON object as its body");
	json_t *v = json_loadb(text, len, JSON_REJECT_DUPLICATES, &e);
	if (!v)
		return err_set(err, RC_INVALID, "the body is not JSON: %.120s (line %d, column %d)",
			e.text, e.line, e.column);
	if (json_is_object(v) && !nests_deeper(v, JSON_IN_MAX_DEPTH)) {
		*out = v;
		return RC_OK;
	}
	bool is_object = json_is_object(v);
	json_decref(v);
	return err_set(err, RC_INVALID,
		is_object ? "the body is nested too deeply" : "the body must be a JSON object");
}

enum rc json_in_body(const struct http_request *q, json_t **out, struct err *err) {
	size_t len;
	const char *text = http_body(q, &len);
	return json_in_text(text, len, out, err);
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

/* RFC 6901 section 3: ~ and / of a name are written ~0 and ~1. What does not fit is cut. */
static void pointer_join(char out[POINTER_SIZE], const char *base, const char *name) {
	size_t len = (size_t)snprintf(out, POINTER_SIZE, "%s/", base);
	for (; *name && len + 3 < POINTER_SIZE; name++) {
		if (*name == '~' || *name == '/')
			out[len++] = '~';
		out[len++] = (char)(*name == '~' ? '0' : *name == '/' ? '1' : *name);
	}
	if (len < POINTER_SIZE)
		out[len] = '\0';
}

static enum rc take_member(const char *name, const json_t *v, const char *base,
	const struct json_in_field *fields, size_t n, char *out, struct err *err) {
	char pointer[POINTER_SIZE];
	pointer_join(pointer, base, name);
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

/* The first fault becomes *all, which may be NULL; later ones are added to it. */
static void note_fault(enum rc *rc, struct err *all, const struct err *fault) {
	if (all && *rc == RC_OK)
		*all = *fault;
	else if (all)
		err_more(all, fault->field, fault->msg);
	if (*rc == RC_OK)
		*rc = fault->rc;
}

enum rc json_in_fields(const json_t *object, const char *base, const struct json_in_field *fields,
	size_t n, void *out, struct err *err) {
	enum rc rc = RC_OK;
	struct err fault;
	const char *name;
	json_t *v;
	json_object_foreach((json_t *)object, name, v) {
		if (take_member(name, v, base, fields, n, out, &fault) != RC_OK)
			note_fault(&rc, err, &fault);
	}
	for (size_t i = 0; i < n; i++) {
		if (!fields[i].required || json_object_get(object, fields[i].name))
			continue;
		char pointer[POINTER_SIZE];
		pointer_join(pointer, base, fields[i].name);
		err_field(&fault, RC_INVALID, pointer, "is required");
		note_fault(&rc, err, &fault);
	}
	return rc;
}

enum rc json_in_labels(
	const json_t *labels, const char *pointer, char *out, size_t size, struct err *err) {
	const char *name;
	json_t *v;
	out[0] = '\0';
	if (!json_is_object(labels))
		return err_field(err, RC_INVALID, pointer, "must be an object");
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
