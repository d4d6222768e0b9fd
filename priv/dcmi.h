/*
 * The system's watts from its BMC over /dev/ipmi0, without a password: asked by ipmitool or by
 * FreeIPMI's ipmi-dcmi, whichever the program is, with arguments that nobody can change.
 */
#ifndef DRIVEWATT_PRIV_DCMI_H
#define DRIVEWATT_PRIV_DCMI_H

#include <stdint.h>

#include "base/rc.h"

/* The watts in what either program prints, to milliwatts. RC_UNSUPPORTED: it says that nothing is
 * measured; RC_CORRUPT: there is no such line. Pure. */
enum rc must_check dcmi_parse(const char *text, int64_t *power_mw, struct err *err);

/* Runs the program, absolute, and parses. At most timeout_ms, then it is killed. RC_UNSUPPORTED:
 * it is not installed, or measures nothing; RC_REFUSED with its own words; RC_TIMEOUT. Blocks. */
enum rc must_check dcmi_read(
	const char *program, int64_t timeout_ms, int64_t *power_mw, struct err *err);

#endif
