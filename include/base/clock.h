/*
 * Time, replaceable in tests. Wall time is what people see and the store keeps; every duration
 * and every energy is computed on the monotonic clock, which means something only within a boot.
 * Any thread.
 */
#ifndef DRIVEWATT_BASE_CLOCK_H
#define DRIVEWATT_BASE_CLOCK_H

#include <stdint.h>

/* CLOCK_REALTIME in epoch milliseconds. */
int64_t clock_wall_ms(void);
/* CLOCK_MONOTONIC in nanoseconds. */
int64_t clock_mono_ns(void);
static inline int64_t clock_mono_ms(void) {
	return clock_mono_ns() / 1000000;
}
/* Where a counter that stands behind ETags begins, so that no value comes again after a restart:
 * the wall time in microseconds. It holds while the counter moves less than a million times a
 * second and the clock is not set back. */
static inline uint64_t clock_first_version(void) {
	return (uint64_t)clock_wall_ms() * 1000;
}
/* The kernel's boot id (36 characters), read once; "" where there is none. */
const char *clock_boot_id(void);

/* Tests only: NULL functions bring the real clocks back. */
void clock_replace(int64_t (*wall_ms)(void), int64_t (*mono_ns)(void));

#endif
