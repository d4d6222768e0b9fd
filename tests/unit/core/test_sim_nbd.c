/* The simulated drives' sockets: against a small client of our own, and against fio. */
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <cmocka.h>

#include "base/child.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "core/sim/nbd.h"
#include "core/sim/proto.h"

#define SIZE (UINT64_C(1) << 40)
#define PATIENCE_MS 20000
#define BLOCK 131072u

struct fixture {
	char dir[64];
	struct sim_model model;
	struct sim_pace *pace;
	struct sim_nbd *nbd;
};

static void begin(struct fixture *f, unsigned drives, unsigned scale) {
	struct err err = {0};
	const struct sim_nbd_config config = {
		.socket_dir = f->dir, .drives = drives, .size_bytes = SIZE, .block_bytes = 512};
	f->pace = sim_pace_new(&f->model, drives, scale, clock_mono_ns(), &err);
	assert_non_null(f->pace);
	f->nbd = sim_nbd_new(&config, f->pace, &err);
	if (!f->nbd)
		fail_msg("%s", err.msg);
}

static int setup(void **state) {
	struct fixture *f = calloc(1, sizeof(*f));
	char top[] = "/tmp/sim-nbd-XXXXXX";
	if (!f || !mkdtemp(top) || sim_model_builtin("", &f->model, NULL))
		return -1;
	snprintf(f->dir, sizeof(f->dir), "%s/s", top);
	*state = f;
	return 0;
}

static int teardown(void **state) {
	struct fixture *f = *state;
	sim_nbd_free(f->nbd);
	sim_pace_free(f->pace);
	bool left_over = rmdir(f->dir) != 0;
	*strrchr(f->dir, '/') = '\0';
	left_over |= rmdir(f->dir) != 0;
	free(f);
	return left_over ? -1 : 0;
}

/* --- a client --- */

static int dial(const struct fixture *f, unsigned drive) {
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	char name[16];
	sim_drive_name(drive, name, sizeof(name));
	snprintf(a.sun_path, sizeof(a.sun_path), "%s/%s.sock", f->dir, name);
	const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	const struct timeval patience = {.tv_sec = PATIENCE_MS / 1000};
	assert_true(fd >= 0);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	return fd;
}

static void say(int fd, const void *data, size_t len) {
	for (const char *p = data; len;) {
		const ssize_t n = send(fd, p, len, MSG_NOSIGNAL);
		assert_true(n > 0);
		p += n;
		len -= (size_t)n;
	}
}

static void hear(int fd, void *data, size_t len) {
	assert_int_equal(recv(fd, data, len, MSG_WAITALL), (ssize_t)len);
}

static bool is_hung_up(int fd) {
	char c;
	ssize_t n;
	while ((n = recv(fd, &c, 1, 0)) > 0)
		continue;
	return n == 0 || errno == ECONNRESET;
}

static const uint8_t flags_and_go[] = {0, 0, 0, 3, 'I', 'H', 'A', 'V', 'E', 'O', 'P', 'T', 0, 0, 0,
	7, 0, 0, 0, 6, 0, 0, 0, 0, 0, 0};
#define GREETING_BYTES 18
#define GO_ANSWER_BYTES 86

static int open_drive(const struct fixture *f, unsigned drive) {
	uint8_t answer[GREETING_BYTES + GO_ANSWER_BYTES];
	const int fd = dial(f, drive);
	say(fd, flags_and_go, sizeof(flags_and_go));
	hear(fd, answer, sizeof(answer));
	assert_memory_equal(answer, "NBDMAGICIHAVEOPT", 16);
	return fd;
}

struct wire_request {
	uint32_t magic;
	uint16_t flags, command;
	uint64_t tag, offset;
	uint32_t length;
} __attribute__((packed));

static struct wire_request wire(
	enum sim_nbd_command command, uint64_t tag, uint64_t offset, uint32_t length) {
	return (struct wire_request){htobe32(0x25609513), 0, htobe16((uint16_t)command),
		htobe64(tag), htobe64(offset), htobe32(length)};
}

static void ask(
	int fd, enum sim_nbd_command command, uint64_t tag, uint64_t offset, uint32_t length) {
	const struct wire_request r = wire(command, tag, offset, length);
	say(fd, &r, sizeof(r));
}

