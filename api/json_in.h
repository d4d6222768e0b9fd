/*
 * Bodies into structs by tables of fields: unknown, missing and ill-typed members are refused by
 * JSON pointer. Numbers in watts become milliwatts here, and nowhere else.
 */
#ifndef DRIVEWATT_API_JSON_IN_H
#define DRIVEWATT_API_JSON_IN_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/rc.h"
#include "http/request.h"

enum json_in_type {
	JSON_IN_STR,    /* char[size] at offset; longer text is refused */
	JSON_IN_INT,    /* int64_t at offset within min … max */
	JSON_IN_MILLI,  /* JSON number within min … max → int64_t thousandths */
	JSON_IN_BOOL,   /* bool at offset */
	JSON_IN_OBJECT, /* borrowed json_t * at offset */
	JSON_IN_ARRAY,  /* likewise */
	JSON_IN_ANY,    /* likewise, of any type */
};

struct json_in_field {
	const char *name;
	enum json_in_type type;
	size_t offset;
	size_t size; /* of a string's room */
	int64_t min, max;
	bool required;
	bool nullable;      /* null is as if absent, but marks seen */
	size_t seen_offset; /* offset + 1 of a bool that is set when present; 0 none */
};

/* Offset of a "seen" marker. */
#define JSON_IN_SEEN(type, member) (offsetof(type, member) + 1)

#define JSON_IN_MAX_DEPTH 16 /* containers inside each other, the body itself included */

/* Parses text as one JSON object; *out is the caller's to json_decref. RC_INVALID for anything
 * else, for a name that comes twice and for deeper nesting. */
enum rc must_check json_in_text(const char *text, size_t len, json_t **out, struct err *err);
/* The same of the request's body. */
enum rc must_check json_in_body(const struct http_request *q, json_t **out, struct err *err);

/* Fills the struct at out, and err with all members at fault, as far as they fit; base is the
 * pointer of object ("" for the body). Members that are absent leave their place as it was. */
enum rc must_check json_in_fields(const json_t *object, const char *base,
	const struct json_in_field *fields, size_t n, void *out, struct err *err);

/* Checks that labels are an object of at most 16 short strings and writes them as canonical JSON
 * text (keys sorted) into out[size]; {} becomes "". */
enum rc must_check json_in_labels(
	const json_t *labels, const char *pointer, char *out, size_t size, struct err *err);

#endif
