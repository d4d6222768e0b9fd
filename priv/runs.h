/*
 * Benchmarks under way: preparation in a lane, then fio as a child of the main thread, which
 * watches it until it has ended. All functions in that one permanent thread, since fio dies with
 * the thread that started it.
 */
#ifndef DRIVEWATT_PRIV_RUNS_H
#define DRIVEWATT_PRIV_RUNS_H

#include <poll.h>

#include "priv/drives.h"
#include "priv/lanes.h"

#define RUNS_MAX 64
#define RUNS_LOOK_MS 500           /* how often a run's devices are looked at */
#define RUNS_GONE_MS 3000          /* what fio has to see by itself that one is gone */
#define RUNS_KILL_AFTER_MS 10000   /* SIGTERM */
#define RUNS_ABANDON_AFTER_MS 5000 /* SIGKILL: who lives then waits in the kernel */
#define RUNS_POLL_MAX (RUNS_MAX + 1)

struct runs;

/* Answers on sock. drives and lanes are borrowed. */
struct runs *runs_new(const struct drives *drives, struct lanes *lanes, int sock, struct err *err);
/* Ends every fio, within wait_ms, and removes the directories. Call it after lanes_free. */
void runs_free(struct runs *r, int64_t wait_ms);

void runs_start(struct runs *r, uint64_t seq, const struct priv_run_start *start);
void runs_stop(struct runs *r, const struct priv_run_stop *stop);
void runs_forget(struct runs *r, const struct priv_run_forget *forget);

/* What to poll for reading before runs_tick; at most RUNS_POLL_MAX. */
unsigned runs_poll(const struct runs *r, struct pollfd *out);
/* Starts what is prepared, reports what has ended, ends what has lost a device, kills what does not
 * end and abandons what cannot be killed. How many milliseconds until the next deadline, -1: none.
 */
int64_t runs_tick(struct runs *r);

/* Kills a fio of an earlier life: only if both numbers fit and it is fio. True: it was alive. */
bool runs_reap(const struct priv_reap *reap);

#endif
