#include "http/gzip.h"

#include <limits.h>
#include <string.h>
#include <zlib.h>

#include "base/compiler.h"

/* Level 1 takes a third of level 6's time for a quarter more bytes. */
#define LEVEL 1
#define WINDOW_BITS_GZIP (15 + 16)
#define MEMORY_LEVEL 8

bool gzip_suits(const char *content_type, size_t len) {
	static const char *const parts[] = {"text/", "json", "javascript", "xml", "yaml"};
	if (len < GZIP_MIN_BYTES || len > INT_MAX ||
		!strncmp(content_type, "text/event-stream", 17))
		return false;
	for (size_t i = 0; i < array_len(parts); i++) {
		if (strstr(content_type, parts[i]))
			return true;
	}
	return false;
}

char *gzip_compress(const char *data, size_t len, size_t *out_len) {
	z_stream z = {.next_in = (z_const Bytef *)data, .avail_in = (uInt)len};
	if (deflateInit2(&z, LEVEL, Z_DEFLATED, WINDOW_BITS_GZIP, MEMORY_LEVEL,
		    Z_DEFAULT_STRATEGY) != Z_OK)
		return NULL;
	char *out = malloc(len);
	z.next_out = (Bytef *)out;
	z.avail_out = (uInt)len;
	bool fits = out && deflate(&z, Z_FINISH) == Z_STREAM_END;
	*out_len = z.total_out;
	deflateEnd(&z);
	if (fits)
		return out;
	free(out);
	return NULL;
}
