/*
 * Energy between samples: the trapezoid of neighbouring samples on the monotonic clock, laid onto
 * steps of wall time; of a counter its rises, spread evenly. Pure, one pass, samples in the order
 * in which they were taken.
 */
#ifndef DRIVEWATT_CORE_ENERGY_INTEGRATE_H
#define DRIVEWATT_CORE_ENERGY_INTEGRATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/sample.h"

/* How a sample goes with the one that stands before it. */
enum link {
	LINK_NEXT,  /* none was taken between them */
	LINK_APART, /* others were, which are not here */
	LINK_LATE,  /* it came late: it goes between those where it belongs */
};

/* A sample and the boot in which it was taken: a number that goes up from boot to boot. */
struct reading {
	int64_t at_ms, at_mono_ns, value_milli;
	int32_t boot;
	enum link link;
};

/* How two neighbours are joined. */
struct joining {
	int64_t max_gap_ms; /* further apart there is nothing between them */
	/* 0: the value is what is integrated. Else it counts, a fall is a new beginning from 0, and
	 * this much is added to the integral, in milli-units × ms, for each of its thousandths. */
	double per_milli;
};

/* One step of the result, [at_ms, the next one's at_ms). */
struct integral {
	int64_t at_ms;
	double milli_ms;   /* Σ value × time: µJ of a power series or energy counter */
	double covered_ms; /* on the wall clock */
	int64_t min_milli, max_milli; /* of the samples in it; NONE */
	int64_t count, sum_milli;     /* of the samples in it */
};

struct integrator {
	struct joining how;
	struct integral *steps; /* borrowed; ascending */
	size_t count;
	int64_t end_ms; /* of the last step */
	size_t at;      /* the step that was used last */
	bool has_last;
	struct reading last;
	double uncovered_ms; /* gaps longer than max_gap_ms, wherever they lie */
	int64_t resets;      /* of a counter, likewise */
};

/* steps[].at_ms are filled by the caller, the rest is set here. */
void integrator_init(struct integrator *in, const struct joining *how, struct integral *steps,
	size_t count, int64_t end_ms);
void integrator_add(struct integrator *in, const struct reading *r);

/* Where on the wall clock lies what is between two neighbours; false when there is nothing. */
bool joining_span(const struct joining *how, const struct reading *a, const struct reading *b,
	int64_t *begin_ms, int64_t *end_ms);
/* Whether wall and monotonic clock tell the same of them, but for rounding and slewing. */
bool readings_agree(const struct reading *a, const struct reading *b);

#endif
