/*
 * From readings of a meter to power figures with their uncertainty. Pure.
 *
 * A meter of resolution q shows a value within q/2 of the truth, so one reading has the standard
 * uncertainty q/√12 (JCGM 100:2008, 4.3.7). That part is common to all readings of a meter that
 * stands still, so it does not shrink with their number; the scatter of n readings does, with the
 * number of independent ones among them (4.2.3). Reported are k = 2 and the hard bound.
 */
#ifndef DRIVEWATT_CORE_BENCH_WATTS_H
#define DRIVEWATT_CORE_BENCH_WATTS_H

#include <stddef.h>
#include <stdint.h>

#include "model/host.h"
#include "model/run.h"

/* A meter shows what was some time ago, and few say how long: readings from the beginning of the
 * window show the time before the load. This much is left out, of short windows a fifth. */
#define WATTS_LAG_MS 2000

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

int64_t watts_begin_ms(int64_t from_ms, int64_t to_ms);
/* resolution_mw may be NONE. Fewer than RUN_MIN_FRESH_READINGS give count alone. */
struct watts_mean watts_mean_of(const struct watts_reading *r, size_t n, int64_t resolution_mw);
/* A base without an uncertainty of its own counts as one reading of the same meter. */
struct watts_difference watts_above(const struct watts_mean *load, const struct baseline *base,
	int64_t resolution_mw, unsigned drives);

#endif
