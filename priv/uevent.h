/*
 * What the kernel tells of devices that come, go and change: the text of a uevent, what it means
 * for the drives, and the socket it comes by. Pure but for the socket.
 */
#ifndef DRIVEWATT_PRIV_UEVENT_H
#define DRIVEWATT_PRIV_UEVENT_H

#include <stddef.h>

#include "base/rc.h"
#include "priv/sysfs.h"

#define UEVENT_MAX_BYTES 8192 /* the kernel's are at most a page */

enum uevent_meaning {
	UEVENT_NOTHING, /* of no drive */
	UEVENT_LOOK,    /* `name` has come or gone */
	UEVENT_CHANGED, /* namespaces or what they carry have changed at `name` */
	UEVENT_RESET    /* `name` was reset or has connected: it has forgotten what was set */
};

struct uevent {
	enum uevent_meaning meaning;
	char name[SYSFS_NAME_SIZE]; /* "nvme3", or "nvme-subsys3" for all its controllers */
};

/* message: "action@devpath", then KEY=value, each ending with NUL; whatever else it is means
 * UEVENT_NOTHING. Pure. */
struct uevent uevent_read(const char *message, size_t length);

/* The kernel's socket of this network namespace, not blocking; the caller's to close. */
enum rc must_check uevent_open(int *fd, struct err *err);
/* The next message; length 0 of one that is not the kernel's. RC_NOT_FOUND: no more for now;
 * RC_FULL: some were lost. */
enum rc must_check uevent_receive(
	int fd, char message[UEVENT_MAX_BYTES], size_t *length, struct err *err);

#endif
