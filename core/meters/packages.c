#include "core/meters/packages.h"

#include <math.h>
#include <string.h>

#define MIN_NS INT64_C(50000000)
/* The counters move about once a millisecond, so that each of two readings may miss that much. */
#define STEP_NS 1e6
/* No package takes more. */
#define PACKAGE_MAX_W 2000.0

/* Microjoules; NAN when it cannot be told. */
static double used(const struct priv_package *a, const struct priv_package *b, double seconds) {
	if (strcmp(a->name, b->name) != 0 || a->range_uj != b->range_uj ||
		seconds * PACKAGE_MAX_W * 1e6 > (double)b->range_uj)
		return NAN;
	if (b->energy_uj >= a->energy_uj)
		return (double)(b->energy_uj - a->energy_uj);
	return (double)(b->range_uj - a->energy_uj) + (double)b->energy_uj;
}

struct package_power packages_power(const struct priv_parts *from, const struct priv_parts *to) {
	struct package_power none = {.power_mw = NONE, .uncertainty_mw = NONE};
	int64_t passed_ns = to->at_mono_ns - from->at_mono_ns;
	double sum_uj = 0;
	if (!to->package_count || from->package_count != to->package_count || to->packages_cut ||
		passed_ns < MIN_NS)
		return none;
	for (unsigned i = 0; i < to->package_count; i++)
		sum_uj += used(&from->packages[i], &to->packages[i], (double)passed_ns / 1e9);
	if (isnan(sum_uj))
		return none;
	double mw = sum_uj * 1e6 / (double)passed_ns;
	return (struct package_power){
		.power_mw = llround(mw),
		.uncertainty_mw = llround(ceil(2 * mw * STEP_NS / (double)passed_ns)),
	};
}
