/*
 * A drive's own ways to keep a limit in watts: NVMe Power Limit (NVM Express Base
 * Specification 2.3, feature 23h) and DSSD Power State (OCP Datacenter NVMe SSD Specification,
 * feature C7h, which the drive's UUID list must name; its values are in log C4h). What blocks on
 * the drive: from a lane.
 */
#ifndef DRIVEWATT_PRIV_LIMITS_H
#define DRIVEWATT_PRIV_LIMITS_H

#include "priv/protocol.h"

/* What the drive offers, by its Identify Controller and what that leads to. What cannot be read it
 * does not offer. Blocks. */
void limits_read(int fd, const uint8_t identify[NVME_IDENTIFY_BYTES], struct power_limits *out);

/* The limit that it has by these means now; NONE: none. Blocks. */
enum rc must_check limits_get(
	int fd, enum power_means means, uint8_t uuid_index, int64_t *limit_mw, struct err *err);
/* Sets state and limit as op says, once the drive itself has said that it has these means and takes
 * this value: RC_CONFLICT otherwise. Blocks. */
enum rc must_check limits_set(int fd, const struct priv_drive_op *op, struct err *err);

/* Pure. Index of OCP's UUID in a UUID list (Identify, CNS 17h), 0 when it is not there. */
uint8_t limits_ocp_index(const uint8_t list[NVME_IDENTIFY_BYTES]);
/* Pure. Log C4h: false when it is something else. */
bool limits_ocp_decode(const uint8_t log[NVME_IDENTIFY_BYTES], uint8_t states[OCP_POWER_STATES]);
/* Pure. A value with its scale, as in dword 11 of feature 23h. NONE: none, or an unknown scale. */
int64_t limits_decode(uint32_t dword);
uint32_t limits_encode(int64_t limit_mw);

#endif
