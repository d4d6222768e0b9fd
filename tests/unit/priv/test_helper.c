/* The whole helper in a process of its own, with real fio on a temporary file. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <cmocka.h>

#include "base/child.h"
#include "priv/helper.h"
#include "priv/protocol.h"
#include "tests/support/fake_tree.h"

#define FIO "/usr/bin/fio"
#define FILE_BYTES (8 << 20)
#define WAIT_MS 30000

/* --- a helper and its client ------------------------------------------------------------------ */

static struct fake_tree tree;
static char file_target[128];
static const char *targets[] = {file_target};
static struct priv_config config;
static pid_t helper;
static int sock = -1;
static _Alignas(uint64_t) uint8_t buffer[PRIV_MESSAGE_MAX];
static struct priv_drive_ref file_ref;
static int run_dir = -1;

static void start_helper(void) {
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	helper = fork();
	assert_true(helper >= 0);
	if (helper == 0) {
		close(pair[0]);
		_exit(priv_helper_main(pair[1], &config));
	}
	close(pair[1]);
	sock = pair[0];
}

/* Its exit status. */
static int end_helper(void) {
	int status;

	close(sock);
	sock = -1;
	assert_int_equal(waitpid(helper, &status, 0), helper);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int open_helper(void **state) {
	(void)state;
	fake_tree_make(&tree);
	umask(077); /* as the daemon has it */
	snprintf(file_target, sizeof(file_target), "%s/target.img", tree.top);
	fake_tree_file(&tree, "target.img", "%s", "");
	if (truncate(file_target, FILE_BYTES) != 0)
		return -1;
	setenv("TMPDIR", tree.top, 1);
	config = (struct priv_config){
		.log_level = LOG_LEVEL_ERROR,
		.allow_destructive = true,
		.targets = targets,
		.target_count = 1,
		.fio_path = FIO,
		.sysfs = tree.sys,
		.files = {[PRIV_FILE_TLS_CERT] = file_target, [PRIV_FILE_TLS_KEY] = tree.top},
		.max_lanes = 8,
		.command_ms = 10000,
	};
	start_helper();
	return 0;
}

static int close_helper(void **state) {
	(void)state;
	if (run_dir >= 0)
		close(run_dir);
	run_dir = -1;
	if (sock >= 0)
		assert_int_equal(end_helper(), 0);
	fake_tree_remove(&tree);
	return 0;
}

static void send_request(enum priv_type type, uint64_t seq, const void *body) {
	assert_int_equal(priv_send(sock, type, seq, body, -1, NULL), RC_OK);
}

/* The next message, which must be of this type and number. */
static const void *expect(enum priv_type type, uint64_t seq, int *fd) {
	struct pollfd p = {.fd = sock, .events = POLLIN};
	struct priv_header *h;
	const void *body;
	int got = -1;

	assert_int_equal(poll(&p, 1, WAIT_MS), 1);
	assert_int_equal(priv_receive(sock, buffer, &h, &body, &got, NULL), RC_OK);
	assert_int_equal(h->type, type);
	assert_int_equal(h->seq, seq);
	if (fd)
		*fd = got;
	else
		assert_int_equal(got, -1);
	return body;
}

static void find_file(void) {
	const struct priv_found *found;

	send_request(PRIV_ENUMERATE, 1, NULL);
	for (;;) {
		found = expect(PRIV_FOUND, 1, NULL);
		if (found->drive.kind == DRIVE_FILE)
			break;
	}
	file_ref = found->drive;
	expect(PRIV_ENUMERATED, 1, NULL);
}

static const char run_id[] = "018f3c5e-9c1a-7def-8abc-0123456789ab";

static struct priv_run_start request(uint8_t pattern, uint32_t runtime_s) {
	struct priv_run_start r = {.runtime_s = runtime_s, .target_count = 1};

	snprintf(r.run_id, sizeof(r.run_id), "%s", run_id);
	r.workload = (struct workload){
		.pattern = pattern, .block_bytes = 65536, .iodepth = 2, .jobs = 2};
	r.targets[0].drive = file_ref;
	r.targets[0].numa_node = -1;
	snprintf(r.targets[0].drive_id, sizeof(r.targets[0].drive_id), "theDrive");
	if (workload_pattern_writes((enum workload_pattern)pattern)) {
		r.confirm_count = 1;
		snprintf(r.confirm_destructive[0], 21, "%s", file_ref.serial);
	}
	return r;
}

static struct priv_run_started start_run(uint64_t seq, const struct priv_run_start *r) {
	struct priv_run_started started;
	int fd;

	send_request(PRIV_RUN_START, seq, r);
	started = *(const struct priv_run_started *)expect(PRIV_RUN_STARTED, seq, &fd);
	assert_int_equal(fd >= 0, started.rc == RC_OK);
	if (fd >= 0)
		run_dir = fd;
	return started;
}

static void stop_run(uint8_t kill_at_once) {
	struct priv_run_stop stop = {.kill = kill_at_once};

	snprintf(stop.run_id, sizeof(stop.run_id), "%s", run_id);
	send_request(PRIV_RUN_STOP, 90, &stop);
}

static void forget_run(void) {
	struct priv_run_forget forget;

	snprintf(forget.run_id, sizeof(forget.run_id), "%s", run_id);
	send_request(PRIV_RUN_FORGET, 91, &forget);
}

static struct priv_run_exited await_exit(uint64_t seq) {
	return *(const struct priv_run_exited *)expect(PRIV_RUN_EXITED, seq, NULL);
}

static void read_output(const char *name, char *text, size_t size) {
	int fd = openat(run_dir, name, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	assert_true(fd >= 0);
	n = read(fd, text, size - 1);
	assert_true(n >= 0);
	text[n] = '\0';
	close(fd);
}

static bool is_in_run_dir(const char *name) {
	return faccessat(run_dir, name, R_OK, 0) == 0;
}

static bool others_may_read(const char *name) {
	struct stat st;

	return fstatat(run_dir, name, &st, 0) == 0 && (st.st_mode & S_IROTH);
}

/* fio installs its signal handlers before it says anything. */
static void await_progress(void) {
	const struct timespec pause = {.tv_nsec = 10 * 1000000};
	char text[4096] = "";

	for (int i = 0; i < WAIT_MS / 10 && !strstr(text, "Jobs: "); i++) {
		nanosleep(&pause, NULL);
		read_output(PRIV_RUN_ETA, text, sizeof(text));
	}
	assert_non_null(strstr(text, "Jobs: "));
}

/* A round trip: all that was sent before has been handled. */
static void await_handled(void) {
	send_request(PRIV_ENUMERATE, 99, NULL);
	expect(PRIV_FOUND, 99, NULL);
	expect(PRIV_ENUMERATED, 99, NULL);
}

/* --- drives ----------------------------------------------------------------------------------- */

static void finds_and_identifies_the_target(void **state) {
	struct priv_drive_op op = {.verb = PRIV_VERB_IDENTIFY, .power_state = -1};
	const struct priv_drive_reply *reply;

	(void)state;
	find_file();
	assert_string_equal(file_ref.name, "t0");
	op.drive = file_ref;
	send_request(PRIV_DRIVE_OP, 2, &op);
	reply = expect(PRIV_DRIVE_REPLY, 2, NULL);
	assert_int_equal(reply->rc, RC_OK);
	assert_int_equal(reply->u.detail.namespaces[0].size_bytes, FILE_BYTES);
	assert_int_equal(reply->u.detail.namespaces[0].use_count, 0);
	snprintf(op.drive.serial, sizeof(op.drive.serial), "another");
	send_request(PRIV_DRIVE_OP, 3, &op);
	reply = expect(PRIV_DRIVE_REPLY, 3, NULL);
	assert_int_equal(reply->rc, RC_NOT_FOUND);
	assert_int_equal(reply->more, 0);
}

/* --- runs ------------------------------------------------------------------------------------- */

static void runs_fio_to_its_end(void **state) {
	static const char *const files[] = {
		PRIV_RUN_OUTPUT, PRIV_RUN_ETA, PRIV_RUN_STDERR, "bw_bw.1.log", "bw_bw.2.log"};
	struct priv_run_exited exited;
	struct priv_run_start r;
	char text[4096];

	(void)state;
	find_file();
	r = request(PATTERN_RANDREAD, 1);
	assert_int_equal(start_run(5, &r).rc, RC_OK);
	exited = await_exit(5);
	assert_string_equal(exited.run_id, run_id);
	assert_int_equal(exited.exit_code, 0);
	assert_int_equal(exited.signal, 0);
	assert_int_equal(exited.asked, 0);
	for (size_t i = 0; i < array_len(files); i++)
		assert_true(others_may_read(files[i]));
	assert_true(others_may_read("."));
	read_output(PRIV_RUN_OUTPUT, text, sizeof(text));
	assert_non_null(strstr(text, "\"jobname\" : \"theDrive\""));
	read_output(PRIV_RUN_ETA, text, sizeof(text));
	assert_non_null(strstr(text, "Jobs: 2"));
	forget_run();
	await_handled();
	assert_false(is_in_run_dir(PRIV_RUN_OUTPUT));
}

static void written_bytes_are_bounded(void **state) {
	struct priv_run_start r;
	char text[65536];
	const char *at;
	uint64_t sum = 0;

	(void)state;
	find_file();
	r = request(PATTERN_RANDWRITE, 10);
	r.ramp_s = 1;
	r.max_write_bytes = 5 << 20;
	r.workload.rate_bytes_per_s = 2 << 20; /* longer than the ramp, shorter than the runtime */
	assert_int_equal(start_run(5, &r).rc, RC_OK);
	assert_int_equal(await_exit(5).exit_code, 0);
	read_output(PRIV_RUN_OUTPUT, text, sizeof(text));
	for (at = text; (at = strstr(at, "\"write\" : {")) != NULL; at++)
		sum += strtoull(strstr(at, "\"io_bytes\" : ") + 13, NULL, 10);
	assert_true(sum > 0 && sum <= r.max_write_bytes);
}

static void writing_wants_the_serial_confirmed(void **state) {
	struct priv_run_started started;
	struct priv_run_start r;

	(void)state;
	find_file();
	r = request(PATTERN_WRITE, 1);
	r.confirm_count = 0;
	started = start_run(5, &r);
	assert_int_equal(started.rc, RC_FORBIDDEN);
	assert_string_equal(started.field, "/confirm_destructive");
	assert_int_equal(started.pid, 0);
}

static void a_target_is_one_runs_alone(void **state) {
	struct priv_run_started started;
	struct priv_run_start r;

	(void)state;
	find_file();
	r = request(PATTERN_RANDREAD, 60);
	assert_int_equal(start_run(5, &r).rc, RC_OK);
	started = start_run(6, &r);
	assert_int_equal(started.rc, RC_EXISTS);
	r.run_id[0] = '1';
	started = start_run(7, &r);
	assert_int_equal(started.rc, RC_CONFLICT);
	assert_string_equal(started.field, "/drives/0");
	stop_run(0);
	await_exit(5);
	/* Free again. */
	assert_int_equal(start_run(8, &r).rc, RC_OK);
}

static void impossible_runs_are_refused_by_field(void **state) {
	struct priv_run_start good, r;

	(void)state;
	find_file();
	good = request(PATTERN_RANDREAD, 1);
	r = good;
	r.targets[0].size_bytes = FILE_BYTES + 512;
	assert_int_equal(start_run(5, &r).rc, RC_INVALID);
	r = good;
	r.workload.pattern = PATTERN_IDLE;
	assert_string_equal(start_run(6, &r).field, "/workload/pattern");
	r = good;
	r.targets[0].drive.kind = DRIVE_SIMULATED;
	assert_int_equal(start_run(7, &r).rc, RC_NOT_FOUND);
	r = good;
	r.target_count = 2;
	r.targets[1] = r.targets[0];
	assert_string_equal(start_run(8, &r).field, "/drives/1");
	/* Nothing of all that is still held. */
	assert_int_equal(start_run(9, &good).rc, RC_OK);
	assert_int_equal(await_exit(9).exit_code, 0);
}

static void a_stopped_fio_says_what_it_has_done(void **state) {
	struct priv_run_exited exited;
	struct priv_run_start r;
	char text[4096];

	(void)state;
	find_file();
	r = request(PATTERN_RANDREAD, 600);
	assert_int_equal(start_run(5, &r).rc, RC_OK);
	await_progress();
	stop_run(0);
	exited = await_exit(5);
	assert_int_equal(exited.asked, 1);
	assert_int_equal(exited.exit_code, 128);
	assert_int_equal(exited.signal, 0);
	read_output(PRIV_RUN_OUTPUT, text, sizeof(text));
	assert_non_null(strstr(text, "terminating on signal 15"));
	assert_non_null(strstr(text, "\"jobname\" : \"theDrive\""));
}

static void a_killed_fio_is_dead_at_once(void **state) {
	struct priv_run_exited exited;
	struct priv_run_start r;

	(void)state;
	find_file();
	r = request(PATTERN_RANDREAD, 600);
	assert_int_equal(start_run(5, &r).rc, RC_OK);
	stop_run(1);
	exited = await_exit(5);
	assert_int_equal(exited.asked, 1);
	assert_int_equal(exited.signal, SIGKILL);
	assert_int_equal(exited.exit_code, 128 + SIGKILL);
}

static void a_fio_killed_by_others_was_not_asked(void **state) {
	struct priv_run_exited exited;
	struct priv_run_started started;
	struct priv_run_start r;

	(void)state;
	find_file();
	r = request(PATTERN_RANDREAD, 600);
	started = start_run(5, &r);
	assert_int_equal(kill(started.pid, SIGKILL), 0);
	exited = await_exit(5);
	assert_int_equal(exited.asked, 0);
	assert_int_equal(exited.signal, SIGKILL);
}

static void fio_has_no_capabilities(void **state) {
	struct priv_run_started started;
	struct priv_run_start r;
	char path[64], text[4096];
	int fd;
	ssize_t n;

	(void)state;
	find_file();
	r = request(PATTERN_RANDREAD, 600);
	started = start_run(5, &r);
	snprintf(path, sizeof(path), "/proc/%d/status", started.pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	assert_true(n > 0);
	text[n] = '\0';
	assert_non_null(strstr(text, "\nCapPrm:\t0000000000000000\n"));
	assert_non_null(strstr(text, "\nCapEff:\t0000000000000000\n"));
	assert_non_null(strstr(text, "\nNoNewPrivs:\t1\n"));
}

/* --- the end ---------------------------------------------------------------------------------- */

static void at_end_of_file_fio_and_directory_are_gone(void **state) {
	struct priv_run_started started;
	struct priv_run_start r;

	(void)state;
	find_file();
	r = request(PATTERN_RANDREAD, 600);
	started = start_run(5, &r);
	assert_true(child_is_alive(started.pid, started.start_ticks));
	assert_int_equal(end_helper(), 0);
	assert_false(child_is_alive(started.pid, started.start_ticks));
	assert_false(is_in_run_dir("job.fio"));
}

static void a_killed_helper_leaves_nothing_for_long(void **state) {
	struct priv_run_started started;
	struct priv_run_start r;
	int status;

	(void)state;
	find_file();
	r = request(PATTERN_RANDREAD, 600);
	started = start_run(5, &r);
	kill(helper, SIGKILL);
	assert_int_equal(waitpid(helper, &status, 0), helper);
	close(sock);
	/* A directory is locked as long as somebody has it open. */
	start_helper();
	await_handled();
	assert_true(is_in_run_dir("job.fio"));
	assert_int_equal(end_helper(), 0);
	int other = openat(run_dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	close(run_dir);
	run_dir = other;
	start_helper();
	await_handled();
	assert_false(is_in_run_dir("job.fio"));
	assert_false(child_is_alive(started.pid, started.start_ticks));
}

static void signals_to_the_group_do_not_end_it(void **state) {
	(void)state;
	find_file();
	kill(helper, SIGTERM);
	kill(helper, SIGINT);
	await_handled();
}

static void a_broken_peer_ends_it(void **state) {
	int status;

	(void)state;
	assert_int_equal(send(sock, "nonsense", 8, 0), 8);
	assert_int_equal(waitpid(helper, &status, 0), helper);
	assert_int_equal(WEXITSTATUS(status), 1);
	close(sock);
	sock = -1;
}

static enum rc open_file(enum priv_file file, int *fd) {
	const struct priv_open body = {.file = file};

	send_request(PRIV_OPEN, 60, &body);
	return (enum rc)((const struct priv_opened *)expect(PRIV_OPENED, 60, fd))->rc;
}

static void opens_what_the_configuration_names_and_nothing_else(void **state) {
	struct stat st;
	int fd;

	(void)state;
	assert_int_equal(open_file(PRIV_FILE_TLS_CERT, &fd), RC_OK);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_size, FILE_BYTES);
	assert_int_equal(fcntl(fd, F_GETFL) & O_ACCMODE, O_RDONLY);
	close(fd);
	assert_int_equal(open_file(PRIV_FILE_TLS_KEY, &fd), RC_INVALID); /* a directory */
	assert_int_equal(fd, -1);
	assert_int_equal(open_file(PRIV_FILE_CONFIG, &fd), RC_NOT_FOUND);
	assert_int_equal(fd, -1);
	assert_int_equal(unlink(file_target), 0);
	assert_int_equal(open_file(PRIV_FILE_TLS_CERT, &fd), RC_NOT_FOUND);
}

static void answers_are_no_requests(void **state) {
	struct priv_reaped reaped = {0};
	int status;

	(void)state;
	send_request(PRIV_REAPED, 1, &reaped);
	assert_int_equal(waitpid(helper, &status, 0), helper);
	assert_int_equal(WEXITSTATUS(status), 1);
	close(sock);
	sock = -1;
}

/* --- leftovers -------------------------------------------------------------------------------- */

static struct child start_leftover(const char *const *argv) {
	struct child_spec spec = {.path = argv[0],
		.argv = argv,
		.cwd_fd = -1,
		.stdin_fd = -1,
		.stdout_fd = -1,
		.stderr_fd = -1};
	struct child c;

	assert_int_equal(child_start(&spec, &c, NULL), RC_OK);
	return c;
}

static bool reap(const struct child *c, uint64_t ticks_off) {
	struct priv_reap body = {.pid = c->pid, .start_ticks = c->start_ticks + ticks_off};

	send_request(PRIV_REAP, 50, &body);
	return ((const struct priv_reaped *)expect(PRIV_REAPED, 50, NULL))->was_alive;
}

static void reaps_a_leftover_fio_and_nothing_else(void **state) {
	static const char *const fio_argv[] = {FIO, "--name=left", "--ioengine=null", "--size=1t",
		"--rw=read", "--rate=1m", "--thread", NULL};
	static const char *const sleep_argv[] = {"/bin/sleep", "600", NULL};
	struct child fio = start_leftover(fio_argv), sleeper = start_leftover(sleep_argv);
	int exit_code, sig;

	(void)state;
	assert_false(reap(&fio, 1));
	assert_false(reap(&sleeper, 0));
	assert_true(child_is_alive(fio.pid, fio.start_ticks));
	assert_true(reap(&fio, 0));
	assert_true(child_wait(&fio, WAIT_MS, &exit_code, &sig));
	assert_int_equal(sig, SIGKILL);
	assert_false(reap(&fio, 0));
	assert_true(child_is_alive(sleeper.pid, sleeper.start_ticks));
	child_signal(&sleeper, SIGKILL);
	assert_true(child_wait(&sleeper, WAIT_MS, &exit_code, &sig));
	child_release(&fio);
	child_release(&sleeper);
}

#define WITH_HELPER(test) cmocka_unit_test_setup_teardown(test, open_helper, close_helper)

int main(void) {
	const struct CMUnitTest tests[] = {
		WITH_HELPER(finds_and_identifies_the_target),
		WITH_HELPER(runs_fio_to_its_end),
		WITH_HELPER(written_bytes_are_bounded),
		WITH_HELPER(writing_wants_the_serial_confirmed),
		WITH_HELPER(a_target_is_one_runs_alone),
		WITH_HELPER(impossible_runs_are_refused_by_field),
		WITH_HELPER(a_stopped_fio_says_what_it_has_done),
		WITH_HELPER(a_killed_fio_is_dead_at_once),
		WITH_HELPER(a_fio_killed_by_others_was_not_asked),
		WITH_HELPER(fio_has_no_capabilities),
		WITH_HELPER(at_end_of_file_fio_and_directory_are_gone),
		WITH_HELPER(a_killed_helper_leaves_nothing_for_long),
		WITH_HELPER(signals_to_the_group_do_not_end_it),
		WITH_HELPER(a_broken_peer_ends_it),
		WITH_HELPER(answers_are_no_requests),
		WITH_HELPER(opens_what_the_configuration_names_and_nothing_else),
		WITH_HELPER(reaps_a_leftover_fio_and_nothing_else),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
