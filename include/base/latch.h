/*
 * Waits for an asynchronous answer with a deadline. Reference-counted, so that an answer that
 * comes after the waiter gave up finds memory that is still there: the waiter holds one
 * reference, the answerer another. Any thread; only latch_wait blocks.
 */
#ifndef DRIVEWATT_BASE_LATCH_H
#define DRIVEWATT_BASE_LATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct latch;

/* One reference, result_size zeroed bytes of room for the answer. NULL when memory is out. */
struct latch *latch_new(size_t result_size);
struct latch *latch_ref(struct latch *l);
/* The last one frees. NULL is fine. */
void latch_unref(struct latch *l);
/* Copies the answer (result_size bytes) and wakes all waiters. The first call counts. */
void latch_open(struct latch *l, const void *result);
/* True when open: *result is filled. False after timeout_ms (0: only looks; -1: for ever). */
bool latch_wait(struct latch *l, int64_t timeout_ms, void *result);

#endif
