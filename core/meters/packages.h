/* Watts from the processors' energy counters. Pure. */
#ifndef DRIVEWATT_CORE_METERS_PACKAGES_H
#define DRIVEWATT_CORE_METERS_PACKAGES_H

#include <stdbool.h>

#include "priv/protocol.h"

struct package_power {
	int64_t power_mw;       /* of all packages, since the earlier reading; NONE unknown */
	int64_t uncertainty_mw; /* k = 2; of reading the counters, not of how well they count */
};

/* The sum over all packages between two readings. NONE when they are not of the same packages, too
 * close together, or so far apart that a counter may have begun anew more than once. */
struct package_power packages_power(const struct priv_parts *from, const struct priv_parts *to);

#endif
