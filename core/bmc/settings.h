/* Checks of what a client may set on a host. Pure but for the CA file, which must be readable. */
#ifndef DRIVEWATT_CORE_BMC_SETTINGS_H
#define DRIVEWATT_CORE_BMC_SETTINGS_H

#include "base/rc.h"
#include "model/host.h"

/* A name of 1 … 64 bytes without control characters. field "/name". */
enum rc must_check settings_check_name(const char *name, struct err *err);
/* Fills in defaults, brings the URL and the fingerprint into their one form, and refuses by
 * "/bmc/…" what makes no sense. Settings that are not present become empty. */
enum rc must_check settings_normalise(struct bmc_settings *b, struct err *err);
/* Everything but the password. Both normalised. */
bool settings_are_same(const struct bmc_settings *a, const struct bmc_settings *b);

#endif
