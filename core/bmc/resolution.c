#include "core/bmc/resolution.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "model/quality.h"

#define MAX_DIVISOR 64
#define ROUNDING_MW 1.5 /* of a difference of two rounded values, and some */

static int by_value(const void *a, const void *b) {
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	return (x > y) - (x < y);
}

/* Over how many steps of about that size the sorted values spread. */
static double count_steps(const int64_t *sorted, size_t n, double step) {
	double total = 0;
	for (size_t i = 1; i < n; i++)
		total += round((double)(sorted[i] - sorted[i - 1]) / step);
	return total;
}

static bool is_grid(const int64_t *sorted, size_t n, double step) {
	for (size_t i = 1; i < n; i++) {
		double difference = (double)(sorted[i] - sorted[i - 1]);
		if (fabs(difference - round(difference / step) * step) > ROUNDING_MW)
			return false;
	}
	return true;
}

int64_t resolution_step(const int64_t *values_mw, size_t n) {
	int64_t sorted[RESOLUTION_KEPT];
	if (n < 2 || n > RESOLUTION_KEPT)
		return 1;
	memcpy(sorted, values_mw, n * sizeof(sorted[0]));
	qsort(sorted, n, sizeof(sorted[0]), by_value);
	double smallest = INFINITY, range = (double)(sorted[n - 1] - sorted[0]);
	for (size_t i = 1; i < n; i++)
		smallest = fmin(smallest, (double)(sorted[i] - sorted[i - 1]));
	/* The step divides the smallest difference: the largest such divisor that fits them all.
	 * The smallest difference is rounded, the whole range tells the step more exactly. */
	for (int divisor = 1; divisor <= MAX_DIVISOR; divisor++) {
		double step = range / count_steps(sorted, n, smallest / divisor);
		if (is_grid(sorted, n, step))
			return llround(fmax(step, 1));
	}
	return 1;
}

void resolution_init(struct resolution *r) {
	*r = (struct resolution){.step_mw = NONE, .difference_mw = NONE};
}

static void learn_difference(struct resolution *r, int64_t power_mw) {
	for (size_t i = 0; i < r->count; i++) {
		int64_t difference_mw = llabs(r->seen_mw[i] - power_mw);
		if (r->difference_mw == NONE || difference_mw < r->difference_mw)
			r->difference_mw = difference_mw;
	}
}

int64_t resolution_learn(struct resolution *r, int64_t power_mw) {
	for (size_t i = 0; i < r->count; i++) {
		if (r->seen_mw[i] == power_mw)
			return r->step_mw;
	}
	learn_difference(r, power_mw);
	r->seen_mw[r->next] = power_mw;
	r->next = (r->next + 1) % RESOLUTION_KEPT;
	if (r->count < RESOLUTION_KEPT)
		r->count++;
	if (r->count >= RESOLUTION_MIN_READINGS)
		r->step_mw = resolution_step(r->seen_mw, r->count);
	return r->step_mw;
}
