/*
 * A run's targets, made ready: looked at, consented to, and held open so that nobody else gets
 * them until the run ends. Blocks on the drives.
 */
#ifndef DRIVEWATT_PRIV_PREPARE_H
#define DRIVEWATT_PRIV_PREPARE_H

#include "priv/drives.h"
#include "priv/jobfile.h"

#define TARGET_KEY_SIZE 48

/* Which targets runs hold, by what they are and not by what they are called. */
struct run_locks;
struct run_locks *run_locks_new(void);
void run_locks_free(struct run_locks *l);

struct run_target {
	int fd;                    /* of the device, exclusive where it is free; -1 simulated */
	bool is_block;             /* fd is a block device */
	char key[TARGET_KEY_SIZE]; /* in the table of locks; "" not held */
	struct jobfile_target job;
};

struct run_targets {
	struct run_locks *locks; /* borrowed */
	unsigned count;
	struct run_target targets[RUN_MAX_DRIVES];
};

/* On failure nothing is held. err.field tells the target, "/drives/2". */
enum rc must_check run_targets_prepare(struct run_targets *t, struct run_locks *locks,
	const struct drives *drives, const struct priv_run_start *start, struct err *err);
void run_targets_release(struct run_targets *t);
/* Bit n: the device of target n is gone. It has no size any more, and reads of it are empty and no
 * error. Never blocks. */
uint64_t run_targets_gone(const struct run_targets *t);

#endif
