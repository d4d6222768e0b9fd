/*
 * What the kernel says about controllers, namespaces and block devices, read from sysfs and
 * without a command to any drive. Paths begin at a replaceable root, for tests. Any thread.
 */
#ifndef DRIVEWATT_PRIV_SYSFS_H
#define DRIVEWATT_PRIV_SYSFS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "priv/protocol.h"

#define SYSFS_MAX_CONTROLLERS 1024
#define SYSFS_NAME_SIZE 32

struct sysfs_root {
	const char *sys, *proc, *dev; /* absolute, without a slash at the end */
};
extern const struct sysfs_root sysfs_live;

/* A namespace as one controller reaches it. */
struct sysfs_namespace {
	char name[SYSFS_NAME_SIZE]; /* the block device that can be opened: "nvme0n1" */
	uint32_t nsid;              /* 0 unknown */
};

struct sysfs_block {
	uint32_t dev_major, dev_minor;
	uint64_t size_bytes;
	uint32_t lba_bytes;
	bool hidden; /* a path of a multipath namespace: has no node, is never a target */
	bool zoned;  /* host-managed zones: ordinary writes do not apply */
};

/* First line of a file, without white space around it. False when it cannot be read. */
bool sysfs_read(char *out, size_t size, const char *fmt, ...) printf_like(3, 4);

/* The names in a directory that accept() takes, in natural order ("nvme2" before "nvme10");
 * at most max, *cut set when there are more. 0 when there is no such directory. */
size_t sysfs_list(const char *dir, bool (*accept)(const char *name), char (*names)[SYSFS_NAME_SIZE],
	size_t max, bool *cut);

bool sysfs_is_controller_name(const char *name);
bool sysfs_is_subsystem_name(const char *name); /* "nvme-subsys3" */
/* The controllers that a subsystem shows; at most max. */
size_t sysfs_subsystem_controllers(const struct sysfs_root *root, const char *subsystem,
	char (*names)[SYSFS_NAME_SIZE], size_t max);
/* The controllers but discovery ones, with their physical slots. *out is the caller's to free. */
enum rc must_check sysfs_controllers(const struct sysfs_root *root, struct priv_found **out,
	size_t *count, bool *cut, struct err *err);
/* RC_NOT_FOUND when it is not there or a discovery controller. */
enum rc must_check sysfs_controller_read(
	const struct sysfs_root *root, const char *name, struct priv_found *out, struct err *err);
size_t sysfs_namespaces(const struct sysfs_root *root, const char *controller,
	struct sysfs_namespace *out, size_t max, bool *cut);

/* False when the kernel has no block device of this name. */
bool sysfs_block_read(const struct sysfs_root *root, const char *name, struct sysfs_block *out);

#endif
