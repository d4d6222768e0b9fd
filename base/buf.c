#include "base/buf.h"

#include <stdio.h>
#include <string.h>

#define CAP_FIRST 256

void buf_init(struct buf *b, size_t max) {
	*b = (struct buf){.max = max};
}

void buf_release(struct buf *b) {
	if (!b)
		return;
	free(b->data);
	buf_init(b, b->max);
}

void buf_reset(struct buf *b) {
	b->len = 0;
	b->failed = RC_OK;
	if (b->data)
		b->data[0] = '\0';
}

static size_t cap_for(const struct buf *b, size_t need) {
	size_t cap = b->cap ? b->cap : CAP_FIRST;
	while (cap < need && cap <= b->max / 2)
		cap *= 2;
	if (cap < need || cap > b->max)
		cap = b->max + 1;
	return cap;
}

static bool grow(struct buf *b, size_t cap) {
	char *data = realloc(b->data, cap);
	if (!data) {
		b->failed = RC_NOMEM;
		return false;
	}
	b->data = data;
	b->cap = cap;
	return true;
}

char *buf_make_room(struct buf *b, size_t len) {
	if (b->failed)
		return NULL;
	if (len > b->max - b->len) {
		b->failed = RC_TOO_LARGE;
		return NULL;
	}
	size_t need = b->len + len + 1;
	if (need > b->cap && !grow(b, cap_for(b, need)))
		return NULL;
	return b->data + b->len;
}

void buf_add(struct buf *b, const void *data, size_t len) {
	char *room = buf_room(b, len);
	if (!room)
		return;
	if (len)
		memcpy(room, data, len);
	buf_added(b, len);
}

void buf_adds(struct buf *b, const char *s) {
	buf_add(b, s, strlen(s));
}

void buf_addc(struct buf *b, char c) {
	buf_add(b, &c, 1);
}

void buf_printf(struct buf *b, const char *fmt, ...) {
	va_list ap;
	va_start(ap, fmt);
	buf_vprintf(b, fmt, ap);
	va_end(ap);
}

void buf_vprintf(struct buf *b, const char *fmt, va_list ap) {
	va_list again;
	va_copy(again, ap);
	int len = vsnprintf(NULL, 0, fmt, ap);
	char *room = len >= 0 ? buf_room(b, (size_t)len) : NULL;
	if (room) {
		vsnprintf(room, (size_t)len + 1, fmt, again);
		buf_added(b, (size_t)len);
	}
	va_end(again);
}

const char *buf_str(const struct buf *b) {
	return b->data ? b->data : "";
}

enum rc buf_status(const struct buf *b, struct err *err) {
	switch (b->failed) {
	case RC_OK:
		return RC_OK;
	case RC_TOO_LARGE:
		return err_set(err, RC_TOO_LARGE, "more than %zu bytes", b->max);
	default:
		return err_set(err, b->failed, "out of memory");
	}
}

char *buf_take(struct buf *b, size_t *len) {
	char *data = b->failed || !b->len ? NULL : b->data;
	if (len)
		*len = data ? b->len : 0;
	if (data)
		b->data = NULL;
	buf_release(b);
	return data;
}
