#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>

#include "base/child.h"
#include "base/latch.h"
#include "base/thread.h"

#define DEADLINE_MS 20000

static struct child_spec spec_of(const char *const *argv) {
	return (struct child_spec){
		.path = argv[0],
		.argv = argv,
		.cwd_fd = -1,
		.stdin_fd = -1,
		.stdout_fd = -1,
		.stderr_fd = -1,
	};
}

static int start_and_wait(const struct child_spec *spec, int *sig) {
	struct child c;
	int code = -2;
	assert_int_equal(child_start(spec, &c, NULL), RC_OK);
	assert_true(child_wait(&c, DEADLINE_MS, &code, sig));
	child_release(&c);
	return code;
}

/* What `sh -c script` prints, with the rest of the specification as given. */
static const char *output_of(struct child_spec spec, const char *script) {
	static char text[4096];
	const char *const argv[] = {"/bin/sh", "-c", script, NULL};
	int ends[2], sig;
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	spec.path = argv[0];
	spec.argv = argv;
	spec.stdout_fd = ends[1];
	struct child c;
	assert_int_equal(child_start(&spec, &c, NULL), RC_OK);
	close(ends[1]);
	size_t len = 0;
	ssize_t n;
	while ((n = read(ends[0], text + len, sizeof(text) - 1 - len)) > 0)
		len += (size_t)n;
	text[len] = '\0';
	close(ends[0]);
	int code;
	assert_true(child_wait(&c, DEADLINE_MS, &code, &sig));
	child_release(&c);
	return text;
}

static void exit_code_comes_back(void **state) {
	(void)state;
	static const struct {
		const char *script;
		int code;
		int sig;
	} cases[] = {
		{"exit 0", 0, 0},
		{"exit 3", 3, 0},
		{"exit 255", 255, 0},
		{"kill -TERM $$", 128 + SIGTERM, SIGTERM},
		{"kill -KILL $$", 128 + SIGKILL, SIGKILL},
		{"exit 143", 143, 0},
	};
	for (size_t i = 0; i < array_len(cases); i++) {
		const char *const argv[] = {"/bin/sh", "-c", cases[i].script, NULL};
		struct child_spec spec = spec_of(argv);
		int sig = -1;
		assert_int_equal(start_and_wait(&spec, &sig), cases[i].code);
		assert_int_equal(sig, cases[i].sig);
	}
}

static void missing_program_is_told(void **state) {
	(void)state;
	const char *const argv[] = {"/nonexistent/program", NULL};
	struct child_spec spec = spec_of(argv);
	struct child c;
	struct err err;
	assert_int_equal(child_start(&spec, &c, &err), RC_NOT_FOUND);
	assert_non_null(strstr(err.msg, "/nonexistent/program"));
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
}

static void file_that_is_no_program_is_told(void **state) {
	(void)state;
	const char *const argv[] = {"/etc/passwd", NULL};
	struct child_spec spec = spec_of(argv);
	struct child c;
	assert_int_equal(child_start(&spec, &c, NULL), RC_FORBIDDEN);
}

static void bad_descriptors_are_told(void **state) {
	(void)state;
	const char *const argv[] = {"/bin/true", NULL};
	struct child c;
	struct err err;
	struct child_spec spec = spec_of(argv);
	const int not_open[] = {900};
	spec.keep_fds = not_open;
	spec.keep_fd_count = 1;
	assert_int_equal(child_start(&spec, &c, &err), RC_IO);
	spec.keep_fd_count = CHILD_MAX_KEEP_FDS + 1;
	assert_int_equal(child_start(&spec, &c, &err), RC_INVALID);
	spec.keep_fd_count = 0;
	spec.stderr_fd = 900;
	assert_int_equal(child_start(&spec, &c, &err), RC_IO);
}

static void wait_times_out_and_signal_ends_it(void **state) {
	(void)state;
	const char *const argv[] = {"/bin/sleep", "600", NULL};
	struct child_spec spec = spec_of(argv);
	struct child c;
	int code, sig;
	assert_int_equal(child_start(&spec, &c, NULL), RC_OK);
	assert_false(child_wait(&c, 0, &code, &sig));
	assert_false(child_wait(&c, 20, &code, &sig));
	assert_true(child_is_alive(c.pid, c.start_ticks));
	assert_false(child_is_alive(c.pid, c.start_ticks + 1));
	child_signal(&c, SIGTERM);
	assert_true(child_wait(&c, -1, &code, &sig));
	assert_int_equal(sig, SIGTERM);
	assert_false(child_is_alive(c.pid, c.start_ticks));
	/* Reaped: another signal and another wait do no harm. */
	child_signal(&c, SIGTERM);
	assert_true(child_wait(&c, 0, &code, &sig));
	assert_int_equal(code, -1);
	child_release(&c);
	child_release(&c);
}

