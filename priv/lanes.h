/*
 * Lanes: one bounded queue a controller, so that a drive that does not answer holds up nobody
 * else. A lane's thread exists only while its queue is not empty. A deadline ends the waiting and
 * never the work: what has begun goes on and its late end is told too; what has not begun by then
 * is dropped.
 *
 * One thread submits and ticks; lanes' own threads run and finish.
 */
#ifndef DRIVEWATT_PRIV_LANES_H
#define DRIVEWATT_PRIV_LANES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/rc.h"

#define LANE_NAME_SIZE 48
#define LANE_QUEUE_MAX 16
#define LANES_MAX 1024

struct lane_op;

struct lane_op_kind {
	void (*run)(struct lane_op *op); /* lane's thread; may block */
	/* Lane's thread, after run. late: overdue was called before. */
	void (*finish)(struct lane_op *op, bool late);
	/* In lanes_tick, under its lock: short, and no call into lanes. begun: run is under way;
	 * else it will never be. */
	void (*overdue)(struct lane_op *op, bool begun);
	void (*release)(struct lane_op *op); /* last, once */
};

/* First member of what the caller queues. */
struct lane_op {
	const struct lane_op_kind *kind;
	int64_t deadline_mono_ms; /* lanes' from here on */
	bool overdue;
};

struct lanes;

/* At most max_lanes (1 … LANES_MAX) threads; deadline_ms from the submission of an op. */
struct lanes *lanes_new(unsigned max_lanes, int64_t deadline_ms, struct err *err);
/* Takes op over. RC_FULL, and op stays the caller's, when the lane's queue or all lanes are
 * full. */
enum rc must_check lanes_submit(
	struct lanes *l, const char *lane, struct lane_op *op, struct err *err);
/* Tells what is overdue. How many milliseconds until the next deadline, -1: none. */
int64_t lanes_tick(struct lanes *l);
/* Drops what has not begun and waits up to wait_ms for the rest. False: something is stuck, and
 * l stays in memory for its thread. NULL is fine. */
bool lanes_free(struct lanes *l, int64_t wait_ms);

#endif
