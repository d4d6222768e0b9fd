/*
 * Latencies counted by nanoseconds, as fio's json+ output gives them, merged over jobs and drives.
 * fio counts into at most 1,856 fixed bins, so that bins of different jobs have the same keys.
 */
#ifndef DRIVEWATT_CORE_BENCH_HISTOGRAM_H
#define DRIVEWATT_CORE_BENCH_HISTOGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/run.h"

#define HISTOGRAM_MAX_BINS 1920

struct histogram_bin {
	uint64_t ns, count;
};

struct histogram {
	size_t bin_count;
	uint64_t count; /* sum of the bins */
	double sum_ns;  /* of all latencies: the mean is exact although bins are coarse */
	double weight;  /* how many latencies sum_ns stands for */
	double max_ns;
	struct histogram_bin bins[HISTOGRAM_MAX_BINS]; /* ascending */
};

/* False when all bins are taken: what was counted so far stays. */
bool histogram_add(struct histogram *h, uint64_t ns, uint64_t count);
/* The mean and maximum of n latencies, beside their bins. */
void histogram_add_summary(struct histogram *h, double mean_ns, double n, double max_ns);
bool histogram_merge(struct histogram *into, const struct histogram *from);
/* The key of the first bin with which at least p percent of all are counted, as fio does it, but
 * never above the maximum; NaN when empty. */
double histogram_percentile_ns(const struct histogram *h, double p);
/* In microseconds, divided by scale (the simulator's slow motion; 1 otherwise). */
void histogram_latency(const struct histogram *h, double scale, struct run_latency *out);

#endif
