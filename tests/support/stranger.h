/*
 * A process that is no child of the test's: it does one thing, and stays until it is let go. Aborts
 * when it cannot be made.
 */
#ifndef DRIVEWATT_TESTS_STRANGER_H
#define DRIVEWATT_TESTS_STRANGER_H

#include <stdbool.h>
#include <sys/types.h>

struct stranger {
	pid_t pid;
	int hold; /* it ends when this is closed */
};

/* act runs in the stranger; what it opens stays open. */
void stranger_make(struct stranger *s, bool (*act)(const void *arg), const void *arg);
void stranger_release(struct stranger *s);

#endif
