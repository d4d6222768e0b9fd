/*
 * Child processes without a shell. The child gets exactly the descriptors named, an empty
 * environment but for what is passed, default signals, and dies with the thread that started it
 * (PR_SET_PDEATHSIG): call child_start from a permanent thread. The other functions may be called
 * from any thread, child_wait and child_release of one child by one at a time.
 */
#ifndef DRIVEWATT_BASE_CHILD_H
#define DRIVEWATT_BASE_CHILD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/rc.h"

#define CHILD_MAX_KEEP_FDS 64

struct child_spec {
	const char *path;        /* absolute */
	const char *const *argv; /* NULL-terminated, argv[0] included */
	const char *const *envp; /* NULL-terminated; NULL: empty */
	int cwd_fd;              /* directory to start in, or -1 */
	int stdin_fd;            /* -1: /dev/null, likewise below */
	int stdout_fd;
	int stderr_fd;
	const int *keep_fds;    /* stay open under the same numbers */
	unsigned keep_fd_count; /* at most CHILD_MAX_KEEP_FDS */
	bool drop_capabilities; /* no capability, no new privileges: root's files, nothing more */
};

struct child {
	pid_t pid;
	uint64_t start_ticks; /* /proc/PID/stat field 22: tells this process from a later one of the
				 same number */
	int pidfd;            /* owned; readable when the process ended */
};

/* Returns once the program runs, or with why it does not. spec is needed no longer then. Blocks
 * until the exec. */
enum rc must_check child_start(const struct child_spec *spec, struct child *out, struct err *err);
/* Sends sig unless the process ended. */
void child_signal(const struct child *c, int sig);
/* Waits up to timeout_ms (0: only looks; -1: for ever). True when it ended: *exit_code is the
 * code, or 128 + signal with *sig set (else 0). Reaps: after true not again. */
bool child_wait(struct child *c, int64_t timeout_ms, int *exit_code, int *sig);
/* Closes pidfd; neither signals nor reaps. Twice is fine. */
void child_release(struct child *c);
/* Is a process with this pid and start time alive? For leftovers of an earlier life. */
bool child_is_alive(pid_t pid, uint64_t start_ticks);

#endif