/* Tag of the next simple reply; its error in *error. */
static uint64_t hear_reply(int fd, uint32_t *error) {
	struct {
		uint32_t magic, error;
		uint64_t tag;
	} r;
	hear(fd, &r, sizeof(r));
	assert_int_equal(be32toh(r.magic), 0x67446698);
	*error = be32toh(r.error);
	return be64toh(r.tag);
}

static void hear_zeros(int fd, size_t len) {
	static uint8_t data[BLOCK];
	while (len) {
		const size_t n = len < sizeof(data) ? len : sizeof(data);
		data[0] = data[n - 1] = 1;
		hear(fd, data, n);
		for (size_t i = 0; i < n; i += 511)
			assert_int_equal(data[i], 0);
		assert_int_equal(data[n - 1], 0);
		len -= n;
	}
}

static void send_payload(int fd, size_t len) {
	static const uint8_t data[BLOCK] = {1, 2, 3};
	for (; len > sizeof(data); len -= sizeof(data))
		say(fd, data, sizeof(data));
	say(fd, data, len);
}

static double served(const struct fixture *f, unsigned drive) {
	struct sim_totals t;
	sim_pace_totals(f->pace, drive, clock_mono_ns(), &t);
	return t.bytes[SIM_READ] + t.bytes[SIM_WRITE];
}

/* --- serving --- */

/* The helper's fio has no capability and may have another user than the daemon. */
static void sockets_can_be_reached_but_not_listed(void **state) {
	struct fixture *f = *state;
	char path[128];
	struct stat st;
	begin(f, 2, 1);
	assert_int_equal(stat(f->dir, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0711);
	snprintf(path, sizeof(path), "%s/sim01.sock", f->dir);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0666);
}

static void reads_give_zeros(void **state) {
	struct fixture *f = *state;
	uint32_t error;
	begin(f, 1, 1);
	const int fd = open_drive(f, 0);
	ask(fd, SIM_NBD_READ, 77, 4096, 512);
	assert_true(hear_reply(fd, &error) == 77);
	assert_int_equal(error, 0);
	hear_zeros(fd, 512);
	/* Larger than any buffer of the server. */
	ask(fd, SIM_NBD_READ, 78, 0, SIM_NBD_MAX_PAYLOAD);
	assert_true(hear_reply(fd, &error) == 78);
	hear_zeros(fd, SIM_NBD_MAX_PAYLOAD);
	close(fd);
}

static void writes_trims_and_flushes_are_answered(void **state) {
	struct fixture *f = *state;
	uint32_t error;
	begin(f, 1, 1);
	const int fd = open_drive(f, 0);
	ask(fd, SIM_NBD_WRITE, 1, 0, 3 * BLOCK);
	send_payload(fd, 3 * BLOCK);
	ask(fd, SIM_NBD_TRIM, 2, 0, 1u << 30);
	ask(fd, SIM_NBD_WRITE_ZEROES, 3, 0, 4096);
	ask(fd, SIM_NBD_FLUSH, 4, 0, 0);
	for (uint64_t tag = 1; tag <= 4; tag++) {
		assert_true(hear_reply(fd, &error) == tag);
		assert_int_equal(error, 0);
	}
	assert_true(served(f, 0) == 3 * BLOCK);
	close(fd);
}

static void refused_requests_leave_the_connection_in_step(void **state) {
	struct fixture *f = *state;
	uint32_t error;
	begin(f, 1, 1);
	const int fd = open_drive(f, 0);
	ask(fd, SIM_NBD_WRITE, 1, SIZE, 4096);
	send_payload(fd, 4096);
	assert_true(hear_reply(fd, &error) == 1);
	assert_int_equal(error, SIM_NBD_ENOSPC);
	ask(fd, SIM_NBD_WRITE, 2, 0, SIM_NBD_MAX_PAYLOAD + 512);
	send_payload(fd, SIM_NBD_MAX_PAYLOAD + 512);
	assert_true(hear_reply(fd, &error) == 2);
	assert_int_equal(error, SIM_NBD_EOVERFLOW);
	ask(fd, SIM_NBD_READ, 3, 0, SIM_NBD_MAX_PAYLOAD + 512);
	assert_true(hear_reply(fd, &error) == 3);
	assert_int_equal(error, SIM_NBD_EOVERFLOW);
	assert_true(served(f, 0) == 0);
	ask(fd, SIM_NBD_READ, 4, 0, 512);
	assert_true(hear_reply(fd, &error) == 4);
	hear_zeros(fd, 512);
	close(fd);
}

