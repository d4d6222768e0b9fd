/* What a benchmark does: a named workload or an inline one, always from this closed set. */
#ifndef DRIVEWATT_MODEL_WORKLOAD_H
#define DRIVEWATT_MODEL_WORKLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/rc.h"

#define WORKLOAD_NAME_SIZE 65

enum workload_pattern {
	PATTERN_READ,
	PATTERN_WRITE,
	PATTERN_RANDREAD,
	PATTERN_RANDWRITE,
	PATTERN_RW,
	PATTERN_RANDRW,
	PATTERN_IDLE, /* no I/O: the power of doing nothing */
	PATTERN_COUNT_
};
/* fio's own words: "read", "randrw", …; "idle". */
const char *workload_pattern_name(enum workload_pattern p);
bool workload_pattern_from_name(const char *name, enum workload_pattern *out);
bool workload_pattern_writes(enum workload_pattern p);

struct workload {
	char name[WORKLOAD_NAME_SIZE]; /* "" for an inline one */
	bool builtin;
	uint8_t pattern;           /* enum workload_pattern */
	uint32_t block_bytes;      /* 512 … 16 MiB, a multiple of 512 */
	uint16_t iodepth;          /* 1 … 1024, per job */
	uint16_t jobs;             /* 1 … 64, per drive */
	uint8_t read_pct;          /* of mixed patterns, 0 … 100 */
	uint64_t size_bytes;       /* region from the start of the namespace; 0 all */
	uint64_t rate_bytes_per_s; /* cap per drive; 0 none */
	bool direct;
	uint32_t config_version; /* model/version.h; 0 of a built-in or inline one */
};

/* The catalogue, and how many. The names of API.md, whose shapes follow SNIA PTS block sizes. */
const struct workload *workload_builtins(size_t *count);
const struct workload *workload_builtin(const char *name);
/* fio holds every block in flight in memory of its own: of all drives of a run together. */
#define WORKLOAD_BUFFERS_MAX (INT64_C(2) << 30)

/* Ranges and combinations; fields are prefixed with base ("/workload"). */
enum rc must_check workload_check(const struct workload *w, const char *base, struct err *err);
/* Do its blocks in flight on so many drives fit into WORKLOAD_BUFFERS_MAX? Ranges are checked. */
enum rc must_check workload_check_buffers(
	const struct workload *w, unsigned drives, const char *base, struct err *err);

#endif
