/*
 * One thread that calls functions at their time. A callback must be short (hand work to a pool).
 * Timers run on the monotonic clock. All functions in any thread; timer_cancel may be called from
 * within the callback of the same timer.
 */
#ifndef DRIVEWATT_BASE_TIMER_H
#define DRIVEWATT_BASE_TIMER_H

#include <stdint.h>

#include "base/rc.h"

struct timers;
typedef void timer_fn(void *arg);
typedef uint64_t timer_id; /* 0 is no timer */

struct timers *timers_new(size_t max_timers, struct err *err);
/* Stops the thread; what is pending is dropped. NULL is fine. */
void timers_free(struct timers *t);

/* First call after delay_ms, then every period_ms (0: once). 0 when the table is full. */
timer_id must_check timer_start(
	struct timers *t, int64_t delay_ms, int64_t period_ms, timer_fn *fn, void *arg);
/* After it returned the callback neither runs nor will run (unless called from the callback
 * itself). An id that is 0 or gone is fine. */
void timer_cancel(struct timers *t, timer_id id);

#endif
