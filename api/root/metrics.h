/* The parts of /metrics. They add families to out, for which the route's limit holds. */
#ifndef DRIVEWATT_API_ROOT_METRICS_H
#define DRIVEWATT_API_ROOT_METRICS_H

#include "base/buf.h"

struct drives;
struct hosts;

/* Every reading has a label `quality`, everything else about a drive `simulated`. What is not known
 * has no sample; nothing has one when memory is out. */
void metrics_add_drives(struct buf *out, struct drives *drives, const char *host_id);
void metrics_add_hosts(struct buf *out, struct hosts *hosts);

#endif