static void more_requests_than_the_depth_are_all_answered(void **state) {
	struct fixture *f = *state;
	enum { N = 4 * SIM_NBD_DEPTH };
	uint32_t error;
	begin(f, 1, 16);
	const int fd = open_drive(f, 0);
	static struct wire_request all[N];
	for (uint64_t i = 0; i < N; i++)
		all[i] = wire(SIM_NBD_FLUSH, i, 0, 0);
	say(fd, all, sizeof(all));
	for (uint64_t i = 0; i < N; i++)
		assert_true(hear_reply(fd, &error) == i);
	close(fd);
}

static void a_client_that_reads_late_loses_nothing_and_is_counted(void **state) {
	struct fixture *f = *state;
	enum { N = 40 };
	uint32_t error;
	begin(f, 1, 1);
	const int fd = open_drive(f, 0);
	const int64_t late = metric_get(METRIC_SIM_LATE);
	for (uint64_t i = 0; i < N; i++)
		ask(fd, SIM_NBD_READ, i, 0, BLOCK);
	const int64_t until_ms = clock_mono_ms() + PATIENCE_MS;
	while (served(f, 0) < N * BLOCK && clock_mono_ms() < until_ms)
		poll(NULL, 0, 5);
	/* Past what is allowed to be late. */
	poll(NULL, 0, 50);
	for (uint64_t i = 0; i < N; i++) {
		assert_true(hear_reply(fd, &error) == i);
		hear_zeros(fd, BLOCK);
	}
	const int other = open_drive(f, 0);
	ask(other, SIM_NBD_FLUSH, 1, 0, 0);
	hear_reply(other, &error);
	assert_true(metric_get(METRIC_SIM_LATE) > late);
	close(other);
	close(fd);
}

/* --- clients that go or do not fit --- */

static void what_a_lost_client_queued_is_dropped(void **state) {
	struct fixture *f = *state;
	uint32_t error;
	begin(f, 1, 20000); /* 0.76 s a block */
	const int lost = open_drive(f, 0);
	for (uint64_t i = 0; i < 100; i++)
		ask(lost, SIM_NBD_READ, i, 0, BLOCK);
	close(lost);
	const int fd = open_drive(f, 0);
	ask(fd, SIM_NBD_FLUSH, 5, 0, 0);
	assert_true(hear_reply(fd, &error) == 5);
	assert_true(served(f, 0) < 4 * 20000.0 * BLOCK);
	close(fd);
}

static void disconnecting_hangs_up(void **state) {
	struct fixture *f = *state;
	begin(f, 1, 1);
	const int fd = open_drive(f, 0);
	ask(fd, SIM_NBD_DISC, 0, 0, 0);
	assert_true(is_hung_up(fd));
	close(fd);
}

static void nonsense_hangs_up(void **state) {
	struct fixture *f = *state;
	static const char text[] = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
	begin(f, 1, 1);
	int fd = dial(f, 0);
	say(fd, text, strlen(text));
	assert_true(is_hung_up(fd));
	close(fd);
	fd = open_drive(f, 0);
	say(fd, text, strlen(text));
	assert_true(is_hung_up(fd));
	close(fd);
}

static void connections_over_the_limit_are_closed(void **state) {
	struct fixture *f = *state;
	int fds[SIM_NBD_CONNECTIONS];
	begin(f, 2, 1);
	for (size_t i = 0; i < array_len(fds); i++)
		fds[i] = open_drive(f, 0);
	int over = dial(f, 0);
	assert_true(is_hung_up(over));
	close(over);
	over = open_drive(f, 1);
	close(over);
	for (size_t i = 0; i < array_len(fds); i++)
		close(fds[i]);
}

