#include "base/child.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/thread.h"

/* What the child says through the pipe when it cannot become the program. */
struct failure {
	int errnum;
	const char *what; /* literal; parent and child share their text */
};

/* --- in the child: async-signal-safe calls only --- */

static no_return void give_up(int report_fd, const char *what) {
	struct failure f = {errno, what};
	ssize_t n = write(report_fd, &f, sizeof(f));
	(void)n;
	_exit(127);
}

static bool reset_signals(void) {
	for (int sig = 1; sig < NSIG; sig++)
		signal(sig, SIG_DFL); /* fails for those that cannot be changed */
	sigset_t none;
	sigemptyset(&none);
	return sigprocmask(SIG_SETMASK, &none, NULL) == 0;
}

/* Descriptors 0–2. They are moved out of the way first, since one may be wanted as another. */
static bool place_stdio(const struct child_spec *spec) {
	const int wanted[3] = {spec->stdin_fd, spec->stdout_fd, spec->stderr_fd};
	int moved[3];
	for (int i = 0; i < 3; i++) {
		moved[i] = wanted[i] >= 0 ? fcntl(wanted[i], F_DUPFD_CLOEXEC, 3)
					  : open("/dev/null", O_RDWR | O_CLOEXEC);
		if (moved[i] < 0)
			return false;
	}
	for (int i = 0; i < 3; i++) {
		/* /dev/null may have got number i itself, where dup2 would leave it close-on-exec.
		 */
		if (dup2(moved[i], i) < 0 || fcntl(i, F_SETFD, 0) < 0)
			return false;
	}
	return true;
}

/* Everything closes on exec but for what the specification names. */
static bool keep_only(const struct child_spec *spec) {
	if (syscall(SYS_close_range, 3U, ~0U, CLOSE_RANGE_CLOEXEC) < 0)
		return false;
	for (unsigned i = 0; i < spec->keep_fd_count; i++) {
		if (fcntl(spec->keep_fds[i], F_SETFD, 0) < 0)
			return false;
	}
	return true;
}

/* Under no_new_privs, exec gives root no more than it holds: nothing. */
static bool drop_capabilities(void) {
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {0};
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
		prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) == 0 &&
		syscall(SYS_capset, &header, none) == 0;
}

/* Last, since a change of credentials would clear it. */
static bool die_with_parent(pid_t parent) {
	errno = ESRCH;
	return prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == parent;
}

static no_return void become(const struct child_spec *spec, pid_t parent, int report_fd) {
	static const char *const no_environment[] = {NULL};
	const char *const *envp = spec->envp ? spec->envp : no_environment;
	if (!reset_signals())
		give_up(report_fd, "signals");
	if (!place_stdio(spec))
		give_up(report_fd, "standard descriptors");
	if (!keep_only(spec))
		give_up(report_fd, "descriptors");
	if (spec->cwd_fd >= 0 && fchdir(spec->cwd_fd) < 0)
		give_up(report_fd, "working directory");
	if (spec->drop_capabilities && !drop_capabilities())
		give_up(report_fd, "capabilities");
	if (!die_with_parent(parent))
		give_up(report_fd, "death signal");
	execve(spec->path, (char *const *)spec->argv, (char *const *)envp);
	give_up(report_fd, spec->path);
}

/* --- in the parent --- */

/* State letter and start time from /proc/PID/stat; the name before them may hold anything. */
static bool read_stat(pid_t pid, char *state, uint64_t *start_ticks) {
	char path[32], text[1024];
	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (n <= 0)
		return false;
	text[n] = '\0';
	const char *after_name = strrchr(text, ')');
	unsigned long long ticks;
	/* Field 3 is the state, field 22 the start time. */
	if (!after_name ||
		sscanf(after_name,
			") %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
			"%*s %*s %*s %*s %llu",
			state, &ticks) != 2)
		return false;
	*start_ticks = ticks;
	return true;
}

