/* How a figure came to be. Figures of different quality are never summed silently. */
#ifndef DRIVEWATT_MODEL_QUALITY_H
#define DRIVEWATT_MODEL_QUALITY_H

#include <stdbool.h>
#include <stdint.h>

/* No value, for milliwatts, milli-degrees, milliseconds and counts kept as int64_t. */
#define NONE INT64_MIN

enum quality {
	QUALITY_MEASURED,  /* a meter in the drive or host */
	QUALITY_BMC,       /* the BMC says so */
	QUALITY_DERIVED,   /* computed from readings (a sum of supplies, a difference) */
	QUALITY_DECLARED,  /* a person or a data sheet says so */
	QUALITY_ESTIMATED, /* from a curve */
	QUALITY_SIMULATED, /* made up by the simulator */
	QUALITY_COUNT_
};

/* "measured", …; "unknown" when out of range. */
const char *quality_name(enum quality q);
bool quality_from_name(const char *name, enum quality *out);

#endif
