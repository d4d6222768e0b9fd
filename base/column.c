#include "base/column.h"

#include <endian.h>
#include <string.h>

/*
 * A column: a byte with order << 6 | k, the first value, and unless all are the same their common
 * divisor, the bias, the length of the code in bytes, and the code. Bits go from the low to the
 * high end of each byte. Without a code everything was as expected.
 */
enum order {
	LEVEL, /* differences to the bias */
	SLOPE, /* of the differences between neighbours to the bias */
	CURVE, /* of these differences to the one before */
	CONSTANT,
};

#define ESCAPE 16     /* so many ones: the length of the number follows, and the number */
#define LENGTH_BITS 6 /* of the length, less one */
#define K_MAX 32
#define VARINT_BYTES 10
#define LOOKED_AT 128 /* values that decide on the form */
#define BIAS_OF 15    /* values that the bias is taken from */

/* Differences wrap: any two values are a difference apart. */
static int64_t minus(int64_t a, int64_t b) {
	return (int64_t)((uint64_t)a - (uint64_t)b);
}

static int64_t plus(int64_t a, int64_t b) {
	return (int64_t)((uint64_t)a + (uint64_t)b);
}

/* Small numbers of either sign become small ones without. */
static uint64_t fold(int64_t v) {
	return (uint64_t)v << 1 ^ (uint64_t)(v >> 63);
}

static int64_t unfold(uint64_t z) {
	return (int64_t)(z >> 1 ^ (~(z & 1) + 1));
}

static unsigned bit_length(uint64_t z) {
	return z ? 64 - (unsigned)__builtin_clzll(z) : 0;
}

/* --- single integers --- */

static size_t varint_write(uint8_t *p, int64_t v) {
	size_t len = 0;
	uint64_t z = fold(v);
	for (; z >= 0x80; z >>= 7)
		p[len++] = (uint8_t)(z | 0x80);
	p[len++] = (uint8_t)z;
	return len;
}

void varint_put(struct buf *out, int64_t v) {
	uint8_t *room = (uint8_t *)buf_room(out, VARINT_BYTES);
	if (room)
		buf_added(out, varint_write(room, v));
}

bool varint_get(struct column_reader *in, int64_t *v) {
	uint64_t z = 0;
	for (unsigned shift = 0; shift < 64 && in->at < in->end; shift += 7) {
		const uint8_t byte = *in->at++;
		z |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80)) {
			*v = unfold(z);
			return true;
		}
	}
	return false;
}

/* --- choosing the form --- */

struct form {
	enum order order;
	unsigned k;
	int64_t bias;
	uint64_t cost; /* bits of the values looked at */
};

static uint64_t gcd(uint64_t a, uint64_t b) {
	while (b) {
		uint64_t rest = a % b;
		a = b;
		b = rest;
	}
	return a;
}

/* Leaves the differences to the first value, by their common divisor; 0: all are the same. */
static int64_t scale_down(int64_t *v, size_t n) {
	uint64_t divisor = 0;
	for (size_t i = n; i-- > 0;) {
		v[i] = minus(v[i], v[0]);
		if (divisor != 1 && v[i])
			divisor = gcd(v[i] < 0 ? -(uint64_t)v[i] : (uint64_t)v[i], divisor);
	}
	if (divisor > INT64_MAX)
		divisor = 1;
	for (size_t i = 0; divisor > 1 && i < n; i++)
		v[i] /= (int64_t)divisor;
	return (int64_t)divisor;
}

/* About the mean of the middle third of a few values or differences: no gap moves it. */
static int64_t find_bias(const int64_t *v, size_t n, enum order order) {
	int64_t few[BIAS_OF] = {0};
	if (n < 2)
		return 0;
	size_t count = n - 1 < BIAS_OF ? n - 1 : BIAS_OF;
	for (size_t i = 0; i < count; i++) {
		size_t at = 1 + i * (n - 1) / count, place = i;
		int64_t one = order == LEVEL ? v[at] : minus(v[at], v[at - 1]);
		for (; place > 0 && few[place - 1] > one; place--)
			few[place] = few[place - 1];
		few[place] = one;
	}
	size_t third = count / 3;
	int64_t beyond = 0;
	for (size_t i = third; i < count - third; i++)
		beyond = plus(beyond, minus(few[i], few[third]));
	return plus(few[third], beyond / (int64_t)(count - 2 * third));
}

