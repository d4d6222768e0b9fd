/* Waiting in tests: on a condition, with a deadline that only a broken program meets. */
#ifndef DRIVEWATT_TESTS_EVENTUALLY_H
#define DRIVEWATT_TESTS_EVENTUALLY_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#define EVENTUALLY_MS 30000

/* True once condition(arg) is; false after EVENTUALLY_MS. On the kernel's clock. */
static inline bool eventually(bool (*condition)(void *arg), void *arg) {
	const struct timespec nap = {.tv_nsec = 1000000};
	for (int i = 0; i < EVENTUALLY_MS; i++) {
		if (condition(arg))
			return true;
		nanosleep(&nap, NULL);
	}
	return false;
}

#endif
