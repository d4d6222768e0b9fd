/*
 * Forgets what is older than its table's limit, in small transactions between which others write,
 * and checkpoints the stores. All fields but `busy` are fixed; `lock` guards that and is a leaf.
 */
#ifndef DRIVEWATT_CORE_RETENTION_H
#define DRIVEWATT_CORE_RETENTION_H

#include <stdint.h>

#include "base/pool.h"
#include "base/rc.h"
#include "base/timer.h"
#include "core/energy.h"
#include "db/db.h"

struct retention;

struct retention_config {
	int64_t prune_ms, checkpoint_ms;                       /* periods */
	int64_t event_days, audit_days, run_days, sample_days; /* 0: kept for ever */
};

/* Begins at once. energy NULL: no samples are pruned. */
struct retention *retention_new(const struct retention_config *config, struct db *control,
	struct db *samples, struct energy *energy, struct timers *timers, struct pool *jobs,
	struct err *err);
/* Waits for a job that runs. NULL is fine. */
void retention_free(struct retention *r);

#endif
