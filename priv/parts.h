/*
 * What parts of this machine measure of themselves, and who it is: the processors' energy counters
 * (RAPL), power sensors (hwmon), SMBIOS. Read from below a replaceable /sys. Any thread.
 */
#ifndef DRIVEWATT_PRIV_PARTS_H
#define DRIVEWATT_PRIV_PARTS_H

#include "priv/sysfs.h"

/* No packages and no sensors where there are none. */
void parts_read(const struct sysfs_root *root, struct priv_parts *out);
/* "" what is not known. */
void machine_read(const struct sysfs_root *root, struct priv_machine *out);

/* The Redfish service that a record of SMBIOS type 42 names, as a URL without a path; false when
 * there is none or it cannot be told. Pure. */
bool machine_host_interface(const uint8_t *record, size_t len, char *url, size_t size);

#endif
