/* Files that others name. */
#ifndef DRIVEWATT_BASE_FILE_H
#define DRIVEWATT_BASE_FILE_H

#include "base/buf.h"
#include "base/rc.h"

/* Adds the file's content to out, whose max bounds it. Never waits for a FIFO or device: what is no
 * regular file is RC_INVALID, larger than out takes RC_TOO_LARGE; else as open(2) and read(2) say.
 * Any thread. */
enum rc must_check file_read(const char *path, struct buf *out, struct err *err);

#endif
