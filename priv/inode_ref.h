/* What a name or a descriptor stands for, whatever it is called: how uses are compared. */
#ifndef DRIVEWATT_PRIV_INODE_REF_H
#define DRIVEWATT_PRIV_INODE_REF_H

#include <sys/types.h>

/* A device by its number, a regular file by device and inode. */
struct inode_ref {
	mode_t type; /* S_IFBLK, S_IFCHR or S_IFREG */
	dev_t dev;
	ino_t ino; /* 0 for devices */
};

/* The name by which people know it, when it is one of those that are asked for; else NULL. */
typedef const char *inode_match(const void *arg, const struct inode_ref *what);

#endif
