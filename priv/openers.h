/*
 * Who has a device or a file open, by what /proc shows of every process: a claim is found by an
 * exclusive open, a plain open is not. One look serves all that ask at about the same time.
 */
#ifndef DRIVEWATT_PRIV_OPENERS_H
#define DRIVEWATT_PRIV_OPENERS_H

#include "model/drive.h"
#include "priv/inode_ref.h"
#include "priv/sysfs.h"

struct openers;

/* root is borrowed. NULL: no memory. */
struct openers *openers_new(const struct sysfs_root *root);
void openers_free(struct openers *o);

/* The next question is answered by a look of its own. NULL is fine. */
void openers_forget(struct openers *o);

/*
 * Adds USE_PROCESS for every process, but this one and its children, that has something open which
 * match takes; and USE_UNSEEN where a process could not be looked into, the machine's init
 * excepted. Of the character devices only NVMe namespaces are looked for. Who has opened it just
 * now, as udev does after each write, is given a second to close it again. Any thread; blocks for
 * about that long.
 */
void openers_add_uses(
	struct openers *o, inode_match *match, const void *arg, struct drive_namespace *ns);
/* The same for a regular file, called "it". */
void openers_add_uses_of_file(struct openers *o, dev_t dev, ino_t ino, struct drive_namespace *ns);

#endif
