/*
 * A growing byte buffer with a hard maximum, told at init. Once an append would pass the maximum
 * or memory is out, the buffer keeps what it had, remembers the failure and ignores what follows:
 * writers append freely and ask buf_status() once, at the end. Always NUL-terminated behind len.
 * Not thread-safe.
 */
#ifndef DRIVEWATT_BASE_BUF_H
#define DRIVEWATT_BASE_BUF_H

#include <stdbool.h>
#include <stdarg.h>
#include <stddef.h>

#include "base/rc.h"

struct buf {
	char *data; /* owned; NULL until the first append */
	size_t len;
	size_t cap;
	size_t max;     /* len never passes this */
	enum rc failed; /* RC_OK, RC_TOO_LARGE or RC_NOMEM */
};

/* No allocation. max is in bytes, the terminating NUL not counted. */
void buf_init(struct buf *b, size_t max);
/* Frees the contents; b may be used again as after buf_init with the same max. NULL is fine. */
void buf_release(struct buf *b);
/* Empties without freeing and forgets a failure. */
void buf_reset(struct buf *b);

void buf_add(struct buf *b, const void *data, size_t len);
void buf_adds(struct buf *b, const char *s);
void buf_addc(struct buf *b, char c);
void buf_printf(struct buf *b, const char *fmt, ...) printf_like(2, 3);
void buf_vprintf(struct buf *b, const char *fmt, va_list ap) printf_like(2, 0);

/* For writers that format in place: room for len bytes behind the contents, or NULL once the
 * buffer failed. buf_added() then says how many of them were written. */
char *buf_make_room(struct buf *b, size_t len);
static inline char *buf_room(struct buf *b, size_t len) {
	if (!b->failed && len < b->cap - b->len)
		return b->data + b->len;
	return buf_make_room(b, len);
}
static inline void buf_added(struct buf *b, size_t len) {
	b->len += len;
	b->data[b->len] = '\0';
}

/* "" when empty; valid until the next append. */
const char *buf_str(const struct buf *b);
/* RC_OK, or what went wrong first. */
enum rc must_check buf_status(const struct buf *b, struct err *err);
/* Hands the bytes over: the caller frees the result with free(). NULL when failed or empty;
 * *len may be NULL. b is as after buf_init. */
char *buf_take(struct buf *b, size_t *len);

#endif
