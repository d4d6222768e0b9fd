#include "core/bench/histogram.h"

#include <math.h>
#include <string.h>

static size_t find_bin(const struct histogram *h, uint64_t ns) {
	size_t low = 0, high = h->bin_count;
	while (low < high) {
		size_t middle = (low + high) / 2;
		if (h->bins[middle].ns < ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

bool histogram_add(struct histogram *h, uint64_t ns, uint64_t count) {
	size_t at = find_bin(h, ns);
	if (at == h->bin_count || h->bins[at].ns != ns) {
		if (h->bin_count == HISTOGRAM_MAX_BINS)
			return false;
		memmove(&h->bins[at + 1], &h->bins[at], (h->bin_count - at) * sizeof(h->bins[0]));
		h->bins[at] = (struct histogram_bin){ns, 0};
		h->bin_count++;
	}
	h->bins[at].count += count;
	h->count += count;
	return true;
}

void histogram_add_summary(struct histogram *h, double mean_ns, double n, double max_ns) {
	h->sum_ns += mean_ns * n;
	h->weight += n;
	h->max_ns = fmax(h->max_ns, max_ns);
}

bool histogram_merge(struct histogram *into, const struct histogram *from) {
	bool whole = true;
	for (size_t i = 0; i < from->bin_count; i++)
		whole &= histogram_add(into, from->bins[i].ns, from->bins[i].count);
	into->sum_ns += from->sum_ns;
	into->weight += from->weight;
	into->max_ns = fmax(into->max_ns, from->max_ns);
	return whole;
}

double histogram_percentile_ns(const struct histogram *h, double p) {
	uint64_t sum = 0;
	double wanted = p / 100 * (double)h->count;
	for (size_t i = 0; i < h->bin_count; i++) {
		sum += h->bins[i].count;
		if ((double)sum < wanted)
			continue;
		double ns = (double)h->bins[i].ns;
		return h->max_ns > 0 ? fmin(ns, h->max_ns) : ns;
	}
	return NAN;
}

void histogram_latency(const struct histogram *h, double scale, struct run_latency *out) {
	double us = 1000 * scale;
	*out = (struct run_latency){
		.count = (int64_t)h->count,
		.mean_us = h->weight > 0 ? h->sum_ns / h->weight / us : NAN,
		.p50_us = histogram_percentile_ns(h, 50) / us,
		.p95_us = histogram_percentile_ns(h, 95) / us,
		.p99_us = histogram_percentile_ns(h, 99) / us,
		.p99_9_us = histogram_percentile_ns(h, 99.9) / us,
		.max_us = h->weight > 0 ? h->max_ns / us : NAN,
	};
}
