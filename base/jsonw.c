#include "base/jsonw.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/parse.h"

#define NUMBER_MAX 32 /* bytes of any number as text */

/* What a byte needs inside a JSON string. */
enum { PLAIN = 0, CONTROL = 'u', HIGH = 'h' }; /* else: the letter behind the backslash */

#define ROW4(c) c, c, c, c
#define ROW16(c) ROW4(c), ROW4(c), ROW4(c), ROW4(c)
#define ROW128(c) ROW16(c), ROW16(c), ROW16(c), ROW16(c), ROW16(c), ROW16(c), ROW16(c), ROW16(c)

static const unsigned char byte_class[256] = {
	/* 0x00 */ ROW4('u'), ROW4('u'), 'b', 't', 'n', 'u', 'f', 'r', 'u', 'u',
	/* 0x10 */ ROW16('u'),
	/* 0x20 */ 0, 0, '"', 0, ROW4(0), ROW4(0), ROW4(0),
	/* 0x30 */ ROW16(0), ROW16(0),
	/* 0x50 */ ROW4(0), ROW4(0), ROW4(0), '\\', 0, 0, 0,
	/* 0x60 */ ROW16(0), ROW16(0),
	/* 0x80 */ ROW128('h')};

void jsonw_init(struct jsonw *w, struct buf *out) {
	*w = (struct jsonw){.out = out};
}

/* --- strings --- */

static bool is_tail(unsigned char c) {
	return (c & 0xc0) == 0x80;
}

/* Length of the valid UTF-8 sequence at s, which begins with a byte ≥ 0x80; 0 if none. */
static size_t utf8_len(const unsigned char *s, size_t left) {
	if (s[0] >= 0xc2 && s[0] <= 0xdf)
		return left >= 2 && is_tail(s[1]) ? 2 : 0;
	if ((s[0] & 0xf0) == 0xe0) {
		if (left < 3 || !is_tail(s[1]) || !is_tail(s[2]))
			return 0;
		bool overlong = s[0] == 0xe0 && s[1] < 0xa0;
		bool surrogate = s[0] == 0xed && s[1] >= 0xa0;
		return overlong || surrogate ? 0 : 3;
	}
	if (s[0] >= 0xf0 && s[0] <= 0xf4) {
		if (left < 4 || !is_tail(s[1]) || !is_tail(s[2]) || !is_tail(s[3]))
			return 0;
		bool overlong = s[0] == 0xf0 && s[1] < 0x90;
		bool beyond = s[0] == 0xf4 && s[1] >= 0x90;
		return overlong || beyond ? 0 : 4;
	}
	return 0;
}

/* Writes what stands for the special byte at s; returns how many bytes that consumed. */
static size_t add_special(struct buf *out, const unsigned char *s, size_t left) {
	static const char hex[] = "0123456789abcdef";
	unsigned char class = byte_class[s[0]];
	if (class == HIGH) {
		size_t len = utf8_len(s, left);
		if (len)
			buf_add(out, s, len);
		else
			buf_add(out, "\xef\xbf\xbd", 3);
		return len ? len : 1;
	}
	if (class == CONTROL) {
		char text[] = {'\\', 'u', '0', '0', hex[s[0] >> 4], hex[s[0] & 15]};
		buf_add(out, text, sizeof(text));
	} else {
		char text[] = {'\\', (char)class};
		buf_add(out, text, sizeof(text));
	}
	return 1;
}

#define EVERY_BYTE(c) (UINT64_C(0x0101010101010101) * (c))

/* Are all eight bytes plain? A byte that is zero, or below 0x20, borrows into its top bit; bytes
 * ≥ 0x80 have it set already. May say no to plain ones, never yes to others. */
static bool are_plain(uint64_t bytes) {
	uint64_t quote = bytes ^ EVERY_BYTE('"');
	uint64_t backslash = bytes ^ EVERY_BYTE('\\');
	uint64_t found = bytes | (bytes - EVERY_BYTE(0x20)) | (quote - EVERY_BYTE(1)) |
		(backslash - EVERY_BYTE(1));
	return !(found & EVERY_BYTE(0x80));
}

static size_t plain_len(const unsigned char *s, size_t left) {
	size_t n = 0;
	uint64_t bytes;
	for (; left - n >= sizeof(bytes); n += sizeof(bytes)) {
		memcpy(&bytes, s + n, sizeof(bytes));
		if (!are_plain(bytes))
			break;
	}
	while (n < left && byte_class[s[n]] == PLAIN)
		n++;
	return n;
}

static void add_escaped(struct buf *out, const unsigned char *s, size_t len) {
	while (len) {
		size_t used = plain_len(s, len);
		buf_add(out, s, used);
		if (used < len)
			used += add_special(out, s + used, len - used);
		s += used;
		len -= used;
	}
}

/* Three in one, since most of a document is `,"key":`. comma and colon say whether they stand
 * around the quoted text. */
static void add_quoted(struct buf *out, bool comma, const char *text, size_t len, bool colon) {
	const unsigned char *s = (const unsigned char *)text;
	size_t plain = plain_len(s, len);
	char *p = buf_room(out, comma + 1 + plain + (plain == len) + colon);
	if (!p)
		return;
	const char *start = p;
	if (comma)
		*p++ = ',';
	*p++ = '"';
	memcpy(p, s, plain);
	p += plain;
	if (plain < len) {
		buf_added(out, (size_t)(p - start));
		add_escaped(out, s + plain, len - plain);
		buf_add(out, "\":", 1 + colon);
		return;
	}
	*p++ = '"';
	if (colon)
		*p++ = ':';
	buf_added(out, (size_t)(p - start));
}

/* --- structure --- */

