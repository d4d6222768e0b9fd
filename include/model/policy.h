/* Which drives somebody means, and standing wishes for all of them. */
#ifndef DRIVEWATT_MODEL_POLICY_H
#define DRIVEWATT_MODEL_POLICY_H

#include "model/power.h"

#define POLICY_NAME_SIZE 65

/* All that is given must fit; empty texts fit every drive. */
struct drive_selector {
	char model[41];
	char host[37];    /* a host's id */
	char slot[32];    /* the PCI address, or the physical slot */
	char labels[512]; /* JSON object of strings, all of which the drive must have */
};

/* What shall hold for every drive that the selector fits, also for one that comes later. Of several
 * that fit a drive the one of the highest priority counts, among equals the one whose name sorts
 * first. */
struct policy {
	char name[POLICY_NAME_SIZE];
	int32_t priority;
	struct drive_selector selector;
	struct power_wish wish;
	int64_t created_ms, changed_ms;
	uint32_t config_version;
};

bool drive_selector_is_same(const struct drive_selector *a, const struct drive_selector *b);
bool policy_is_same(const struct policy *a, const struct policy *b);
/* Below 0 when a comes before b: of two that fit a drive, the first counts. */
int policy_compare(const struct policy *a, const struct policy *b);

#endif