static void pidfd_becomes_readable(void **state) {
	(void)state;
	const char *const argv[] = {"/bin/true", NULL};
	struct child_spec spec = spec_of(argv);
	struct child c;
	int code, sig;
	assert_int_equal(child_start(&spec, &c, NULL), RC_OK);
	struct pollfd p = {.fd = c.pidfd, .events = POLLIN};
	assert_int_equal(poll(&p, 1, DEADLINE_MS), 1);
	assert_true(child_wait(&c, 0, &code, &sig));
	assert_int_equal(code, 0);
	child_release(&c);
}

static void ended_but_not_reaped_is_not_alive(void **state) {
	(void)state;
	const char *const argv[] = {"/bin/true", NULL};
	struct child_spec spec = spec_of(argv);
	struct child c;
	int code, sig;
	assert_int_equal(child_start(&spec, &c, NULL), RC_OK);
	struct pollfd p = {.fd = c.pidfd, .events = POLLIN};
	assert_int_equal(poll(&p, 1, DEADLINE_MS), 1);
	assert_false(child_is_alive(c.pid, c.start_ticks));
	assert_true(child_wait(&c, 0, &code, &sig));
	child_release(&c);
}

static void start_ticks_are_the_kernels(void **state) {
	(void)state;
	const char *const argv[] = {"/bin/sleep", "600", NULL};
	struct child_spec spec = spec_of(argv);
	struct child c;
	char script[100];
	assert_int_equal(child_start(&spec, &c, NULL), RC_OK);
	/* The name "sleep" holds no space here, so that cut counts right. */
	snprintf(script, sizeof(script), "/usr/bin/cut -d' ' -f22 /proc/%d/stat", (int)c.pid);
	unsigned long long ticks = strtoull(output_of(spec_of(argv), script), NULL, 10);
	assert_true(ticks > 0);
	assert_true(c.start_ticks == ticks);
	int code, sig;
	child_signal(&c, SIGKILL);
	assert_true(child_wait(&c, DEADLINE_MS, &code, &sig));
	child_release(&c);
}

static void only_named_descriptors_stay_open(void **state) {
	(void)state;
	const char *const none[] = {"", NULL};
	int leaked = open("/dev/null", O_RDONLY); /* without O_CLOEXEC */
	int kept = open("/dev/null", O_RDONLY | O_CLOEXEC);
	char script[200], wanted[32];
	struct child_spec spec = spec_of(none);
	const int keep[] = {kept};
	spec.keep_fds = keep;
	spec.keep_fd_count = 1;
	/* A glob in the shell itself, whose own descriptor on the directory is closed by then. */
	snprintf(script, sizeof(script),
		"for f in 3 4 5 6 7 8 9; do [ -e /proc/$$/fd/$f ] && echo $f; done");
	assert_true(leaked >= 3 && kept >= 3 && kept <= 9);
	snprintf(wanted, sizeof(wanted), "%d\n", kept);
	assert_string_equal(output_of(spec, script), wanted);
	close(leaked);
	close(kept);
}

static void standard_descriptors_may_cross(void **state) {
	(void)state;
	const char *const argv[] = {"/bin/sh", "-c", "echo to-err >&2; echo to-out", NULL};
	int a[2], b[2], sig;
	char text[100];
	assert_int_equal(pipe2(a, O_CLOEXEC), 0);
	assert_int_equal(pipe2(b, O_CLOEXEC), 0);
	struct child_spec spec = spec_of(argv);
	/* The child's 1 and 2 come from numbers that are each other's targets. */
	int saved1 = dup(1), saved2 = dup(2);
	dup2(a[1], 2);
	dup2(b[1], 1);
	spec.stdout_fd = 2;
	spec.stderr_fd = 1;
	int code = start_and_wait(&spec, &sig);
	dup2(saved1, 1);
	dup2(saved2, 2);
	assert_int_equal(code, 0);
	ssize_t n = read(a[0], text, sizeof(text));
	assert_int_equal(n, 7);
	assert_memory_equal(text, "to-out\n", 7);
	n = read(b[0], text, sizeof(text));
	assert_int_equal(n, 7);
	assert_memory_equal(text, "to-err\n", 7);
	const int all[] = {a[0], a[1], b[0], b[1], saved1, saved2};
	for (size_t i = 0; i < array_len(all); i++)
		close(all[i]);
}

