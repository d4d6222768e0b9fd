/*
 * A fixed pool of worker threads behind a bounded queue. Jobs run in order of arrival, on any
 * worker. Closed in two steps: pool_close refuses new jobs and lets the queued ones end,
 * pool_free joins.
 */
#ifndef DRIVEWATT_BASE_POOL_H
#define DRIVEWATT_BASE_POOL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/rc.h"

struct pool;
typedef void pool_fn(void *arg);

/* name: static text, shown as the threads' name (at most 15 bytes). */
struct pool *pool_new(const char *name, size_t threads, size_t queue_capacity, struct err *err);
/* False when the queue is full or the pool is closed: fn will not run, arg stays the caller's. */
bool must_check pool_submit(struct pool *p, pool_fn *fn, void *arg);
size_t pool_queued(struct pool *p);
void pool_close(struct pool *p);
/* Waits for running and queued jobs, then frees. Closes first if need be. NULL is fine. */
void pool_free(struct pool *p);

#endif
