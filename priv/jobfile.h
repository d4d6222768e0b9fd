/*
 * fio's job file, made of the typed request alone: no text of the request gets in but drive ids,
 * whose characters the protocol has checked. One section a target, named by its drive id; its
 * jobs are numbered through in this order. Pure.
 */
#ifndef DRIVEWATT_PRIV_JOBFILE_H
#define DRIVEWATT_PRIV_JOBFILE_H

#include "base/buf.h"
#include "priv/protocol.h"

#define JOBFILE_MAX_BYTES (64 * 1024)
#define JOBFILE_MAX_JOBS 1024 /* over all targets */

struct jobfile_target {
	const char *drive_id;
	bool simulated;
	char file[512];        /* what fio opens; simulated: the socket */
	uint64_t region_bytes; /* from the start; 0: all of an export of unknown size */
	int numa_node;         /* -1: anywhere */
};

/* RC_TOO_LARGE: too many jobs. RC_INVALID: the region or the bytes to write are too few. */
enum rc must_check jobfile_write(struct buf *out, const struct priv_run_start *start,
	const struct jobfile_target *targets, struct err *err);

/* fio's logs have a value each so many milliseconds: 1000, more when the run would otherwise make
 * more than a few million of them. */
unsigned jobfile_log_interval_ms(const struct priv_run_start *start);

#endif
