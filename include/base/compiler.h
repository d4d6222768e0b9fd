/* Attributes and automatic clean-up, spelled once. */
#ifndef DRIVEWATT_BASE_COMPILER_H
#define DRIVEWATT_BASE_COMPILER_H

#include <stdlib.h>
#include <unistd.h>

#define must_check __attribute__((warn_unused_result))
#define printf_like(fmt, args) __attribute__((format(printf, fmt, args)))
#define unused_arg __attribute__((unused))
#define no_return __attribute__((noreturn))

#define array_len(a) (sizeof(a) / sizeof((a)[0]))

static inline void cleanup_free_(void *p) {
	free(*(void **)p);
}

static inline void cleanup_close_(int *fd) {
	if (*fd >= 0)
		close(*fd);
}

/* A local that is freed, or a descriptor that is closed, on every way out of its scope. */
#define auto_free __attribute__((cleanup(cleanup_free_)))
#define auto_close __attribute__((cleanup(cleanup_close_)))

#endif