static uint64_t code_bits(uint64_t z, unsigned k) {
	uint64_t ones = z >> k;
	return ones < ESCAPE ? ones + 1 + k : ESCAPE + LENGTH_BITS + bit_length(z | 1);
}

/* The cheapest k for numbers of which so many have each bit length. */
static void choose_k(const unsigned lengths[65], struct form *f) {
	uint64_t usual[65], count[65];
	unsigned kinds = 0, most = 0;
	for (unsigned bits = 0; bits <= 64; bits++) {
		if (!lengths[bits])
			continue;
		usual[kinds] = bits > 1 ? UINT64_C(3) << (bits - 2) : bits;
		count[kinds++] = lengths[bits];
		most = bits;
	}
	f->cost = UINT64_MAX;
	for (unsigned k = 0; k <= K_MAX && k <= most; k++) {
		uint64_t cost = 0;
		for (unsigned i = 0; i < kinds; i++)
			cost += count[i] * code_bits(usual[i], k);
		if (cost < f->cost) {
			f->cost = cost;
			f->k = k;
		}
	}
}

static void try_form(const int64_t *v, size_t n, struct form f, struct form *best) {
	unsigned lengths[65] = {0};
	int64_t slope = f.bias;
	for (size_t i = 1; i < n; i++) {
		int64_t step = f.order == LEVEL ? v[i] : minus(v[i], v[i - 1]);
		lengths[bit_length(fold(minus(step, slope)))]++;
		if (f.order == CURVE)
			slope = step;
	}
	choose_k(lengths, &f);
	if (f.cost < best->cost)
		*best = f;
}

/* Without a bias too: of small steps up and down the few tell it badly. */
static struct form choose_form(const int64_t *v, size_t n) {
	struct form best = {.cost = UINT64_MAX};
	if (n > LOOKED_AT)
		n = LOOKED_AT;
	const int64_t slope = find_bias(v, n, SLOPE);
	const struct form tried[] = {
		{.order = SLOPE},
		{.order = SLOPE, .bias = slope},
		{.order = LEVEL, .bias = find_bias(v, n, LEVEL)},
		{.order = CURVE, .bias = slope},
	};
	for (size_t i = 0; i < array_len(tried); i++)
		try_form(v, n, tried[i], &best);
	return best;
}

/* --- writing --- */

struct bit_writer {
	uint8_t *at; /* with room for eight bytes more than are used */
	uint64_t bits;
	unsigned count; /* below 8 between calls */
};

static inline void put_bits(struct bit_writer *w, uint64_t bits, unsigned count) {
	w->bits |= bits << w->count;
	w->count += count;
	uint64_t whole = htole64(w->bits);
	memcpy(w->at, &whole, sizeof(whole));
	w->at += w->count / 8;
	w->bits >>= w->count & ~7u;
	w->count &= 7;
}

/* No code takes more than 16 + 6 + 64 bits. */
#define CODE_BYTES 11

static inline void put_code(struct bit_writer *w, uint64_t z, unsigned k) {
	uint64_t ones = z >> k;
	if (ones < ESCAPE) {
		uint64_t rest = z & ((UINT64_C(1) << k) - 1);
		put_bits(w, ((UINT64_C(1) << ones) - 1) | rest << (ones + 1),
			(unsigned)ones + 1 + k);
		return;
	}
	unsigned bits = bit_length(z | 1);
	put_bits(w, (1 << ESCAPE) - 1, ESCAPE);
	put_bits(w, bits - 1, LENGTH_BITS);
	put_bits(w, z & UINT32_MAX, bits < 32 ? bits : 32);
	if (bits > 32)
		put_bits(w, z >> 32, bits - 32);
}

/* Returns where the code ends. */
static uint8_t *put_codes(uint8_t *at, const int64_t *v, size_t n, const struct form *f) {
	struct bit_writer w = {.at = at};
	uint64_t seen = 0;
	int64_t slope = f->bias;
	for (size_t i = 1; i < n; i++) {
		int64_t step = f->order == LEVEL ? v[i] : minus(v[i], v[i - 1]);
		uint64_t z = fold(minus(step, slope));
		put_code(&w, z, f->k);
		seen |= z;
		if (f->order == CURVE)
			slope = step;
	}
	return seen ? w.at + (w.count > 0) : at;
}

/* Puts the length in front of what was written behind the buffer's contents. */
static void put_before(struct buf *out, uint8_t *code, size_t len) {
	uint8_t head[VARINT_BYTES];
	size_t n = varint_write(head, (int64_t)len);
	memmove(code + n, code, len);
	memcpy(code, head, n);
	buf_added(out, n + len);
}

