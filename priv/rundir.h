/* A run's directory: the helper's own, made below /run, $TMPDIR or /tmp, readable by all. */
#ifndef DRIVEWATT_PRIV_RUNDIR_H
#define DRIVEWATT_PRIV_RUNDIR_H

#include "base/buf.h"

#define RUNDIR_PATH_SIZE 256
#define RUNDIR_JOB "job.fio"

struct rundir {
	char path[RUNDIR_PATH_SIZE]; /* "" none */
	int fd;                      /* of the directory; -1 none */
};

/* Also writes the job file. */
enum rc must_check rundir_make(struct rundir *d, const struct buf *job, struct err *err);
/* A new file in it, open for writing; -1 on failure. */
int rundir_create(const struct rundir *d, const char *name);
/* Removes those that a helper left behind which was killed; each living one's is locked. */
void rundir_sweep(void);
/* Removes it with the files in it. */
void rundir_remove(struct rundir *d);

#endif
