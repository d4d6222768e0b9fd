/*
 * Preloaded into the daemon under test: calls for memory, or to the store's files, fail as the plan
 * says. Allocation goes on to the C library by its own names, since the usual way to find the next
 * definition allocates itself.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>

#include "tests/support/faults/fault_plan.h"

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *p, size_t size);

static struct fault_plan *plan;

__attribute__((constructor)) static void map_plan(void) {
	const char *path = getenv(FAULT_PLAN_VARIABLE);
	int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
	if (fd < 0)
		return;
	void *p = mmap(NULL, sizeof(*plan), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	plan = p == MAP_FAILED ? NULL : p;
	close(fd);
}

static bool fails(enum fault_kind kind) {
	if (!plan || plan->kind != kind || (plan->pid && plan->pid != getpid()))
		return false;
	int64_t n = ++plan->seen;
	if (n < plan->first || n >= plan->first + plan->count)
		return false;
	plan->failed++;
	return true;
}

/* --- memory --- */

static bool no_memory(void) {
	if (!fails(FAULT_MEMORY))
		return false;
	errno = ENOMEM;
	return true;
}

void *malloc(size_t size) {
	return no_memory() ? NULL : __libc_malloc(size);
}

void *calloc(size_t n, size_t size) {
	return no_memory() ? NULL : __libc_calloc(n, size);
}

void *realloc(void *p, size_t size) {
	return no_memory() ? NULL : __libc_realloc(p, size);
}

/* --- the store --- */

/* A database, its log or its journal. */
static bool is_of_store(int fd) {
	char link[48], path[512];
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	ssize_t n = readlink(link, path, sizeof(path) - 1);
	if (n < 0)
		return false;
	path[n] = '\0';
	const char *name = strrchr(path, '/');
	return name && strstr(name, ".db");
}

static bool no_store(int fd) {
	if (!plan || plan->kind != FAULT_STORE || !is_of_store(fd) || !fails(FAULT_STORE))
		return false;
	errno = EIO;
	return true;
}

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

ssize_t pwrite64(int fd, const void *data, size_t len, off64_t at) {
	return no_store(fd) ? -1 : NEXT(pwrite64)(fd, data, len, at);
}

ssize_t pread64(int fd, void *data, size_t len, off64_t at) {
	return no_store(fd) ? -1 : NEXT(pread64)(fd, data, len, at);
}

int ftruncate64(int fd, off64_t len) {
	return no_store(fd) ? -1 : NEXT(ftruncate64)(fd, len);
}

int fdatasync(int fd) {
	return no_store(fd) ? -1 : NEXT(fdatasync)(fd);
}