static pid_t fork_with_signals_blocked(const struct child_spec *spec, int report_fd) {
	sigset_t all, before;
	sigfillset(&all);
	pid_t parent = getpid();
	/* No handler of the parent's may run in the child. */
	pthread_sigmask(SIG_SETMASK, &all, &before);
	pid_t pid = fork();
	if (pid == 0)
		become(spec, parent, report_fd);
	int saved_errno = errno;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	errno = saved_errno;
	return pid;
}

static void reap(pid_t pid) {
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}

static enum rc await_exec(int report_fd, struct err *err) {
	struct failure f;
	ssize_t n;
	do
		n = read(report_fd, &f, sizeof(f));
	while (n < 0 && errno == EINTR);
	return n == (ssize_t)sizeof(f) ? err_errno(err, f.errnum, f.what) : RC_OK;
}

/* The process is our unreaped child, so pid is still its own. */
static enum rc describe(pid_t pid, struct child *out, struct err *err) {
	char state;
	*out = (struct child){.pid = pid, .pidfd = pidfd_open(pid, 0)};
	if (out->pidfd >= 0 && read_stat(pid, &state, &out->start_ticks))
		return RC_OK;
	return err_errno(err, errno, "pidfd");
}

enum rc child_start(const struct child_spec *spec, struct child *out, struct err *err) {
	if (spec->keep_fd_count > CHILD_MAX_KEEP_FDS)
		return err_set(
			err, RC_INVALID, "more than %d descriptors to keep", CHILD_MAX_KEEP_FDS);
	int report[2];
	if (pipe2(report, O_CLOEXEC) < 0)
		return err_errno(err, errno, "pipe");
	auto_close int report_fd = report[0];
	pid_t pid = fork_with_signals_blocked(spec, report[1]);
	int fork_errno = errno;
	close(report[1]);
	if (pid < 0)
		return err_errno(err, fork_errno, "fork");
	enum rc rc = await_exec(report_fd, err);
	if (!rc)
		rc = describe(pid, out, err);
	if (rc) {
		kill(pid, SIGKILL);
		reap(pid);
	}
	return rc;
}

void child_signal(const struct child *c, int sig) {
	pidfd_send_signal(c->pidfd, sig, NULL, 0);
}

static int64_t left_ms(const struct timespec *deadline) {
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (deadline->tv_sec - now.tv_sec) * 1000 +
		(deadline->tv_nsec - now.tv_nsec + 999999) / 1000000;
}

static bool await_end(int pidfd, int64_t timeout_ms) {
	struct timespec deadline = thread_deadline(timeout_ms);
	struct pollfd p = {.fd = pidfd, .events = POLLIN};
	for (;;) {
		int64_t left = timeout_ms ? left_ms(&deadline) : 0;
		int wait = left < 0 ? 0 : left > 60000 ? 60000 : (int)left;
		int ready = poll(&p, 1, wait);
		if (ready > 0 || left <= 0)
			return ready > 0;
	}
}

bool child_wait(struct child *c, int64_t timeout_ms, int *exit_code, int *sig) {
	siginfo_t info = {0};
	if (!await_end(c->pidfd, timeout_ms))
		return false;
	*exit_code = -1;
	*sig = 0;
	if (waitid(P_PIDFD, (id_t)c->pidfd, &info, WEXITED) < 0)
		return true;
	bool exited = info.si_code == CLD_EXITED;
	*sig = exited ? 0 : info.si_status;
	*exit_code = exited ? info.si_status : 128 + info.si_status;
	return true;
}

void child_release(struct child *c) {
	if (c->pidfd >= 0)
		close(c->pidfd);
	c->pidfd = -1;
}

bool child_is_alive(pid_t pid, uint64_t start_ticks) {
	char state;
	uint64_t ticks;
	return read_stat(pid, &state, &ticks) && ticks == start_ticks && state != 'Z' &&
		state != 'X';
}
