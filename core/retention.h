/*
 * Forgets what is older than its table's limit, in transactions of at most 500 rows between which
 * others write, and checkpoints the stores. Kept are:
 *
 *	events, audit       event_days, audit_days
 *	tasks               task_days after they ended, with their targets
 *	runs                run_days after they ended; their documents with them
 *	samples             sample_days, at most other_days those that are neither power nor energy
 *	their aggregates    by quarters of an hour quarter_days, by hours hour_days; at most
 *	                    other_days likewise
 *	series              a day longer than the last that is kept of them
 *	idempotency keys    1 day
 *	tokens              RETENTION_TOKEN_DAYS after they expired
 *	drives              RETENTION_DRIVE_DAYS after they were last seen; with labels or claims
 *	                    for ever
 *
 * Accounts, hosts, baselines, workloads and claims stay until somebody deletes them, leases and
 * other claims with an end until that. All fields but `busy` are fixed; `lock` guards that and is a
 * leaf.
 */
#ifndef DRIVEWATT_CORE_RETENTION_H
#define DRIVEWATT_CORE_RETENTION_H

#include <stdint.h>

#include "base/pool.h"
#include "base/rc.h"
#include "base/timer.h"
#include "core/energy.h"
#include "db/db.h"

#define RETENTION_TOKEN_DAYS 30
#define RETENTION_DRIVE_DAYS 365

struct retention;

struct retention_config {
	int64_t prune_ms, checkpoint_ms; /* periods, over 0; the first pruning after at most 60 s */
	int64_t probe_ms; /* likewise: whether a store that failed takes changes again */
	int64_t event_days, audit_days, run_days, task_days; /* 0: kept for ever; these too: */
	int64_t sample_days, quarter_days, hour_days, other_days;
};

/* Begins at once, in jobs. energy NULL: no samples are pruned. All but config is borrowed. */
struct retention *retention_new(const struct retention_config *config, struct db *control,
	struct db *samples, struct energy *energy, struct timers *timers, struct pool *jobs,
	struct err *err);
/* Waits for a job that runs. NULL is fine. */
void retention_free(struct retention *r);

#endif
