#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/stranger.h"

static void must(bool ok, const char *what) {
	if (ok)
		return;
	perror(what);
	abort();
}

enum { HOLD_FD = 3, REPORT_FD, OTHER_FDS };

/* The ends of other strangers' pipes are closed, or those would never be let go. */
static bool keep_only(int hold, int report) {
	int hold_aside = fcntl(hold, F_DUPFD, OTHER_FDS),
	    report_aside = fcntl(report, F_DUPFD, OTHER_FDS);

	return dup2(hold_aside, HOLD_FD) >= 0 && dup2(report_aside, REPORT_FD) >= 0 &&
		close_range(OTHER_FDS, ~0U, 0) == 0;
}

static void live(bool (*act)(const void *arg), const void *arg) {
	pid_t self = getpid();
	char byte;

	if (!act(arg) || write(REPORT_FD, &self, sizeof(self)) != sizeof(self))
		_exit(1);
	close(REPORT_FD);
	_exit(read(HOLD_FD, &byte, 1) == 0 ? 0 : 1);
}

void stranger_make(struct stranger *s, bool (*act)(const void *arg), const void *arg) {
	int hold[2], report[2];
	pid_t between;

	must(pipe2(hold, O_CLOEXEC) == 0 && pipe2(report, O_CLOEXEC) == 0, "pipe");
	between = fork();
	must(between >= 0, "fork");
	if (between == 0) {
		if (keep_only(hold[0], report[1]) && fork() == 0)
			live(act, arg);
		_exit(0); /* its child is nobody's then */
	}
	must(waitpid(between, NULL, 0) == between, "waitpid");
	close(hold[0]);
	close(report[1]);
	must(read(report[0], &s->pid, sizeof(s->pid)) == sizeof(s->pid), "the stranger");
	close(report[0]);
	s->hold = hold[1];
}

/* Waits for its end: what it held is free then. */
void stranger_release(struct stranger *s) {
	int pidfd = (int)syscall(SYS_pidfd_open, s->pid, 0);
	struct pollfd p = {.fd = pidfd, .events = POLLIN};

	close(s->hold);
	if (pidfd < 0)
		return;
	must(poll(&p, 1, 30000) == 1, "the stranger's end");
	close(pidfd);
}
