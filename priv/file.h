/*
 * File targets: opened on a way that nobody else can bend, and known by what they are instead of
 * by what they are called. Any thread.
 */
#ifndef DRIVEWATT_PRIV_FILE_H
#define DRIVEWATT_PRIV_FILE_H

#include <stddef.h>

#include "base/rc.h"

#define FILE_SERIAL_SIZE 21

/*
 * Finds a regular file without opening it: *fd is the caller's, good for fstat() alone. Every
 * directory on the way must belong to root or to this process's user, and nobody else may write
 * to it. One with the sticky bit may be written to where the next name is a directory: that is
 * looked at by the same rules, and the kernel lets nobody else rename or remove it. Links are not
 * followed. RC_INVALID says what is wrong with the path, RC_FORBIDDEN who could bend it.
 */
enum rc must_check file_find(const char *path, int *fd, struct err *err);

/* Made from the path, the device, the inode and its time of birth: another file of the same name
 * has another serial number. fd as file_find gave it or open. */
enum rc must_check file_serial(
	const char *path, int fd, char serial[FILE_SERIAL_SIZE], struct err *err);

/* Finds it and opens it for reading; RC_NOT_FOUND when it is another one than that serial's. */
enum rc must_check file_open(const char *path, const char *serial, int *fd, struct err *err);

#endif
