/* What the store of samples may hold: a chunk, aggregates, a tick, by the first byte. Damaged or
 * not, nothing but an error comes of it; what is read is the same after it was written again. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/energy/chunk.h"
#include "db/pack.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define BEGIN_MS (INT64_C(490000) * HOUR_MS)
#define COLUMN_MAX 4096
#define KEYS 3072

static const struct joining hows[] = {{60000, 0}, {24 * HOUR_MS, 3.6e9}};

static void must(bool holds) {
	if (!holds)
		abort();
}

/* --- chunks --- */

static void must_come_back(
	const struct readings *rs, const struct joining *how, const struct aggregates *minutes) {
	struct buf bytes;
	struct chunk c;
	struct readings again = {0};
	buf_init(&bytes, CHUNK_MAX_BYTES);
	chunk_put(&bytes, BEGIN_MS, how, rs, minutes);
	if (!bytes.failed) {
		must(chunk_open(&c, bytes.data, bytes.len, BEGIN_MS, how) &&
			chunk_read(&c, &again));
		must(again.count == rs->count);
		for (size_t i = 0; i < rs->count; i++)
			must(again.all[i].at_mono_ns == rs->all[i].at_mono_ns &&
				again.all[i].value_milli == rs->all[i].value_milli);
	}
	readings_release(&again);
	buf_release(&bytes);
}

static void read_chunk(const uint8_t *data, size_t size, const struct joining *how) {
	struct readings rs = {0};
	struct aggregates minutes;
	struct chunk c;
	must(aggregates_init(&minutes, MINUTES_OF_HOUR));
	if (chunk_open(&c, data, size, BEGIN_MS, how)) {
		if (chunk_has_minutes(&c) && chunk_read_minutes(&c, &minutes)) {
			struct aggregate sum = {0};
			for (size_t i = 0; i < minutes.count; i++) {
				struct aggregate one = aggregates_get(&minutes, i);
				must(one.key >= 0 && one.key < MINUTES_OF_HOUR);
				aggregate_join(&sum, &one);
			}
		}
		if (chunk_read(&c, &rs) && chunk_settle(&rs, BEGIN_MS, &c.how)) {
			chunk_minutes(&rs, BEGIN_MS, &c.how, &minutes);
			must_come_back(&rs, &c.how, &minutes);
		}
	}
	readings_release(&rs);
	aggregates_release(&minutes);
}

/* --- aggregates --- */

static void read_aggregates(const uint8_t *data, size_t size) {
	struct column_reader in = column_reader(data, size), out;
	struct aggregates a = {0}, again = {0};
	struct buf bytes;
	buf_init(&bytes, CHUNK_MAX_BYTES);
	if (aggregates_read(&in, AGGREGATE_ALL, KEYS, KEYS, &a)) {
		aggregates_put(&bytes, &a);
		must(buf_status(&bytes, NULL) == RC_OK);
		out = column_reader(bytes.data, bytes.len);
		must(aggregates_read(&out, AGGREGATE_ALL, KEYS, KEYS, &again) &&
			again.count == a.count);
		for (size_t c = 0; c < AGGREGATE_ALL && a.count; c++)
			must(memcmp(a.columns[c], again.columns[c], a.count * sizeof(int64_t)) ==
				0);
	}
	buf_release(&bytes);
	aggregates_release(&a);
	aggregates_release(&again);
}

/* --- columns and ticks --- */

/* Any numbers come back as they were. */
static void write_column(const uint8_t *data, size_t size) {
	static int64_t values[COLUMN_MAX], scratch[COLUMN_MAX];
	size_t n = size / sizeof(int64_t);
	struct buf bytes;
	n = n < COLUMN_MAX ? n : COLUMN_MAX;
	memcpy(values, data, n * sizeof(int64_t));
	memcpy(scratch, values, n * sizeof(int64_t));
	buf_init(&bytes, CHUNK_MAX_BYTES);
	column_put(&bytes, scratch, n);
	must(buf_status(&bytes, NULL) == RC_OK);
	struct column_reader in = column_reader(bytes.data, bytes.len);
	must(column_get(&in, scratch, n) && in.at == in.end);
	must(memcmp(values, scratch, n * sizeof(int64_t)) == 0);
	buf_release(&bytes);
}

static void read_column(const uint8_t *data, size_t size) {
	static int64_t values[COLUMN_MAX];
	struct column_reader in;
	for (size_t n = 0; n <= COLUMN_MAX; n = 2 * n + 1) {
		in = column_reader(data, size);
		if (column_get(&in, values, n))
			must(in.at <= in.end);
	}
}

static void read_tick(const uint8_t *data, size_t size) {
	struct sample *samples;
	size_t n;
	if (unpack_samples(data, size, COLUMN_MAX, &samples, &n))
		must(n <= COLUMN_MAX);
	free(samples);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	if (!size)
		return 0;
	switch (data[0] % 6) {
	case 0:
	case 1:
		read_chunk(data + 1, size - 1, &hows[data[0] % 2]);
		break;
	case 2:
		read_aggregates(data + 1, size - 1);
		break;
	case 3:
		write_column(data + 1, size - 1);
		break;
	case 4:
		read_column(data + 1, size - 1);
		break;
	default:
		read_tick(data + 1, size - 1);
	}
	return 0;
}
