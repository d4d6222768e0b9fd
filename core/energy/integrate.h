/*
 * Energy between samples: the trapezoid of neighbouring samples on the monotonic clock, laid onto
 * steps of wall time. Pure, one pass, samples in the order in which they were taken.
 */
#ifndef DRIVEWATT_CORE_ENERGY_INTEGRATE_H
#define DRIVEWATT_CORE_ENERGY_INTEGRATE_H

#include <stdbool.h>
#include <stddef.h>

#include "model/sample.h"

/* One step of the result, [at_ms, the next one's at_ms). */
struct integral {
	int64_t at_ms;
	double milli_ms;              /* Σ value × time: µJ of a power series */
	double real_ms;               /* the time in that product, by the monotonic clock */
	double covered_ms;            /* the same on the wall clock, never overlapping */
	int64_t min_milli, max_milli; /* of the samples in it; NONE */
};

struct integrator {
	int64_t max_gap_ms;
	struct integral *steps; /* borrowed; ascending */
	size_t count;
	int64_t end_ms; /* of the last step */
	bool has_last;
	struct sample last;
	double uncovered_ms; /* gaps longer than max_gap_ms, wherever they lie */
};

/* steps[].at_ms are filled by the caller, the rest is set here. */
void integrator_init(struct integrator *in, int64_t max_gap_ms, struct integral *steps,
	size_t count, int64_t end_ms);
/* same_boot: s and the sample before it were taken in one boot. */
void integrator_add(struct integrator *in, const struct sample *s, bool same_boot);

#endif
