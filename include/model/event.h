/* What happened, as rows with ids that are never reused. */
#ifndef DRIVEWATT_MODEL_EVENT_H
#define DRIVEWATT_MODEL_EVENT_H

#include <stdbool.h>
#include <stdint.h>

/* X(enum suffix, wire name, default severity) */
#define EVENT_TYPES(X) \
	X(DRIVE_ADDED, "drive.added", "info") \
	X(DRIVE_REMOVED, "drive.removed", "warning") \
	X(DRIVE_STATE, "drive.state_changed", "warning") \
	X(POWER_DESIRED, "power.desired_changed", "info") \
	X(POWER_APPLIED, "power.applied", "info") \
	X(POWER_DRIFT, "power.drift", "warning") \
	X(POWER_REFUSED, "power.refused", "warning") \
	X(POLICY_CHANGED, "policy.changed", "info") \
	X(TASK_STATE, "task.state_changed", "info") \
	X(RUN_STATE, "benchmark.state_changed", "info") \
	X(HOST_CHANGED, "host.changed", "info") \
	X(HOST_LIMIT, "host.limit_changed", "info") \
	X(HOST_LIMIT_REFUSED, "host.limit_refused", "warning") \
	X(BMC_STATE, "bmc.state_changed", "warning") \
	X(ACCOUNT_CHANGED, "account.changed", "info") \
	X(SERVICE, "service.state_changed", "info") \
	X(CLOCK_STEP, "clock.stepped", "warning")

enum event_type {
#define EVENT_ENUM_(id, name, sev) EVENT_##id,
	EVENT_TYPES(EVENT_ENUM_)
#undef EVENT_ENUM_
		EVENT_TYPE_COUNT_
};
const char *event_type_name(enum event_type t);
const char *event_type_severity(enum event_type t);
bool event_type_from_name(const char *name, enum event_type *out);

#define EVENT_OBJECT_SIZE 96 /* "/workloads/" and a name of 64 */

struct event {
	int64_t id; /* ascending, never reused */
	int64_t at_ms;
	enum event_type type;
	char object[EVENT_OBJECT_SIZE]; /* path below /api/v1, "/drives/<id>"; "" none */
	char actor[65];
	char *data; /* JSON object text, owned by the holder; NULL none */
};

struct audit_entry {
	int64_t id;
	int64_t at_ms;
	char actor[65];
	char address[48];
	char request_id[37];
	char action[48]; /* "power.set_desired", "account.create" … */
	char object[EVENT_OBJECT_SIZE];
	char outcome[24]; /* "intent", or an rc_name */
	char *detail;     /* JSON object text, owned by the holder; NULL none */
};

#endif
