#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/parse.h"
#include "priv/rundir.h"

#define NAME_PREFIX "drivewatt-run-"

/* Where directories may be, the first choice first. */
static const char *parent_dir(unsigned i) {
	const char *const parents[] = {"/run", getenv("TMPDIR"), "/tmp"};

	return i < array_len(parents) ? parents[i] ? parents[i] : "" : NULL;
}

static bool make_below(const char *parent, char path[RUNDIR_PATH_SIZE]) {
	int n = snprintf(path, RUNDIR_PATH_SIZE, "%s/" NAME_PREFIX "XXXXXX", parent);

	return parent[0] == '/' && n > 0 && n < RUNDIR_PATH_SIZE && mkdtemp(path) != NULL;
}

static bool make_somewhere(char path[RUNDIR_PATH_SIZE]) {
	const char *parent;

	for (unsigned i = 0; (parent = parent_dir(i)) != NULL; i++)
		if (make_below(parent, path))
			return true;
	path[0] = '\0';
	return false;
}

int rundir_create(const struct rundir *d, const char *name) {
	return openat(d->fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
}

static enum rc write_job(const struct rundir *d, const struct buf *job, struct err *err) {
	auto_close int fd = rundir_create(d, RUNDIR_JOB);
	ssize_t n = fd < 0 ? -1 : write(fd, job->data, job->len);

	if (n < 0)
		return err_errno(err, errno, RUNDIR_JOB);
	return (size_t)n == job->len ? RC_OK : err_set(err, RC_NO_SPACE, "job file was cut");
}

enum rc rundir_make(struct rundir *d, const struct buf *job, struct err *err) {
	enum rc rc;

	d->fd = -1;
	if (!make_somewhere(d->path))
		return err_errno(err, errno, "directory for the run");
	/* mkdtemp makes it for its owner only; the network process reads it, maybe as another. */
	d->fd = open(d->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (d->fd < 0 || fchmod(d->fd, 0755) != 0 || flock(d->fd, LOCK_EX | LOCK_NB) != 0)
		rc = err_errno(err, errno, d->path);
	else
		rc = write_job(d, job, err);
	if (rc != RC_OK)
		rundir_remove(d);
	return rc;
}

static void remove_files(int fd) {
	const struct dirent *e;
	DIR *dir = fdopendir(dup(fd));

	if (!dir)
		return;
	rewinddir(dir);
	while ((e = readdir(dir)) != NULL)
		unlinkat(fd, e->d_name, 0);
	closedir(dir);
}

void rundir_remove(struct rundir *d) {
	if (d->fd >= 0) {
		remove_files(d->fd);
		close(d->fd);
	}
	if (d->path[0] != '\0')
		rmdir(d->path);
	d->path[0] = '\0';
	d->fd = -1;
}

/* Ours, and locked by nobody who lives. */
static bool is_stale(int fd) {
	struct stat st;

	return fd >= 0 && fstat(fd, &st) == 0 && st.st_uid == geteuid() &&
		flock(fd, LOCK_EX | LOCK_NB) == 0;
}

static void sweep_below(const char *parent) {
	const struct dirent *e;
	DIR *dir = parent[0] == '/' ? opendir(parent) : NULL;

	while (dir && (e = readdir(dir)) != NULL) {
		auto_close int fd = -1;

		if (strncmp(e->d_name, NAME_PREFIX, strlen(NAME_PREFIX)) != 0)
			continue;
		fd = openat(dirfd(dir), e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (!is_stale(fd))
			continue;
		remove_files(fd);
		unlinkat(dirfd(dir), e->d_name, AT_REMOVEDIR);
	}
	if (dir)
		closedir(dir);
}

void rundir_sweep(void) {
	const char *parent;

	for (unsigned i = 0; (parent = parent_dir(i)) != NULL; i++)
		sweep_below(parent);
}
