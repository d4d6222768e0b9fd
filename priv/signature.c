/* Signatures on a device, by util-linux's libblkid; nothing else here knows it. */
#include <blkid.h>

#include "priv/inuse.h"

#define FOUND_MAX 8

static void add_found(blkid_probe probe, struct drive_namespace *ns) {
	const char *value;

	if (blkid_probe_lookup_value(probe, "PTTYPE", &value, NULL) == 0)
		use_add(ns, USE_PARTITION, "partition table (%s)", value);
	else if (blkid_probe_lookup_value(probe, "TYPE", &value, NULL) == 0)
		use_add(ns, USE_SIGNATURE, "%s signature", value);
}

void inuse_signature(int fd, struct drive_namespace *ns) {
	blkid_probe probe = blkid_new_probe();
	int found = -1;

	if (probe && blkid_probe_set_device(probe, fd, 0, 0) == 0) {
		blkid_probe_enable_superblocks(probe, true);
		blkid_probe_set_superblocks_flags(probe, BLKID_SUBLKS_TYPE | BLKID_SUBLKS_BADCSUM);
		blkid_probe_enable_partitions(probe, true);
		/* Each call finds the next one; 1 when there is none any more. */
		for (int i = 0; i < FOUND_MAX && (found = blkid_do_probe(probe)) == 0; i++)
			add_found(probe, ns);
	}
	if (found < 0)
		use_add(ns, USE_UNKNOWN, "its first blocks could not be read for signatures");
	blkid_free_probe(probe);
}
