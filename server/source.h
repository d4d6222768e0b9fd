/* Files of the configuration: before the split with root's rights, afterwards with our own, or the
 * helper opens those that it was told of. */
#ifndef DRIVEWATT_SERVER_SOURCE_H
#define DRIVEWATT_SERVER_SOURCE_H

#include "base/rc.h"
#include "priv/protocol.h"

struct privc;

struct source {
	struct privc *helper; /* NULL: nobody else is asked */
};

/* *fd is the caller's. Waits for the helper: main thread only. */
enum rc must_check source_open(
	const struct source *from, enum priv_file file, const char *path, int *fd, struct err *err);

#endif
