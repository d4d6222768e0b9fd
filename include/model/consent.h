/*
 * May a run touch this namespace? The one set of rules: the daemon asks it by what it knows before
 * a run is queued, and the helper again by what it finds with the devices open. Pure; any thread.
 */
#ifndef DRIVEWATT_MODEL_CONSENT_H
#define DRIVEWATT_MODEL_CONSENT_H

#include "base/rc.h"
#include "model/drive.h"

struct consent {
	bool allow_destructive;  /* the server's permission for runs that write */
	bool allow_in_use;       /* … and for reads of what is in use */
	bool writes;             /* what is asked for … */
	bool override_signature; /* … although there is a signature */
	unsigned index;          /* of the run's drives: "/drives/2" */
	const char *serial;      /* the drive's */
	bool serial_unique;      /* it tells the drive from all others */
	bool confirmed_loss;     /* the serial stands in confirm_destructive */
	bool confirmed_in_use;   /* … and in confirm_in_use */
};

/* Does the list have this serial number? */
bool consent_is_listed(const char *serial, const char (*list)[21], unsigned count);

/*
 * Writing wants the server's permission, a unique serial that was confirmed, and no use at all, but
 * for an overridden signature. Reading of what is in use wants the server's permission and the
 * serial in confirm_in_use. err.field names what is missing: RC_FORBIDDEN a permission or consent,
 * RC_CONFLICT a use that stands against it.
 */
enum rc must_check consent_check(
	const struct consent *c, const struct drive_namespace *ns, struct err *err);

#endif
