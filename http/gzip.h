#ifndef DRIVEWATT_HTTP_GZIP_H
#define DRIVEWATT_HTTP_GZIP_H

#include <stdbool.h>
#include <stddef.h>

/* Below this, headers outweigh what compression saves. */
#define GZIP_MIN_BYTES 1024

/* Whether answers of this media type are worth compressing. */
bool gzip_suits(const char *content_type, size_t len);
/* NULL when memory is out or the result is not smaller; the caller frees it. */
char *gzip_compress(const char *data, size_t len, size_t *out_len);

#endif
