/* Tables of procfs, line by line. Any thread. */
#ifndef DRIVEWATT_PRIV_PROCFS_H
#define DRIVEWATT_PRIV_PROCFS_H

#include "priv/sysfs.h"

/* Calls check for each line of a file below root->proc; the line is check's to change. False when
 * the file cannot be read to its end, with errno. */
bool procfs_each_line(const struct sysfs_root *root, const char *file,
	void (*check)(void *arg, char *line), void *arg);

/* The kernel writes space, tab, newline and backslash in a name as \ooo. */
void procfs_unescape(char *s);

#endif
