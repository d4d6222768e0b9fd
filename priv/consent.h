/*
 * May this run touch this target? Asked of model/consent.h by what the helper itself has found,
 * whatever the network process has already checked. Pure; any thread.
 */
#ifndef DRIVEWATT_PRIV_CONSENT_H
#define DRIVEWATT_PRIV_CONSENT_H

#include "priv/helper.h"
#include "priv/protocol.h"

struct consent_target {
	unsigned index; /* of the run's targets: "/drives/2" */
	const char *serial;
	bool serial_unique;
	const struct drive_namespace *ns; /* with all uses found */
};

/* What no target can change: observe-only, permission for runs that write. */
enum rc must_check consent_run(
	const struct priv_config *config, const struct priv_run_start *start, struct err *err);
/* A real target; as consent_check(). */
enum rc must_check consent_target(const struct priv_config *config,
	const struct priv_run_start *start, const struct consent_target *target, struct err *err);

#endif
