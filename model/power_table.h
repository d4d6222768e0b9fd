/* How a power state compares with a limit. */
#ifndef DRIVEWATT_MODEL_POWER_TABLE_H
#define DRIVEWATT_MODEL_POWER_TABLE_H

#include "model/power.h"

/* A reported max power in milliwatts, rounded up. */
int64_t power_state_max_mw(const struct power_state *s);
/* Is the state's max power reported and at most limit_mw? */
bool power_state_fits(const struct power_state *s, int64_t limit_mw);

/* The operational state with the lowest known power; where none is known, the last one; -1. */
int power_table_lowest(const struct power_table *t);
/* The operational state with the highest known power; where none is known, the first one; -1. */
int power_table_fastest(const struct power_table *t);

#endif
