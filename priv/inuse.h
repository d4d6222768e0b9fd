/*
 * The interlock: what speaks against using a block device or file. Looks at mounts (by device
 * number and by source, in this process's mount namespace and in init's), holders and slaves,
 * swap, partitions, signatures and other processes. Reads only; the last gate is the exclusive open
 * that a run holds. Any thread.
 */
#ifndef DRIVEWATT_PRIV_INUSE_H
#define DRIVEWATT_PRIV_INUSE_H

#include "model/drive.h"
#include "priv/openers.h"
#include "priv/sysfs.h"

/* Adds a use unless the same stands there already. Kept in order of kind; of more than
 * DRIVE_MAX_USES the last is dropped. */
void use_add(struct drive_namespace *ns, enum use_kind kind, const char *fmt, ...)
	printf_like(3, 4);

/*
 * Which block device does this path mean? It must be canonical, directly usable as one file name
 * by fio (no colon) and the node of a block device that is not hidden. RC_INVALID says why not.
 */
enum rc must_check inuse_resolve(const struct sysfs_root *root, const char *path,
	char name[SYSFS_NAME_SIZE], struct err *err);

/* Fills ns (all but nsid and path) for the block device of this kernel name, with all uses that
 * sysfs and procfs show. What cannot be looked at is USE_UNKNOWN, what may be hidden USE_UNSEEN.
 * openers NULL: other processes are left out. May block for a second, see there. */
void inuse_block(const struct sysfs_root *root, struct openers *openers, const char *name,
	struct drive_namespace *ns);
/* The same for a regular file, which fd is: swap and loop devices on it, under whatever name. */
void inuse_file(
	const struct sysfs_root *root, struct openers *openers, int fd, struct drive_namespace *ns);

/* Adds what the first bytes show: a partition table or the signature of a file system, RAID,
 * LVM … fd is open for reading. */
void inuse_signature(int fd, struct drive_namespace *ns);

#endif
