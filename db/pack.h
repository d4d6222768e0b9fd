/*
 * A tick's samples as bytes: a version, then for each sample the differences to the one before of
 * series, wall time, monotonic time and value, as variable-length integers: about 9 bytes each.
 */
#ifndef DRIVEWATT_DB_PACK_H
#define DRIVEWATT_DB_PACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/sample.h"

/* No n samples take more. */
static inline size_t pack_bound(size_t n) {
	return 1 + n * 40;
}

/* out holds pack_bound(n) bytes; returns how many were used. */
size_t pack_samples(const struct sample *s, size_t n, uint8_t *out);

struct unpacker {
	const uint8_t *at, *end;
	struct sample last;
};

/* False for bytes of another version. */
bool unpack_begin(struct unpacker *u, const void *bytes, size_t len);
enum unpacked { UNPACKED_SAMPLE, UNPACKED_END, UNPACKED_DAMAGED };
enum unpacked unpack_next(struct unpacker *u, struct sample *out);

#endif
