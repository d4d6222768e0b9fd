#include "base/thread.h"

#include <errno.h>
#include <signal.h>

enum rc thread_start(
	pthread_t *out, const char *name, void *(*fn)(void *), void *arg, struct err *err) {
	sigset_t all, before;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int failed = pthread_create(out, NULL, fn, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (failed)
		return err_set(err, RC_FULL, "no thread for %s", name);
	pthread_setname_np(*out, name);
	return RC_OK;
}

void cond_init(pthread_cond_t *c) {
	pthread_condattr_t attr;
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(c, &attr);
	pthread_condattr_destroy(&attr);
}

#define SECONDS_NEVER (INT64_C(1) << 40)

struct timespec thread_deadline(int64_t timeout_ms) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	if (timeout_ms < 0 || timeout_ms / 1000 > SECONDS_NEVER) {
		t.tv_sec += SECONDS_NEVER;
		return t;
	}
	t.tv_sec += timeout_ms / 1000;
	t.tv_nsec += timeout_ms % 1000 * 1000000;
	if (t.tv_nsec >= 1000000000) {
		t.tv_sec++;
		t.tv_nsec -= 1000000000;
	}
	return t;
}

bool cond_wait_until(pthread_cond_t *c, pthread_mutex_t *m, const struct timespec *deadline) {
	return pthread_cond_timedwait(c, m, deadline) != ETIMEDOUT;
}
