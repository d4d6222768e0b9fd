#include "core/energy/aggregate.h"

#include <math.h>
#include <string.h>

#define COVERED_MAX_MS (INT64_C(1) << 40)

/* --- in memory --- */

bool aggregates_init(struct aggregates *a, size_t max) {
	*a = (struct aggregates){.max = max};
	int64_t *all = calloc(max ? max : 1, AGGREGATE_COLUMN_COUNT_ * sizeof(*all));
	for (size_t c = 0; all && c < AGGREGATE_COLUMN_COUNT_; c++)
		a->columns[c] = all + c * max;
	return all != NULL;
}

void aggregates_release(struct aggregates *a) {
	free(a->columns[0]);
	*a = (struct aggregates){0};
}

bool aggregates_grow(struct aggregates *a) {
	struct aggregates more;
	if (a->count < a->max)
		return true;
	if (!aggregates_init(&more, a->max ? 2 * a->max : 64))
		return false;
	for (size_t c = 0; a->count && c < AGGREGATE_COLUMN_COUNT_; c++)
		memcpy(more.columns[c], a->columns[c], a->count * sizeof(a->columns[c][0]));
	more.count = a->count;
	aggregates_release(a);
	*a = more;
	return true;
}

void aggregates_add(struct aggregates *a, const struct aggregate *one) {
	size_t i = a->count++;
	bool some = one->count > 0;
	a->columns[AGGREGATE_KEY][i] = one->key;
	a->columns[AGGREGATE_COVERED][i] = one->covered_ms;
	a->columns[AGGREGATE_INTEGRAL][i] = one->integral;
	a->columns[AGGREGATE_COUNT][i] = one->count;
	/* What goes on as before costs no bytes. */
	int64_t before = i ? a->columns[AGGREGATE_MIN][i - 1] : 0;
	a->columns[AGGREGATE_MIN][i] = some ? one->min_milli : before;
	a->columns[AGGREGATE_MAX][i] = some ? one->max_milli : before;
	a->columns[AGGREGATE_SUM][i] = one->sum_milli;
}

struct aggregate aggregates_get(const struct aggregates *a, size_t i) {
	bool some = a->columns[AGGREGATE_COUNT][i] > 0;
	return (struct aggregate){
		.key = a->columns[AGGREGATE_KEY][i],
		.covered_ms = a->columns[AGGREGATE_COVERED][i],
		.integral = a->columns[AGGREGATE_INTEGRAL][i],
		.count = a->columns[AGGREGATE_COUNT][i],
		.min_milli = some ? a->columns[AGGREGATE_MIN][i] : NONE,
		.max_milli = some ? a->columns[AGGREGATE_MAX][i] : NONE,
		.sum_milli = a->columns[AGGREGATE_SUM][i],
	};
}

struct aggregate aggregate_of(const struct integral *step) {
	return (struct aggregate){
		.key = step->at_ms,
		.covered_ms = llround(step->covered_ms),
		.integral = llround(step->milli_ms / 1000),
		.count = step->count,
		.min_milli = step->min_milli,
		.max_milli = step->max_milli,
		.sum_milli = step->sum_milli,
	};
}

/* What is damaged may hold any number. */
static int64_t add(int64_t a, int64_t b) {
	return (int64_t)((uint64_t)a + (uint64_t)b);
}

void aggregate_join(struct aggregate *sum, const struct aggregate *part) {
	sum->covered_ms += part->covered_ms;
	sum->integral = add(sum->integral, part->integral);
	if (!part->count)
		return;
	if (!sum->count || part->min_milli < sum->min_milli)
		sum->min_milli = part->min_milli;
	if (!sum->count || part->max_milli > sum->max_milli)
		sum->max_milli = part->max_milli;
	sum->count += part->count;
	sum->sum_milli = add(sum->sum_milli, part->sum_milli);
}

/* --- as bytes --- */

/* What differs little from series to series and from time to time is told from the minimum. */
static int64_t base_of(const struct aggregates *a, enum aggregate_column c, size_t i) {
	uint64_t min = (uint64_t)a->columns[AGGREGATE_MIN][i];
	switch (c) {
	case AGGREGATE_MAX:
		return (int64_t)min;
	case AGGREGATE_SUM:
		return (int64_t)(min * (uint64_t)a->columns[AGGREGATE_COUNT][i]);
	default:
		return 0;
	}
}

static void put_column(
	struct buf *out, const struct aggregates *a, enum aggregate_column c, int64_t *scratch) {
	for (size_t i = 0; i < a->count; i++)
		scratch[i] = (int64_t)((uint64_t)a->columns[c][i] - (uint64_t)base_of(a, c, i));
	column_put(out, scratch, a->count);
}

void aggregates_put(struct buf *out, const struct aggregates *a) {
	auto_free int64_t *scratch = malloc((a->count + 1) * sizeof(*scratch));
	if (!scratch) {
		out->failed = RC_NOMEM;
		return;
	}
	varint_put(out, (int64_t)a->count);
	for (enum aggregate_column c = 0; c < AGGREGATE_COLUMN_COUNT_; c++)
		put_column(out, a, c, scratch);
}

static bool read_column(struct column_reader *in, struct aggregates *a, enum aggregate_column c) {
	if (!column_get(in, a->columns[c], a->count))
		return false;
	for (size_t i = 0; (c == AGGREGATE_MAX || c == AGGREGATE_SUM) && i < a->count; i++)
		a->columns[c][i] =
			(int64_t)((uint64_t)a->columns[c][i] + (uint64_t)base_of(a, c, i));
	return true;
}

static bool make_room(struct aggregates *a, size_t count) {
	if (a->max < count) {
		aggregates_release(a);
		if (!aggregates_init(a, count))
			return false;
	}
	a->count = count;
	return true;
}

static bool is_plausible(const struct aggregates *a, size_t columns, int64_t key_end) {
	const int64_t *key = a->columns[AGGREGATE_KEY];
	for (size_t i = 0; i < a->count; i++) {
		if (key[i] < (i ? key[i - 1] + 1 : 0) || key[i] >= key_end ||
			a->columns[AGGREGATE_COVERED][i] < 0 ||
			a->columns[AGGREGATE_COVERED][i] > COVERED_MAX_MS)
			return false;
		if (columns > AGGREGATE_COUNT &&
			(a->columns[AGGREGATE_COUNT][i] < 0 ||
				a->columns[AGGREGATE_COUNT][i] > INT32_MAX))
			return false;
	}
	return true;
}

bool aggregates_read(struct column_reader *in, size_t columns, size_t max, int64_t key_end,
	struct aggregates *a) {
	int64_t count;
	if (!varint_get(in, &count) || count < 0 || (uint64_t)count > max ||
		!make_room(a, (size_t)count))
		return false;
	for (enum aggregate_column c = 0; c < columns; c++) {
		if (!read_column(in, a, c))
			return false;
	}
	return is_plausible(a, columns, key_end);
}
