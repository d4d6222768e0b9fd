/*
 * Versions of what can be configured: behind ETags and what If-Match means. A version that was once
 * shown for an object never stands for other content of it, also over restarts: they are stored, a
 * change makes the next one, and what can come again under its old name begins at the time.
 */
#ifndef DRIVEWATT_MODEL_VERSION_H
#define DRIVEWATT_MODEL_VERSION_H

#include <stdint.h>

#include "base/clock.h"

/* The first version of what may have been there before under its name: the time in seconds, but
 * above the highest that was deleted in this life. */
static inline uint32_t version_first(uint32_t deleted) {
	const uint32_t now = (uint32_t)(clock_wall_ms() / 1000);
	return now > deleted ? now : deleted + 1;
}

/* As if_version of a change, RC_PRECONDITION when it does not hold: */
#define VERSION_ANY UINT32_C(0)   /* whatever there is */
#define VERSION_ABSENT UINT32_MAX /* nothing is there yet */

#endif
