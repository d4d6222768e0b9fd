/* fio's progress lines: "Jobs: 4 (f=4): [m(4)][57.1%][r=31.2MiB/s,w=1KiB/s][r=7982 IOPS]…". */
#ifndef DRIVEWATT_CORE_BENCH_ETA_H
#define DRIVEWATT_CORE_BENCH_ETA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct eta {
	double progress;                             /* 0–1; NaN when the line has none */
	int64_t read_bytes_per_s, write_bytes_per_s; /* NONE when the line has none */
};

/* Reads the last line that tells something; lines end in CR or LF, the last one perhaps in
 * nothing. False when no line does. */
bool eta_parse(const char *text, size_t len, struct eta *out);

#endif
