/*
 * What is kept of a series' samples in a stretch of time, many of them as columns: of one series
 * over time, or of many series at one time. The key says which time or series. Whole numbers, so
 * that parts add up to exactly the whole. Pure.
 */
#ifndef DRIVEWATT_CORE_ENERGY_AGGREGATE_H
#define DRIVEWATT_CORE_ENERGY_AGGREGATE_H

#include "base/column.h"
#include "core/energy/integrate.h"

enum aggregate_column {
	AGGREGATE_KEY,
	AGGREGATE_COVERED,  /* ms of the wall clock */
	AGGREGATE_INTEGRAL, /* value × time in thousandths × s: mJ */
	AGGREGATE_COUNT,    /* of samples */
	AGGREGATE_MIN,      /* of the samples; the one before where there is none */
	AGGREGATE_MAX,
	AGGREGATE_SUM,
	AGGREGATE_COLUMN_COUNT_
};

#define AGGREGATE_ENERGY 3 /* so many columns are enough for that */
#define AGGREGATE_ALL AGGREGATE_COLUMN_COUNT_

struct aggregate {
	int64_t key;
	int64_t covered_ms, integral;
	int64_t count, min_milli, max_milli, sum_milli; /* min and max NONE where count is 0 */
};

struct aggregates {
	size_t count, max;
	int64_t *columns[AGGREGATE_COLUMN_COUNT_]; /* one allocation, owned */
};

/* Room for max; false when out of memory. */
bool must_check aggregates_init(struct aggregates *a, size_t max);
void aggregates_release(struct aggregates *a);
/* Makes room for one more; false when out of memory. */
bool must_check aggregates_grow(struct aggregates *a);
/* Appends; there must be room. Keys ascend. */
void aggregates_add(struct aggregates *a, const struct aggregate *one);
struct aggregate aggregates_get(const struct aggregates *a, size_t i);

void aggregates_put(struct buf *out, const struct aggregates *a);
/* Reads the first so many columns in place of what a held, making room for up to max. False when
 * damaged (keys that do not ascend from 0 to below key_end, negative counts and times), more than
 * max or out of memory. */
bool must_check aggregates_read(struct column_reader *in, size_t columns, size_t max,
	int64_t key_end, struct aggregates *a);

/* Whole numbers of a step, keyed with its time. */
struct aggregate aggregate_of(const struct integral *step);
/* Adds to one of the same series; the key stays. */
void aggregate_join(struct aggregate *sum, const struct aggregate *part);
static inline bool aggregate_is_empty(const struct aggregate *a) {
	return a->count == 0 && a->covered_ms == 0 && a->integral == 0;
}

#endif
