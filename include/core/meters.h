/*
 * What this machine measures of itself, without its BMC's network: the system's watts over DCMI,
 * and those of parts: the processors' packages (RAPL) and power sensors (hwmon). Asks the helper,
 * tells the hosts.
 */
#ifndef DRIVEWATT_CORE_METERS_H
#define DRIVEWATT_CORE_METERS_H

#include "base/pool.h"
#include "base/timer.h"
#include "core/energy.h"
#include "core/hosts.h"
#include "core/privc.h"

struct meters;

struct meters_config {
	const char *host_id; /* the local host's; copied */
	int64_t period_ms;   /* unless more is demanded; over 0 */
};

/* All pointers are borrowed until meters_free. */
struct meters *meters_new(const struct meters_config *config, struct hosts *hosts,
	struct energy *energy, struct privc *privc, struct timers *timers, struct pool *jobs,
	struct err *err);
/* Asks no more: before privc_free. */
void meters_stop(struct meters *m);
/* After privc_free, so that no answer is on its way; waits for jobs. NULL is fine. */
void meters_free(struct meters *m);
/* Begins to ask. */
enum rc must_check meters_start(struct meters *m, struct err *err);

#endif
