#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/parse.h"
#include "priv/rundir.h"

static bool make_below(const char *parent, char path[RUNDIR_PATH_SIZE]) {
	int n = parent ? snprintf(path, RUNDIR_PATH_SIZE, "%s/drivewatt-run-XXXXXX", parent) : -1;

	return n > 0 && n < RUNDIR_PATH_SIZE && parent[0] == '/' && mkdtemp(path) != NULL;
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
	if (!make_below("/run", d->path) && !make_below(getenv("TMPDIR"), d->path) &&
		!make_below("/tmp", d->path)) {
		d->path[0] = '\0';
		return err_errno(err, errno, "directory for the run");
	}
	/* mkdtemp makes it for its owner only; the network process reads it, maybe as another. */
	d->fd = open(d->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (d->fd < 0 || fchmod(d->fd, 0755) != 0)
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
