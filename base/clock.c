#include "base/clock.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "base/compiler.h"

typedef int64_t clock_fn(void);

static _Atomic(clock_fn *) replaced_wall;
static _Atomic(clock_fn *) replaced_mono;

static int64_t read_ns(clockid_t id) {
	struct timespec t;
	clock_gettime(id, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

int64_t clock_wall_ms(void) {
	clock_fn *fn = atomic_load_explicit(&replaced_wall, memory_order_acquire);
	return fn ? fn() : read_ns(CLOCK_REALTIME) / 1000000;
}

int64_t clock_mono_ns(void) {
	clock_fn *fn = atomic_load_explicit(&replaced_mono, memory_order_acquire);
	return fn ? fn() : read_ns(CLOCK_MONOTONIC);
}

void clock_replace(clock_fn *wall_ms, clock_fn *mono_ns) {
	atomic_store_explicit(&replaced_wall, wall_ms, memory_order_release);
	atomic_store_explicit(&replaced_mono, mono_ns, memory_order_release);
}

static char boot_id[37];

static void boot_id_read(void) {
	auto_close int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	if (fd < 0 || read(fd, boot_id, sizeof(boot_id) - 1) != sizeof(boot_id) - 1)
		boot_id[0] = '\0';
}

const char *clock_boot_id(void) {
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	pthread_once(&once, boot_id_read);
	return boot_id;
}
