/*
 * From readings of a meter to power figures with their uncertainty. Pure.
 *
 * A meter of resolution q shows a value within q/2 of the truth, so one reading has the standard
 * uncertainty q/√12 (JCGM 100:2008, 4.3.7). That part is common to all readings of a meter that
 * stands still, so it does not shrink with their number; the scatter of n readings does, with the
 * number of independent ones among them (4.2.3). Reported are k = 2 and the hard bound. While the
 * resolution is not known, the smallest difference between two readings stands in for it: it is a
 * multiple of the resolution.
 *
 * A meter also lags. What a lag of the first order (time constant t) has smoothed is p = y + t y',
 * so the mean power from the first reading to the last is mean(y) + t (last - first) / duration,
 * whatever the load did. Where the lag is not known, the begin of the window is left out, and half
 * of what the mean moves from one half of the rest to the other is added to the uncertainty.
 */
#ifndef DRIVEWATT_CORE_BENCH_WATTS_H
#define DRIVEWATT_CORE_BENCH_WATTS_H

#include <stddef.h>
#include <stdint.h>

#include "model/host.h"
#include "model/run.h"

/* What is left out at the begin for a lag that is not known; of short windows a fifth. */
#define WATTS_LAG_MS 2000

/* What is known of the meter; each NONE when it is not. */
struct watts_meter {
	int64_t resolution_mw;
	int64_t step_mw; /* the resolution, or what stands in for it */
	int64_t lag_ms;  /* time constant; 0: it shows the very moment */
};

struct watts_reading {
	int64_t at_ms, mw;
};

struct watts_mean {
	uint32_t count;
	double mean_w, min_w, max_w; /* NaN when there are too few */
	double standard_w;           /* standard uncertainty, k = 1; NaN when the readings do not
				change and the resolution is unknown */
};

struct watts_difference {
	double above_w, per_drive_w;
	double uncertainty_w; /* of above_w, k = 2 */
	double bound_w;       /* NaN without a resolution */
};

/* The first time of the window from which readings count. */
int64_t watts_begin_ms(const struct watts_meter *m, int64_t from_ms, int64_t to_ms);
/* Fewer than RUN_MIN_FRESH_READINGS, or no time between them, give count alone. */
struct watts_mean watts_mean_of(
	const struct watts_reading *r, size_t n, const struct watts_meter *m);
/* A base without an uncertainty of its own counts as one reading of the same meter. */
struct watts_difference watts_above(const struct watts_mean *load, const struct baseline *base,
	const struct watts_meter *m, unsigned drives);

#endif
