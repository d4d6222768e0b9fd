/*
 * Starting threads and waiting with a deadline, done the same way everywhere. Deadlines are on the
 * kernel's CLOCK_MONOTONIC and not on the replaceable clock, which cannot wake anybody.
 */
#ifndef DRIVEWATT_BASE_THREAD_H
#define DRIVEWATT_BASE_THREAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "base/rc.h"

/* A joinable thread with all signals blocked, so that they reach the main thread. name: static
 * text of at most 15 bytes. */
enum rc must_check thread_start(
	pthread_t *out, const char *name, void *(*fn)(void *), void *arg, struct err *err);

/* A condition whose deadlines are thread_deadline()'s. */
void cond_init(pthread_cond_t *c);
/* timeout_ms from now; negative: never. */
struct timespec thread_deadline(int64_t timeout_ms);
/* As pthread_cond_timedwait: false once the deadline passed. May wake early. */
bool cond_wait_until(pthread_cond_t *c, pthread_mutex_t *m, const struct timespec *deadline);

#endif
