#include "db/pack.h"

#include <stdint.h>
#include <stdlib.h>

#include "base/column.h"

/*
 * A version, the number of samples, and columns. Version 1 was a row of differences for each
 * sample; files have it until all that came before version 2 has gone into chunks.
 */
#define VERSION 2
#define ROWS 1
#define NS_PER_MS UINT64_C(1000000)

/* How far the monotonic clock is ahead of the wall clock: nearly always as far as before. */
static int64_t ahead_ns(const struct sample *s) {
	return (int64_t)((uint64_t)s->at_mono_ns - (uint64_t)s->at_ms * NS_PER_MS);
}

enum column { SERIES, AT, AHEAD, VALUE, COLUMN_COUNT };

static int64_t get(const struct sample *s, enum column c) {
	switch (c) {
	case SERIES:
		return s->series_id;
	case AT:
		return s->at_ms;
	case AHEAD:
		return ahead_ns(s);
	default:
		return s->value_milli;
	}
}

/* In the order of the columns. */
static void set(struct sample *s, enum column c, int64_t v) {
	switch (c) {
	case SERIES:
		s->series_id = v;
		break;
	case AT:
		s->at_ms = v;
		break;
	case AHEAD:
		s->at_mono_ns = (int64_t)((uint64_t)v + (uint64_t)s->at_ms * NS_PER_MS);
		break;
	default:
		s->value_milli = v;
	}
}

void pack_samples(struct buf *out, const struct sample *s, size_t n) {
	auto_free int64_t *column = malloc((n + 1) * sizeof(*column));
	if (!column) {
		out->failed = RC_NOMEM;
		return;
	}
	buf_addc(out, VERSION);
	varint_put(out, (int64_t)n);
	for (enum column c = SERIES; c < COLUMN_COUNT; c++) {
		for (size_t i = 0; i < n; i++)
			column[i] = get(&s[i], c);
		column_put(out, column, n);
	}
}

static bool unpack_columns(struct column_reader *in, size_t max, struct sample **out, size_t *n) {
	int64_t count;
	if (!varint_get(in, &count) || count < 0 || (uint64_t)count > max)
		return false;
	auto_free int64_t *column = malloc(((size_t)count + 1) * sizeof(*column));
	*out = calloc((size_t)count + 1, sizeof(**out));
	if (!column || !*out)
		return false;
	*n = (size_t)count;
	for (enum column c = SERIES; c < COLUMN_COUNT; c++) {
		if (!column_get(in, column, *n))
			return false;
		for (size_t i = 0; i < *n; i++)
			set(&(*out)[i], c, column[i]);
	}
	return true;
}

/* Each value as its difference to that of the sample before. */
static bool unpack_rows(struct column_reader *in, size_t max, struct sample **out, size_t *n) {
	int64_t last[4] = {0};
	size_t room = (size_t)(in->end - in->at) / 4 + 1;
	*out = calloc(room < max ? room : max, sizeof(**out));
	*n = 0;
	while (*out && in->at < in->end) {
		for (size_t k = 0; k < array_len(last); k++) {
			int64_t difference;
			if (!varint_get(in, &difference))
				return false;
			last[k] = (int64_t)((uint64_t)last[k] + (uint64_t)difference);
		}
		if (*n == max)
			return false;
		(*out)[(*n)++] = (struct sample){last[0], last[1], last[2], last[3]};
	}
	return *out;
}

bool unpack_samples(const void *bytes, size_t len, size_t max, struct sample **out, size_t *n) {
	struct column_reader in = column_reader(bytes, len);
	*out = NULL;
	*n = 0;
	if (!len)
		return false;
	switch (*in.at++) {
	case VERSION:
		return unpack_columns(&in, max, out, n);
	case ROWS:
		return unpack_rows(&in, max, out, n);
	default:
		return false;
	}
}