static void environment_is_empty_but_for_what_is_passed(void **state) {
	(void)state;
	const char *const envp[] = {"LANG=C", "ANSWER=42", NULL};
	const char *const argv[] = {"", NULL};
	struct child_spec spec = spec_of(argv);
	setenv("DRIVEWATT_TEST_LEAK", "1", 1);
	const char *script = "echo \"$ANSWER,$DRIVEWATT_TEST_LEAK,$HOME\"";
	assert_string_equal(output_of(spec, script), ",,\n");
	spec.envp = envp;
	assert_string_equal(output_of(spec, script), "42,,\n");
}

static void starts_in_the_directory(void **state) {
	(void)state;
	const char *const argv[] = {"", NULL};
	struct child_spec spec = spec_of(argv);
	auto_close int dir = open("/usr", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	spec.cwd_fd = dir;
	assert_string_equal(output_of(spec, "pwd"), "/usr\n");
}

static void signals_are_default_and_unblocked(void **state) {
	(void)state;
	const char *const argv[] = {"", NULL};
	sigset_t all, before;
	sigfillset(&all);
	void (*pipe_before)(int) = signal(SIGPIPE, SIG_IGN);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	const char *text = output_of(spec_of(argv),
		"while read -r key value; do case $key in SigBlk:|SigIgn:) echo $value;; esac; done"
		" </proc/self/status");
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	signal(SIGPIPE, pipe_before);
	unsigned long long blocked, ignored;
	assert_int_equal(sscanf(text, "%llx %llx", &blocked, &ignored), 2);
	assert_true(blocked == 0);
	/* 32 and 33 are libc's own; it changes neither. */
	assert_true((ignored & ~(3ULL << 31)) == 0);
}

static void capabilities_are_dropped(void **state) {
	(void)state;
	const char *const argv[] = {"", NULL};
	struct child_spec spec = spec_of(argv);
	spec.drop_capabilities = true;
	const char *text = output_of(spec,
		"while read -r key value; do case $key in CapPrm:|CapEff:|CapAmb:|NoNewPrivs:)"
		" echo $value;; esac; done </proc/self/status");
	assert_string_equal(text, "0000000000000000\n0000000000000000\n0000000000000000\n1\n");
}

struct starter {
	bool drop_capabilities;
	struct latch *started;
	struct latch *may_end;
	struct child child;
	enum rc rc;
};

static void *start_and_stay(void *arg) {
	struct starter *s = arg;
	const char *const argv[] = {"/bin/sleep", "600", NULL};
	struct child_spec spec = spec_of(argv);
	spec.drop_capabilities = s->drop_capabilities;
	s->rc = child_start(&spec, &s->child, NULL);
	latch_open(s->started, NULL);
	latch_wait(s->may_end, -1, NULL);
	return NULL;
}

static void child_dies_with_the_thread_that_started_it(void **state) {
	(void)state;
	for (int drop = 0; drop < 2; drop++) {
		struct starter s = {
			.drop_capabilities = drop,
			.started = latch_new(0),
			.may_end = latch_new(0),
		};
		pthread_t thread;
		int code, sig;
		assert_int_equal(thread_start(&thread, "starter", start_and_stay, &s, NULL), RC_OK);
		assert_true(latch_wait(s.started, DEADLINE_MS, NULL));
		assert_int_equal(s.rc, RC_OK);
		assert_false(child_wait(&s.child, 20, &code, &sig));
		latch_open(s.may_end, NULL);
		pthread_join(thread, NULL);
		assert_true(child_wait(&s.child, DEADLINE_MS, &code, &sig));
		assert_int_equal(sig, SIGKILL);
		child_release(&s.child);
		latch_unref(s.started);
		latch_unref(s.may_end);
	}
}

static void nobody_is_not_alive(void **state) {
	(void)state;
	assert_false(child_is_alive(0x3fffffff, 1));
	assert_false(child_is_alive(-1, 1));
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exit_code_comes_back),
		cmocka_unit_test(missing_program_is_told),
		cmocka_unit_test(file_that_is_no_program_is_told),
		cmocka_unit_test(bad_descriptors_are_told),
		cmocka_unit_test(wait_times_out_and_signal_ends_it),
		cmocka_unit_test(pidfd_becomes_readable),
		cmocka_unit_test(ended_but_not_reaped_is_not_alive),
		cmocka_unit_test(start_ticks_are_the_kernels),
		cmocka_unit_test(only_named_descriptors_stay_open),
		cmocka_unit_test(standard_descriptors_may_cross),
		cmocka_unit_test(environment_is_empty_but_for_what_is_passed),
		cmocka_unit_test(starts_in_the_directory),
		cmocka_unit_test(signals_are_default_and_unblocked),
		cmocka_unit_test(capabilities_are_dropped),
		cmocka_unit_test(child_dies_with_the_thread_that_started_it),
		cmocka_unit_test(nobody_is_not_alive),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
