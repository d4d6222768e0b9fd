/*
 * A streaming JSON writer into a struct buf: commas, quoting, UTF-8 and depth are its business,
 * the caller only says what comes. Errors are kept in the buffer (see buf_status). Misuse, such
 * as a value without a key inside an object, is a bug and aborts in debug builds.
 * A key given as NULL means "element of an array" or the top-level value. Not thread-safe.
 */
#ifndef DRIVEWATT_BASE_JSONW_H
#define DRIVEWATT_BASE_JSONW_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

#define JSONW_MAX_DEPTH 32

struct jsonw {
	struct buf *out; /* borrowed */
	unsigned depth;
	bool need_comma[JSONW_MAX_DEPTH];
	bool is_object[JSONW_MAX_DEPTH];
};

void jsonw_init(struct jsonw *w, struct buf *out);

void jsonw_object(struct jsonw *w, const char *key);
void jsonw_object_end(struct jsonw *w);
void jsonw_array(struct jsonw *w, const char *key);
void jsonw_array_end(struct jsonw *w);

void jsonw_null(struct jsonw *w, const char *key);
void jsonw_bool(struct jsonw *w, const char *key, bool v);
void jsonw_int(struct jsonw *w, const char *key, int64_t v);
void jsonw_uint(struct jsonw *w, const char *key, uint64_t v);
/* Shortest text that reads back as v within 15 significant digits; NaN and infinities are null. */
void jsonw_double(struct jsonw *w, const char *key, double v);
/* v thousandths as a decimal number without going through floating point: 5500 → 5.5.
 * For milliwatts as watts, millidegrees, milliseconds as seconds. INT64_MIN is null. */
void jsonw_milli(struct jsonw *w, const char *key, int64_t v);
/* NULL is null. Invalid UTF-8 becomes U+FFFD, control characters are escaped. */
void jsonw_str(struct jsonw *w, const char *key, const char *v);
void jsonw_strn(struct jsonw *w, const char *key, const char *v, size_t len);
void jsonw_strf(struct jsonw *w, const char *key, const char *fmt, ...) printf_like(3, 4);
/* RFC 3339 UTC with milliseconds and Z from epoch milliseconds; INT64_MIN is null. */
void jsonw_time(struct jsonw *w, const char *key, int64_t epoch_ms);
/* Bytes that are already valid JSON. */
void jsonw_raw(struct jsonw *w, const char *key, const char *json, size_t len);

/* No value: what jsonw_milli and jsonw_time show as null. */
#define JSONW_NONE INT64_MIN

#endif
