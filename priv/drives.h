/*
 * The drives of this machine as the helper answers for them: NVMe controllers that sysfs shows
 * and the configured targets (plain block devices and files, "t0", "t1" …). Any thread; functions
 * that say so block on the drive.
 */
#ifndef DRIVEWATT_PRIV_DRIVES_H
#define DRIVEWATT_PRIV_DRIVES_H

#include "priv/helper.h"
#include "priv/openers.h"
#include "priv/sysfs.h"

struct drives {
	const struct priv_config *config;
	const struct sysfs_root *root;
	struct openers *openers; /* NULL: other processes are not looked at */
};

/* *out is the caller's to free. reason: why something could not be looked at, "" fine. */
enum rc must_check drives_enumerate(const struct drives *d, struct priv_found **out, size_t *count,
	char reason[128], struct err *err);

/* Reads what stands at this name now: RC_NOT_FOUND unless it has the serial of ref. */
enum rc must_check drives_find(const struct drives *d, const struct priv_drive_ref *ref,
	struct priv_found *out, struct err *err);
/* Does its serial tell it from every other drive here? Two controllers of one subsystem are one
 * drive. */
bool drives_serial_is_unique(const struct drives *d, const struct priv_found *found);

/* Where one namespace of a drive can be opened, or the whole of a target (nsid 0). */
enum rc must_check drives_path(const struct drives *d, const struct priv_found *found,
	uint32_t nsid, char *path, size_t path_size, struct err *err);
/* The same with its uses. Blocks. */
enum rc must_check drives_namespace(const struct drives *d, const struct priv_found *found,
	uint32_t nsid, struct drive_namespace *ns, struct err *err);

/* Adds what an NVMe drive itself says of a namespace's sharing: other controllers, reservations.
 * fd is its block device. Blocks on the drive. */
void drives_add_sharing(
	const struct priv_found *found, uint32_t nsid, int fd, struct drive_namespace *ns);

/* Carries op out and fills reply, which is zeroed. Blocks. */
void drives_op(
	const struct drives *d, const struct priv_drive_op *op, struct priv_drive_reply *reply);

#endif
