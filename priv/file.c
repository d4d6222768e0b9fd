#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/id.h"
#include "base/parse.h"
#include "priv/file.h"

/* --- the way ---------------------------------------------------------------------------------- */

/* Relative to a directory that is held open: what was checked cannot be swapped any more. */
static int step(int dir, const char *name) {
	struct open_how how = {
		.flags = O_PATH | O_CLOEXEC,
		.resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
	};

	return (int)syscall(SYS_openat2, dir, name, &how, sizeof(how));
}

static bool is_ours(uid_t uid) {
	return uid == 0 || uid == geteuid();
}

/* The bits of the group are also the most that an access list may give to anybody. */
static bool others_may_write(const struct stat *st) {
	return (st->st_mode & (S_IWGRP | S_IWOTH)) != 0;
}

/* A directory cannot be a hard link that somebody made, as a file can. */
static bool next_is_held(const struct stat *dir, const struct stat *next) {
	return (dir->st_mode & S_ISVTX) && S_ISDIR(next->st_mode);
}

static enum rc check_directory(
	const char *path, const struct stat *dir, const struct stat *next, struct err *err) {
	if (!is_ours(dir->st_uid))
		return err_set(err, RC_FORBIDDEN,
			"a directory on the way belongs to user %u, who could put another file "
			"there: %.150s",
			(unsigned)dir->st_uid, path);
	if (others_may_write(dir) && !next_is_held(dir, next))
		return err_set(err, RC_FORBIDDEN,
			"others may write to a directory on the way and could put another file "
			"there: %.150s",
			path);
	return RC_OK;
}

static enum rc step_failed(const char *path, const char *name, struct err *err) {
	if (errno == ELOOP)
		return err_set(
			err, RC_INVALID, "%.150s is not canonical, %.60s is a link", path, name);
	return err_errno(err, errno, path);
}

/* One name further. *fd moves from the directory to what the name is there. */
static enum rc walk(const char *path, const char *name, int *fd, struct err *err) {
	auto_close int dir = *fd;
	struct stat dir_st, st;

	*fd = step(dir, name);
	if (*fd < 0)
		return step_failed(path, name, err);
	if (fstat(dir, &dir_st) != 0 || fstat(*fd, &st) != 0)
		return err_errno(err, errno, path);
	return check_directory(path, &dir_st, &st, err);
}

static bool is_canonical(const char *path) {
	size_t len = strlen(path);

	return path[0] == '/' && len > 1 && len < PATH_MAX && path[len - 1] != '/' &&
		!strstr(path, "//") && !strstr(path, "/./") && !strstr(path, "/../") &&
		strcmp(strrchr(path, '/'), "/.") != 0 && strcmp(strrchr(path, '/'), "/..") != 0;
}

static enum rc walk_all(const char *path, int *fd, struct err *err) {
	char names[PATH_MAX], *rest = names;
	enum rc rc = RC_OK;

	str_copy(names, sizeof(names), path + 1);
	*fd = step(AT_FDCWD, "/");
	if (*fd < 0)
		return err_errno(err, errno, "/");
	for (const char *name; rc == RC_OK && (name = strsep(&rest, "/")) != NULL;)
		rc = walk(path, name, fd, err);
	return rc;
}

static enum rc check_regular(const char *path, int fd, struct err *err) {
	struct stat st;

	if (fstat(fd, &st) != 0)
		return err_errno(err, errno, path);
	if (!S_ISREG(st.st_mode))
		return err_set(err, RC_INVALID, "%s is neither block device nor file", path);
	return RC_OK;
}

enum rc file_find(const char *path, int *fd, struct err *err) {
	enum rc rc;

	*fd = -1;
	if (!is_canonical(path))
		return err_set(err, RC_INVALID, "%s is not canonical", path);
	rc = walk_all(path, fd, err);
	if (rc == RC_OK)
		rc = check_regular(path, *fd, err);
	if (rc != RC_OK && *fd >= 0) {
		close(*fd);
		*fd = -1;
	}
	return rc;
}

/* --- what it is ------------------------------------------------------------------------------- */

/* An inode's number is given out again when a file is removed; the time of birth tells the two
 * apart where the file system keeps it. */
enum rc file_serial(const char *path, int fd, char serial[FILE_SERIAL_SIZE], struct err *err) {
	char identity[128], hash[ID_HASH_SIZE];
	const char *parts[] = {path, identity};
	struct statx stx;

	if (statx(fd, "", AT_EMPTY_PATH, STATX_INO | STATX_BTIME, &stx) != 0)
		return err_errno(err, errno, path);
	if (!(stx.stx_mask & STATX_BTIME))
		stx.stx_btime = (struct statx_timestamp){0};
	snprintf(identity, sizeof(identity), "%u:%u %llu %lld.%u", stx.stx_dev_major,
		stx.stx_dev_minor, (unsigned long long)stx.stx_ino, (long long)stx.stx_btime.tv_sec,
		stx.stx_btime.tv_nsec);
	id_hash(parts, array_len(parts), hash);
	str_copy(serial, FILE_SERIAL_SIZE, hash);
	return RC_OK;
}

enum rc file_open(const char *path, const char *serial, int *fd, struct err *err) {
	char now[FILE_SERIAL_SIZE], itself[32];
	auto_close int found = -1;
	enum rc rc;

	*fd = -1;
	rc = file_find(path, &found, err);
	if (rc == RC_OK)
		rc = file_serial(path, found, now, err);
	if (rc != RC_OK)
		return rc;
	if (strcmp(now, serial) != 0)
		return err_set(err, RC_NOT_FOUND,
			"%.150s is another file now than the one with serial %s", path, serial);
	/* This very inode, whatever stands at its path by now. */
	snprintf(itself, sizeof(itself), "/proc/self/fd/%d", found);
	*fd = open(itself, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	return *fd < 0 ? err_errno(err, errno, path) : RC_OK;
}