/* In a process of another account: is it hung up on before it is greeted? Needs root. */
static bool nobody_is_refused(const struct fixture *f) {
	const pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		char c;
		if (setresgid(65534, 65534, 65534) || setresuid(65534, 65534, 65534))
			_exit(2);
		const int fd = dial(f, 0);
		_exit(recv(fd, &c, 1, 0) == 0 ? 0 : 1);
	}
	int status = 0;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) < 2);
	return WEXITSTATUS(status) == 0;
}

static void other_accounts_are_hung_up_on(void **state) {
	struct fixture *f = *state;
	char top[sizeof(f->dir) + 4];
	assert_int_equal(geteuid(), 0);
	begin(f, 1, 1);
	snprintf(top, sizeof(top), "%s/..", f->dir);
	assert_int_equal(chmod(top, 0711), 0);
	for (size_t i = 0; i < SIM_NBD_CONNECTIONS + 1; i++)
		assert_true(nobody_is_refused(f));
	close(open_drive(f, 0));
}

/* Clients are still there when it ends. */
static void it_ends_with_requests_in_flight(void **state) {
	struct fixture *f = *state;
	begin(f, 2, 1000);
	const int fd = open_drive(f, 1);
	for (uint64_t i = 0; i < 50; i++)
		ask(fd, SIM_NBD_READ, i, 0, BLOCK);
	sim_nbd_free(f->nbd);
	f->nbd = NULL;
	assert_true(is_hung_up(fd));
	close(fd);
}

static void a_path_that_is_too_long_is_refused(void **state) {
	struct fixture *f = *state;
	struct err err;
	char path[200];
	memset(path, 'x', sizeof(path) - 1);
	path[sizeof(path) - 1] = '\0';
	memcpy(path, "/tmp/", 5);
	const struct sim_nbd_config config = {
		.socket_dir = path, .drives = 1, .size_bytes = SIZE, .block_bytes = 512};
	f->pace = sim_pace_new(&f->model, 1, 1, clock_mono_ns(), &err);
	assert_null(sim_nbd_new(&config, f->pace, &err));
	assert_int_equal(err.rc, RC_TOO_LARGE);
	assert_int_equal(rmdir(path), 0);
	assert_int_equal(mkdir(f->dir, 0700), 0);
}

/* --- at the model's pace --- */

static void assert_near(double value, double wanted, double part) {
	if (fabs(value - wanted) > part * wanted)
		fail_msg("%g is not %g within %g %%", value, wanted, part * 100);
}

/* Keeps the drive's queue filled; returns its simulated rate over so many answers. */
static double write_rate(const struct fixture *f, int fd, unsigned answers) {
	uint32_t error;
	const double before = served(f, 0);
	const int64_t start_ns = clock_mono_ns();
	for (unsigned i = 0; i < answers; i++) {
		hear_reply(fd, &error);
		ask(fd, SIM_NBD_WRITE, i, 0, BLOCK);
		send_payload(fd, BLOCK);
	}
	return (served(f, 0) - before) * 1e9 / (double)(clock_mono_ns() - start_ns);
}

static void a_state_change_shows_in_the_middle_of_a_run(void **state) {
	struct fixture *f = *state;
	begin(f, 1, 256);
	const int fd = open_drive(f, 0);
	for (unsigned i = 0; i < 64; i++) {
		ask(fd, SIM_NBD_WRITE, i, 0, BLOCK);
		send_payload(fd, BLOCK);
	}
	assert_near(write_rate(f, fd, 80), 3437.5e6, 0.05);
	sim_pace_set_state(f->pace, 0, 2, clock_mono_ns());
	assert_near(write_rate(f, fd, 20), 720.8e6, 0.05);
	sim_pace_set_state(f->pace, 0, 0, clock_mono_ns());
	assert_near(write_rate(f, fd, 80), 3437.5e6, 0.05);
	close(fd);
}

/* --- fio --- */

