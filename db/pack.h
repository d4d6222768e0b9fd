/* A tick's samples as bytes: their series, times and values as columns, about 3 bytes each. */
#ifndef DRIVEWATT_DB_PACK_H
#define DRIVEWATT_DB_PACK_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "model/sample.h"

void pack_samples(struct buf *out, const struct sample *s, size_t n);
/* *out is the caller's to free, also when it is false: the bytes are damaged, more than max, or
 * there is no memory. */
bool must_check unpack_samples(
	const void *bytes, size_t len, size_t max, struct sample **out, size_t *n);

#endif
