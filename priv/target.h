/* Configured targets: plain block devices and files, which have no power states. */
#ifndef DRIVEWATT_PRIV_TARGET_H
#define DRIVEWATT_PRIV_TARGET_H

#include "priv/protocol.h"
#include "priv/sysfs.h"

/*
 * Looks at the index-th target. Its serial is the device's own (serial, else world-wide name), for
 * devices without one a hash of the path and of the kernel's number for this very disk since the
 * boot, for files that of file_serial().
 */
enum rc must_check target_read(const struct sysfs_root *root, const char *path, unsigned index,
	struct priv_found *out, struct err *err);

#endif
