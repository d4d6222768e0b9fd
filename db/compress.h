/* Long texts, deflated for the store. */
#ifndef DRIVEWATT_DB_COMPRESS_H
#define DRIVEWATT_DB_COMPRESS_H

#include <stddef.h>

#include "base/rc.h"

/* *out is the caller's to free. */
enum rc must_check text_deflate(
	const char *text, size_t len, void **out, size_t *out_len, struct err *err);
/* text_len as it was; *out is NUL-terminated and the caller's to free. RC_CORRUPT when the bytes
 * do not give that many. */
enum rc must_check text_inflate(
	const void *bytes, size_t len, size_t text_len, char **out, struct err *err);

#endif
