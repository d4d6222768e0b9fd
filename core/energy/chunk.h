/*
 * A chunk: the samples of one series in one hour of wall time, and of the samples beside it those
 * whose stretches reach into it, so that its energy can be told without its neighbours. Where
 * minutes hold many samples, the minutes' aggregates stand before them. Pure.
 *
 *     version, greatest gap, count, clocks, apart, length of the minutes, minutes, times, values
 *
 * A clock says for the samples from an index on in which boot they were taken, and how far its
 * monotonic clock is from the wall clock, in milliseconds. Apart are the indexes of samples before
 * which others were taken that are not here.
 */
#ifndef DRIVEWATT_CORE_ENERGY_CHUNK_H
#define DRIVEWATT_CORE_ENERGY_CHUNK_H

#include "core/energy/aggregate.h"

#define HOUR_MS INT64_C(3600000)
#define MINUTE_MS INT64_C(60000)
#define MINUTES_OF_HOUR 60
#define CHUNK_MAX_SAMPLES 36864 /* ten a second */
#define READINGS_MAX (2 * CHUNK_MAX_SAMPLES)
#define CHUNK_MAX_BYTES (1u << 20)
#define CHUNK_VALUE_MAX INT64_C(250000000000000) /* so that an hour's sum fits */

/* Readings that grow; owned. */
struct readings {
	size_t count, room;
	struct reading *all;
};

/* False when out of memory or over READINGS_MAX. */
bool must_check readings_add(struct readings *rs, const struct reading *r);
void readings_release(struct readings *rs);

/* In the order in which they were taken, each once, without those that say nothing of the hour.
 * False when out of memory. */
bool must_check chunk_settle(struct readings *rs, int64_t begin_ms, const struct joining *how);

/* Minutes of the hour that are not empty, keyed 0 … 59; out has room for them. */
void chunk_minutes(const struct readings *rs, int64_t begin_ms, const struct joining *how,
	struct aggregates *out);

/* rs is settled and holds at most CHUNK_MAX_SAMPLES. */
void chunk_put(struct buf *out, int64_t begin_ms, const struct joining *how,
	const struct readings *rs, const struct aggregates *minutes);

struct chunk {
	int64_t begin_ms;
	struct joining how; /* with the gap of when it was stored */
	size_t count;
	struct column_reader clocks, apart, minutes, samples; /* borrowed */
};
/* how is that of the series. False when the bytes are no chunk. */
bool must_check chunk_open(struct chunk *c, const void *bytes, size_t len, int64_t begin_ms,
	const struct joining *how);
/* Whether the minutes stand in it. */
static inline bool chunk_has_minutes(const struct chunk *c) {
	return c->minutes.at < c->minutes.end;
}
bool must_check chunk_read_minutes(const struct chunk *c, struct aggregates *out);
/* Appends. False when damaged or out of memory. */
bool must_check chunk_read(const struct chunk *c, struct readings *out);

#endif
