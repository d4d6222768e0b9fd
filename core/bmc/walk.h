/* What the files of the walk share. */
#ifndef DRIVEWATT_CORE_BMC_WALK_H
#define DRIVEWATT_CORE_BMC_WALK_H

#include "core/bmc/redfish.h"

enum walk_stage {
	/* Which chassis is the host's? */
	STAGE_CHASSIS_LIST,
	STAGE_CHASSIS,
	/* Its watts. */
	STAGE_ENVIRONMENT,
	STAGE_POWER,
	STAGE_SENSOR_LIST,
	STAGE_SENSOR,
	STAGE_CHASSIS_STATE,
	STAGE_SYSTEM_STATE,
	/* Its supplies, for the watts or as an extra. */
	STAGE_SUBSYSTEM,
	STAGE_SUPPLY_LIST,
	STAGE_SUPPLY,
	STAGE_SUPPLY_METRICS,
	/* Extras. */
	STAGE_LINKS,
	STAGE_MORE_ENVIRONMENT,
	STAGE_THERMAL_SUBSYSTEM,
	STAGE_THERMAL,
	STAGE_CONTROL_LIST,
	STAGE_CONTROL,
	STAGE_OWN,
	STAGE_SYSTEM,
	STAGE_COUNT_
};

typedef void walk_feed_fn(struct bmc_walk *w, const json_t *doc);
typedef void walk_failed_fn(struct bmc_walk *w);

void walk_ask(struct bmc_walk *w, enum walk_stage stage, const char *uri);
/* The chassis whose place it is. */
struct bmc_chassis *walk_chassis(struct bmc_walk *w);
/* The reading's watts, if r has some, else the next place is asked. */
void walk_take(struct bmc_walk *w, const struct bmc_reading *r);
/* What is asked for has nothing: on to the next place, or to the next extra. */
void walk_go_on(struct bmc_walk *w);

/* walk_supplies.c. Asks nothing when the chassis has no subsystem. */
void supplies_begin(struct bmc_walk *w);
walk_feed_fn feed_subsystem, feed_supply_list, feed_supply, feed_supply_metrics;
walk_failed_fn supply_failed, supply_metrics_failed;

/* walk_extras.c */
void extras_begin(struct bmc_walk *w);
void extras_next(struct bmc_walk *w);
/* Fills in what `to` does not know. */
void extras_merge(struct bmc_extras *to, const struct bmc_extras *from);
walk_feed_fn feed_links, feed_more_environment, feed_thermal_subsystem, feed_thermal,
	feed_control_list, feed_control, feed_own, feed_system;
walk_failed_fn own_failed;

#endif
