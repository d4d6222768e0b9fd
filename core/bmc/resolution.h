/* Learns a meter's smallest step from its readings. */
#ifndef DRIVEWATT_CORE_BMC_RESOLUTION_H
#define DRIVEWATT_CORE_BMC_RESOLUTION_H

#include <stddef.h>
#include <stdint.h>

#define RESOLUTION_MIN_READINGS 8
#define RESOLUTION_KEPT 32

struct resolution {
	size_t count, next;               /* the oldest is replaced once full */
	int64_t seen_mw[RESOLUTION_KEPT]; /* distinct */
	int64_t step_mw;                  /* NONE until known */
	int64_t difference_mw;            /* the smallest; NONE while all are the same */
};

void resolution_init(struct resolution *r);
/* Returns the step known now, or NONE while fewer than RESOLUTION_MIN_READINGS distinct readings
 * were seen. */
int64_t resolution_learn(struct resolution *r, int64_t power_mw);

/* The greatest step of which all differences of the n distinct values are multiples, within the
 * rounding to milliwatts; 1 at least. Pure. */
int64_t resolution_step(const int64_t *values_mw, size_t n);

#endif