/* What comes in front of a value: the comma and the key. */
static void begin(struct jsonw *w, const char *key) {
	bool comma = false;
	assert(!key || w->depth);
	if (w->depth && w->depth <= JSONW_MAX_DEPTH) {
		unsigned level = w->depth - 1;
		assert((key != NULL) == w->is_object[level]);
		comma = w->need_comma[level];
		w->need_comma[level] = true;
	}
	if (key)
		add_quoted(w->out, comma, key, strlen(key), true);
	else if (comma)
		buf_addc(w->out, ',');
}

static void open_level(struct jsonw *w, const char *key, bool is_object) {
	begin(w, key);
	buf_addc(w->out, is_object ? '{' : '[');
	if (w->depth < JSONW_MAX_DEPTH) {
		w->need_comma[w->depth] = false;
		w->is_object[w->depth] = is_object;
	} else if (!w->out->failed) {
		w->out->failed = RC_TOO_LARGE;
	}
	w->depth++;
}

static void close_level(struct jsonw *w, bool is_object) {
	assert(w->depth > 0);
	assert(w->depth > JSONW_MAX_DEPTH || w->is_object[w->depth - 1] == is_object);
	if (w->depth > 0)
		w->depth--;
	buf_addc(w->out, is_object ? '}' : ']');
}

void jsonw_object(struct jsonw *w, const char *key) {
	open_level(w, key, true);
}

void jsonw_object_end(struct jsonw *w) {
	close_level(w, true);
}

void jsonw_array(struct jsonw *w, const char *key) {
	open_level(w, key, false);
}

void jsonw_array_end(struct jsonw *w) {
	close_level(w, false);
}

/* --- values --- */

void jsonw_null(struct jsonw *w, const char *key) {
	jsonw_raw(w, key, "null", 4);
}

void jsonw_bool(struct jsonw *w, const char *key, bool v) {
	jsonw_raw(w, key, v ? "true" : "false", v ? 4 : 5);
}

/* Digits of v in front of end; returns where they begin. */
static char *put_digits(char *end, uint64_t v) {
	do {
		*--end = (char)('0' + v % 10);
		v /= 10;
	} while (v);
	return end;
}

static uint64_t magnitude(int64_t v) {
	return v < 0 ? -(uint64_t)v : (uint64_t)v;
}

void jsonw_int(struct jsonw *w, const char *key, int64_t v) {
	char text[NUMBER_MAX];
	char *end = text + sizeof(text);
	char *p = put_digits(end, magnitude(v));
	if (v < 0)
		*--p = '-';
	jsonw_raw(w, key, p, (size_t)(end - p));
}

void jsonw_uint(struct jsonw *w, const char *key, uint64_t v) {
	char text[NUMBER_MAX];
	char *end = text + sizeof(text);
	char *p = put_digits(end, v);
	jsonw_raw(w, key, p, (size_t)(end - p));
}

/* Puts the thousandths with their point, without trailing zeros; nothing for 0. */
static char *put_thousandths(char *end, unsigned thousandths) {
	if (!thousandths)
		return end;
	char *p = end;
	for (int i = 0; i < 3; i++) {
		*--p = (char)('0' + thousandths % 10);
		thousandths /= 10;
	}
	*--p = '.';
	return p;
}

void jsonw_milli(struct jsonw *w, const char *key, int64_t v) {
	if (v == JSONW_NONE) {
		jsonw_null(w, key);
		return;
	}
	char text[NUMBER_MAX];
	char *end = text + sizeof(text);
	uint64_t abs = magnitude(v);
	char *point = put_thousandths(end, (unsigned)(abs % 1000));
	char *p = put_digits(point, abs / 1000);
	if (v < 0)
		*--p = '-';
	while (point < end && end[-1] == '0')
		end--;
	jsonw_raw(w, key, p, (size_t)(end - p));
}

void jsonw_double(struct jsonw *w, const char *key, double v) {
	if (!isfinite(v)) {
		jsonw_null(w, key);
		return;
	}
	/* A number of at most 15 digits with three decimals has one shortest text, and printf is
	 * slow. */
	double milli = nearbyint(v * 1000);
	if (fabs(milli) < 1e15 && milli / 1000 == v) {
		jsonw_milli(w, key, (int64_t)milli);
		return;
	}
	char text[NUMBER_MAX];
	int len = snprintf(text, sizeof(text), "%.15g", v);
	jsonw_raw(w, key, text, (size_t)len);
}

void jsonw_str(struct jsonw *w, const char *key, const char *v) {
	jsonw_strn(w, key, v, v ? strlen(v) : 0);
}

void jsonw_strn(struct jsonw *w, const char *key, const char *v, size_t len) {
	if (!v) {
		jsonw_null(w, key);
		return;
	}
	begin(w, key);
	add_quoted(w->out, false, v, len, false);
}

void jsonw_strf(struct jsonw *w, const char *key, const char *fmt, ...) {
	struct buf text;
	buf_init(&text, w->out->max);
	va_list ap;
	va_start(ap, fmt);
	buf_vprintf(&text, fmt, ap);
	va_end(ap);
	if (text.failed && !w->out->failed)
		w->out->failed = text.failed;
	jsonw_strn(w, key, buf_str(&text), text.len);
	buf_release(&text);
}

void jsonw_time(struct jsonw *w, const char *key, int64_t epoch_ms) {
	if (epoch_ms == JSONW_NONE) {
		jsonw_null(w, key);
		return;
	}
	char text[32];
	format_time(epoch_ms, text);
	jsonw_str(w, key, text);
}

void jsonw_raw(struct jsonw *w, const char *key, const char *json, size_t len) {
	begin(w, key);
	buf_add(w->out, json, len);
}
