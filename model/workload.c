#include "model/workload.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "model/names.h"

static const char *const pattern_names[] = {
	[PATTERN_READ] = "read",
	[PATTERN_WRITE] = "write",
	[PATTERN_RANDREAD] = "randread",
	[PATTERN_RANDWRITE] = "randwrite",
	[PATTERN_RW] = "rw",
	[PATTERN_RANDRW] = "randrw",
	[PATTERN_IDLE] = "idle",
};
_Static_assert(array_len(pattern_names) == PATTERN_COUNT_, "every pattern has a name");

const char *workload_pattern_name(enum workload_pattern p) {
	return names_get(pattern_names, array_len(pattern_names), p);
}

bool workload_pattern_from_name(const char *name, enum workload_pattern *out) {
	return names_find(pattern_names, array_len(pattern_names), name, out);
}

static bool is_mixed(enum workload_pattern p) {
	return p == PATTERN_RW || p == PATTERN_RANDRW;
}

bool workload_pattern_writes(enum workload_pattern p) {
	return p == PATTERN_WRITE || p == PATTERN_RANDWRITE || is_mixed(p);
}

#define KIB 1024u

/* Random at a queue depth of 512 as 64 × 8 jobs, sequential at 128 with one job. */
#define RANDOM(kib, p, reads) \
	.builtin = true, .pattern = (p), .block_bytes = (kib)*KIB, .iodepth = 64, .jobs = 8, \
	.read_pct = (reads), .direct = true
#define SEQUENTIAL(kib, p, reads) \
	.builtin = true, .pattern = (p), .block_bytes = (kib)*KIB, .iodepth = 128, .jobs = 1, \
	.read_pct = (reads), .direct = true

static const struct workload builtins[] = {
	{.name = "rand-read-4k", RANDOM(4, PATTERN_RANDREAD, 100)},
	{.name = "rand-write-4k", RANDOM(4, PATTERN_RANDWRITE, 0)},
	{.name = "rand-mixed-70-30-4k", RANDOM(4, PATTERN_RANDRW, 70)},
	{.name = "rand-read-8k", RANDOM(8, PATTERN_RANDREAD, 100)},
	{.name = "rand-write-8k", RANDOM(8, PATTERN_RANDWRITE, 0)},
	{.name = "rand-mixed-70-30-8k", RANDOM(8, PATTERN_RANDRW, 70)},
	{.name = "seq-read-128k", SEQUENTIAL(128, PATTERN_READ, 100)},
	{.name = "seq-write-128k", SEQUENTIAL(128, PATTERN_WRITE, 0)},
	{.name = "idle", .builtin = true, .pattern = PATTERN_IDLE},
};

const struct workload *workload_builtins(size_t *count) {
	*count = array_len(builtins);
	return builtins;
}

const struct workload *workload_builtin(const char *name) {
	for (size_t i = 0; i < array_len(builtins); i++) {
		if (strcmp(builtins[i].name, name) == 0)
			return &builtins[i];
	}
	return NULL;
}

#define BLOCK_MIN 512u
#define BLOCK_MAX (16u * KIB * KIB)

static enum rc fail(struct err *err, const char *base, const char *name, const char *msg) {
	char field[sizeof(err->field)];
	snprintf(field, sizeof(field), "%s/%s", base, name);
	return err_field(err, RC_INVALID, field, "%s", msg);
}

enum rc workload_check_buffers(
	const struct workload *w, unsigned drives, const char *base, struct err *err) {
	const int64_t bytes = (int64_t)w->block_bytes * w->iodepth * w->jobs * drives;
	if (w->pattern == PATTERN_IDLE || bytes <= WORKLOAD_BUFFERS_MAX)
		return RC_OK;
	char msg[128];
	snprintf(msg, sizeof(msg),
		"block_bytes × iodepth × jobs × drives is %" PRId64 " MiB in flight, over %" PRId64,
		bytes >> 20, WORKLOAD_BUFFERS_MAX >> 20);
	return fail(err, base, "iodepth", msg);
}

enum rc workload_check(const struct workload *w, const char *base, struct err *err) {
	const struct {
		const char *name;
		uint64_t value, min, max;
	} ranges[] = {
		{"block_bytes", w->block_bytes, BLOCK_MIN, BLOCK_MAX},
		{"iodepth", w->iodepth, 1, 1024},
		{"jobs", w->jobs, 1, 64},
		{"read_pct", w->read_pct, 0, 100},
		{"rate_bytes_per_s", w->rate_bytes_per_s, 0, INT64_MAX},
	};

	if (w->pattern >= PATTERN_COUNT_)
		return fail(err, base, "pattern", "no such pattern");
	if (w->pattern == PATTERN_IDLE)
		return RC_OK;
	for (size_t i = 0; i < array_len(ranges); i++) {
		char msg[96];
		if (ranges[i].value >= ranges[i].min && ranges[i].value <= ranges[i].max)
			continue;
		snprintf(msg, sizeof(msg), "must be %" PRIu64 " to %" PRIu64, ranges[i].min,
			ranges[i].max);
		return fail(err, base, ranges[i].name, msg);
	}
	if (w->block_bytes % 512 != 0)
		return fail(err, base, "block_bytes", "must be a multiple of 512");
	if (w->size_bytes % 512 != 0 || w->size_bytes > INT64_MAX ||
		(w->size_bytes && w->size_bytes < w->block_bytes))
		return fail(err, base, "size_bytes",
			"must be a multiple of 512 that holds at least one block");
	return workload_check_buffers(w, 1, base, err);
}
