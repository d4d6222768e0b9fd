#include "db/pack.h"

#define VERSION 1

/* Differences wrap: any two values are a difference apart. */
static int64_t minus(int64_t a, int64_t b) {
	return (int64_t)((uint64_t)a - (uint64_t)b);
}

static int64_t plus(int64_t a, int64_t b) {
	return (int64_t)((uint64_t)a + (uint64_t)b);
}

/* Small numbers of either sign become small unsigned ones, seven bits a byte. */
static uint8_t *put(uint8_t *p, int64_t v) {
	uint64_t u = (uint64_t)v << 1 ^ (uint64_t)(v >> 63);
	for (; u >= 0x80; u >>= 7)
		*p++ = (uint8_t)(u | 0x80);
	*p++ = (uint8_t)u;
	return p;
}

static bool get(struct unpacker *u, int64_t *out) {
	uint64_t v = 0;
	for (unsigned shift = 0; shift < 64 && u->at < u->end; shift += 7) {
		const uint8_t byte = *u->at++;
		v |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80)) {
			*out = (int64_t)(v >> 1 ^ (~(v & 1) + 1));
			return true;
		}
	}
	return false;
}

size_t pack_samples(const struct sample *s, size_t n, uint8_t *out) {
	struct sample last = {0};
	uint8_t *p = out;
	*p++ = VERSION;
	for (size_t i = 0; i < n; i++) {
		p = put(p, minus(s[i].series_id, last.series_id));
		p = put(p, minus(s[i].at_ms, last.at_ms));
		p = put(p, minus(s[i].at_mono_ns, last.at_mono_ns));
		p = put(p, minus(s[i].value_milli, last.value_milli));
		last = s[i];
	}
	return (size_t)(p - out);
}

bool unpack_begin(struct unpacker *u, const void *bytes, size_t len) {
	*u = (struct unpacker){.at = bytes, .end = (const uint8_t *)bytes + len};
	return len > 0 && *u->at++ == VERSION;
}

enum unpacked unpack_next(struct unpacker *u, struct sample *out) {
	int64_t series, at, mono, value;
	if (u->at == u->end)
		return UNPACKED_END;
	if (!get(u, &series) || !get(u, &at) || !get(u, &mono) || !get(u, &value))
		return UNPACKED_DAMAGED;
	u->last = (struct sample){
		.series_id = plus(u->last.series_id, series),
		.at_ms = plus(u->last.at_ms, at),
		.at_mono_ns = plus(u->last.at_mono_ns, mono),
		.value_milli = plus(u->last.value_milli, value),
	};
	*out = u->last;
	return UNPACKED_SAMPLE;
}
