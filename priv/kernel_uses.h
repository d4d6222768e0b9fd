/*
 * What the kernel itself has made of a device or file without claiming it: loop devices, and what
 * is exported to other machines by nvmet and LIO, as configfs shows it. Any thread.
 */
#ifndef DRIVEWATT_PRIV_KERNEL_USES_H
#define DRIVEWATT_PRIV_KERNEL_USES_H

#include "model/drive.h"
#include "priv/inode_ref.h"
#include "priv/sysfs.h"

/* Adds USE_HOLDER and USE_EXPORT for all that stands on what match takes, and USE_UNSEEN for what
 * could not be asked. */
void kernel_uses_add(const struct sysfs_root *root, inode_match *match, const void *arg,
	struct drive_namespace *ns);

#endif