static json_t *load_output(const char *path) {
	static char text[1 << 20];
	json_error_t wrong;
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);
	const ssize_t n = read(fd, text, sizeof(text) - 1);
	text[n > 0 ? n : 0] = '\0';
	/* Remarks may stand before it. */
	const char *json = strchr(text, '{');
	json_t *root = json ? json_loads(json, JSON_DISABLE_EOF_CHECK, &wrong) : NULL;
	if (!root)
		fail_msg("fio gave no JSON: %s", text);
	return root;
}

/* Runs fio on the first drives at once; returns the sum of their real rates. */
static double fio_rate(const struct fixture *f, unsigned drives, const char *rw) {
	enum { MAX_DRIVES = 4 };
	char output[96], rw_arg[32], names[MAX_DRIVES][32], uris[MAX_DRIVES][128];
	const char *argv[16 + 2 * MAX_DRIVES] = {"fio", "--ioengine=nbd", "--bs=128k",
		"--iodepth=32", "--time_based", "--runtime=2", "--size=1g", "--thread",
		"--output-format=json", "--clocksource=clock_gettime"};
	unsigned n = 10;
	snprintf(output, sizeof(output), "%s/fio.json", f->dir);
	snprintf(rw_arg, sizeof(rw_arg), "--rw=%s", rw);
	argv[n++] = rw_arg;
	for (unsigned i = 0; i < drives; i++) {
		snprintf(names[i], sizeof(names[i]), "--name=sim%02u", i);
		snprintf(uris[i], sizeof(uris[i]), "--uri=nbd+unix:///?socket=%s/sim%02u.sock",
			f->dir, i);
		argv[n++] = names[i];
		argv[n++] = uris[i];
	}
	auto_close int out = open(output, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	const struct child_spec spec = {.path = "/usr/bin/fio",
		.argv = argv,
		.cwd_fd = -1,
		.stdin_fd = -1,
		.stdout_fd = out,
		.stderr_fd = -1};
	struct child c;
	struct err err;
	int code, sig;
	assert_int_equal(child_start(&spec, &c, &err), RC_OK);
	assert_true(child_wait(&c, 60000, &code, &sig));
	child_release(&c);
	assert_int_equal(code, 0);
	json_t *root = load_output(output);
	const char *direction = strcmp(rw, "read") == 0 ? "read" : "write";
	double rate = 0;
	for (unsigned i = 0; i < drives; i++) {
		const json_t *job = json_array_get(json_object_get(root, "jobs"), i);
		const json_t *d = json_object_get(job, direction);
		rate += json_number_value(json_object_get(d, "io_bytes")) * 1000 /
			json_number_value(json_object_get(d, "runtime"));
	}
	json_decref(root);
	unlink(output);
	return rate;
}

static void fio_reaches_the_rate_of_the_model(void **state) {
	struct fixture *f = *state;
	begin(f, 1, 128);
	assert_near(fio_rate(f, 1, "read") * 128, 7e9, 0.03);
	assert_near(fio_rate(f, 1, "write") * 128, 3437.5e6, 0.03);
}

static void fio_on_many_drives_shares_the_switch(void **state) {
	struct fixture *f = *state;
	f->model.host.switch_bytes_per_s = 14e9;
	begin(f, 4, 128);
	assert_near(fio_rate(f, 4, "read") * 128, 14e9, 0.03);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void) {
	const struct CMUnitTest tests[] = {
		TEST(sockets_can_be_reached_but_not_listed),
		TEST(reads_give_zeros),
		TEST(writes_trims_and_flushes_are_answered),
		TEST(refused_requests_leave_the_connection_in_step),
		TEST(more_requests_than_the_depth_are_all_answered),
		TEST(a_client_that_reads_late_loses_nothing_and_is_counted),
		TEST(what_a_lost_client_queued_is_dropped),
		TEST(disconnecting_hangs_up),
		TEST(nonsense_hangs_up),
		TEST(connections_over_the_limit_are_closed),
		TEST(other_accounts_are_hung_up_on),
		TEST(it_ends_with_requests_in_flight),
		TEST(a_path_that_is_too_long_is_refused),
		TEST(a_state_change_shows_in_the_middle_of_a_run),
		TEST(fio_reaches_the_rate_of_the_model),
		TEST(fio_on_many_drives_shares_the_switch),
	};
	log_init("test", LOG_LEVEL_WARNING);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
