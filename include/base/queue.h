/*
 * A bounded queue of pointers between threads. The items belong to whoever holds them; the queue
 * only carries. All functions in any thread.
 */
#ifndef DRIVEWATT_BASE_QUEUE_H
#define DRIVEWATT_BASE_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/rc.h"

struct queue;

/* NULL when memory is out. capacity is the most it ever holds. */
struct queue *queue_new(size_t capacity);
/* The queue must be empty or its items someone else's to free. NULL is fine. */
void queue_free(struct queue *q);

/* False at once when the queue is full or closed: the item stays the caller's. */
bool must_check queue_try_push(struct queue *q, void *item);
/* Waits until an item comes, timeout_ms passed (-1: for ever) or the queue is closed and empty:
 * then NULL. */
void *queue_pop(struct queue *q, int64_t timeout_ms);
/* No more pushes; waiting pops return when it is empty. */
void queue_close(struct queue *q);
size_t queue_len(struct queue *q);

#endif
