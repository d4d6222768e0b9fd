/*
 * Columns of integers in few bytes: the differences to what was expected (a level, a slope, or the
 * slope before), with their common divisor taken out, as Rice codes. What is chosen stands in the
 * column, so that times, readings, sums and counts need no codes of their own. Whatever the values,
 * they come back as they were. Pure; any thread.
 */
#ifndef DRIVEWATT_BASE_COLUMN_H
#define DRIVEWATT_BASE_COLUMN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

/* What is left to read. Borrowed bytes. */
struct column_reader {
	const uint8_t *at, *end;
};

static inline struct column_reader column_reader(const void *bytes, size_t len) {
	return (struct column_reader){bytes, (const uint8_t *)bytes + len};
}

/* Integers of either sign in 1 to 10 bytes, small ones in few. */
void varint_put(struct buf *out, int64_t v);
/* False when the bytes end or are none. */
bool must_check varint_get(struct column_reader *in, int64_t *v);

/* Appends n values. v is used as scratch: its contents are lost. */
void column_put(struct buf *out, int64_t *v, size_t n);
/* Reads as many values as were put; v NULL passes over them. False when the bytes are damaged such
 * that it shows: then v holds anything. */
bool must_check column_get(struct column_reader *in, int64_t *v, size_t n);

#endif