void column_put(struct buf *out, int64_t *v, size_t n) {
	if (!n)
		return;
	int64_t first = v[0], divisor = scale_down(v, n);
	struct form f = {.order = CONSTANT};
	if (divisor)
		f = choose_form(v, n);
	buf_addc(out, (char)((unsigned)f.order << 6 | f.k));
	varint_put(out, first);
	if (!divisor)
		return;
	varint_put(out, divisor);
	varint_put(out, f.bias);
	uint8_t *room = (uint8_t *)buf_room(out, VARINT_BYTES + 8 + n * CODE_BYTES);
	if (!room)
		return;
	put_before(out, room, (size_t)(put_codes(room, v, n, &f) - room));
}

/* --- reading --- */

/* Behind the end there are zeros, which are counted: a code that needs them is damaged. */
struct bit_reader {
	const uint8_t *at, *end;
	uint64_t bits;
	unsigned count;
	unsigned past; /* bytes read behind the end */
};

static inline void refill(struct bit_reader *r) {
	if (r->end - r->at >= 8) {
		uint64_t next;
		memcpy(&next, r->at, sizeof(next));
		r->bits |= le64toh(next) << r->count;
		r->at += (63 - r->count) / 8;
		r->count |= 56;
		return;
	}
	for (; r->count <= 56; r->count += 8) {
		if (r->at < r->end)
			r->bits |= (uint64_t)*r->at++ << r->count;
		else
			r->past++;
	}
}

static inline uint64_t take(struct bit_reader *r, unsigned count) {
	uint64_t bits = r->bits & ((UINT64_C(1) << count) - 1);
	r->bits >>= count;
	r->count -= count;
	return bits;
}

static uint64_t get_long(struct bit_reader *r) {
	take(r, ESCAPE);
	unsigned bits = (unsigned)take(r, LENGTH_BITS) + 1;
	refill(r);
	uint64_t z = take(r, bits < 32 ? bits : 32);
	refill(r);
	return bits > 32 ? z | take(r, bits - 32) << 32 : z;
}

static inline uint64_t get_code(struct bit_reader *r, unsigned k) {
	refill(r);
	unsigned ones = (unsigned)__builtin_ctzll(~r->bits | UINT64_C(1) << ESCAPE);
	if (ones == ESCAPE)
		return get_long(r);
	take(r, ones + 1);
	return (uint64_t)ones << k | take(r, k);
}

static bool get_expected(int64_t *v, size_t n, const struct form *f) {
	v[0] = 0;
	for (size_t i = 1; i < n; i++)
		v[i] = f->order == LEVEL ? f->bias : plus(v[i - 1], f->bias);
	return true;
}

/* False when they do not end within len bytes. */
static bool get_codes(const uint8_t *code, size_t len, int64_t *v, size_t n, const struct form *f) {
	struct bit_reader r = {.at = code, .end = code + len};
	int64_t slope = f->bias;
	v[0] = 0;
	for (size_t i = 1; i < n; i++) {
		int64_t step = plus(unfold(get_code(&r, f->k)), slope);
		v[i] = f->order == LEVEL ? step : plus(v[i - 1], step);
		if (f->order == CURVE)
			slope = step;
	}
	return r.past * 8 <= r.count;
}

static void get_constant(int64_t *v, size_t n, int64_t first) {
	for (size_t i = 0; v && i < n; i++)
		v[i] = first;
}

bool column_get(struct column_reader *in, int64_t *v, size_t n) {
	struct form f;
	int64_t first, divisor, len;
	if (!n)
		return true;
	if (in->at == in->end)
		return false;
	f.order = *in->at >> 6;
	f.k = *in->at++ & 63;
	if (!varint_get(in, &first) || f.k > K_MAX)
		return false;
	if (f.order == CONSTANT) {
		get_constant(v, n, first);
		return true;
	}
	if (!varint_get(in, &divisor) || !varint_get(in, &f.bias) || !varint_get(in, &len) ||
		len < 0 || len > in->end - in->at)
		return false;
	const uint8_t *code = in->at;
	in->at += len;
	if (!v)
		return true;
	bool whole = len ? get_codes(code, (size_t)len, v, n, &f) : get_expected(v, n, &f);
	for (size_t i = 0; i < n; i++)
		v[i] = plus(first, (int64_t)((uint64_t)v[i] * (uint64_t)divisor));
	return whole;
}
