#include "db/compress.h"

#include <zlib.h>

enum rc text_deflate(const char *text, size_t len, void **out, size_t *out_len, struct err *err) {
	uLongf size = compressBound(len);
	auto_free Bytef *bytes = malloc(size);
	if (!bytes || compress2(bytes, &size, (const Bytef *)text, len, Z_BEST_SPEED) != Z_OK)
		return err_set(err, RC_NOMEM, "out of memory to compress %zu bytes", len);
	/* The bound is larger than the text: give back what was not needed. */
	void *exact = realloc(bytes, size);
	*out = exact ? exact : bytes;
	*out_len = size;
	bytes = NULL;
	return RC_OK;
}

enum rc text_inflate(const void *bytes, size_t len, size_t text_len, char **out, struct err *err) {
	uLongf size = text_len;
	auto_free char *text = malloc(text_len + 1);
	if (!text)
		return err_set(
			err, RC_NOMEM, "out of memory for a document of %zu bytes", text_len);
	const int code = uncompress((Bytef *)text, &size, bytes, len);
	if (code == Z_MEM_ERROR)
		return err_set(
			err, RC_NOMEM, "out of memory for a document of %zu bytes", text_len);
	if (code != Z_OK || size != text_len)
		return err_set(err, RC_CORRUPT, "a kept document is damaged");
	text[text_len] = '\0';
	*out = text;
	text = NULL;
	return RC_OK;
}
