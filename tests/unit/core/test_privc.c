/* The helper's client against a helper that the test plays itself. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <cmocka.h>

#include "base/metrics.h"
#include "base/parse.h"
#include "base/thread.h"
#include "core/privc.h"
#include "tests/support/eventually.h"

#define RUN "0190a000-0000-7000-8000-000000000001"

struct fixture {
	int helper; /* our end: the helper's */
	struct privc *privc;
	pthread_mutex_t lock;
	int found, done, replies, late, started, exited, lost, hints;
	enum rc rc;
	int power_state, exit_code, dir_fd;
	_Alignas(uint64_t) unsigned char buffer[PRIV_MESSAGE_MAX];
};

#define COUNT(f, change) \
	do { \
		pthread_mutex_lock(&(f)->lock); \
		change; \
		pthread_mutex_unlock(&(f)->lock); \
	} while (0)

static void on_lost(void *arg) {
	struct fixture *f = arg;
	COUNT(f, f->lost++);
}

static int setup(void **state) {
	struct fixture *f = calloc(1, sizeof(*f));
	struct err err;
	int socks[2];
	pthread_mutex_init(&f->lock, NULL);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, socks), 0);
	f->helper = socks[0];
	f->dir_fd = -1;
	f->privc = privc_new(socks[1], on_lost, f, &err);
	assert_non_null(f->privc);
	*state = f;
	return 0;
}

static int teardown(void **state) {
	struct fixture *f = *state;
	privc_free(f->privc);
	if (f->helper >= 0)
		close(f->helper);
	if (f->dir_fd >= 0)
		close(f->dir_fd);
	pthread_mutex_destroy(&f->lock);
	free(f);
	return 0;
}

/* --- playing the helper --- */

static uint64_t receive(struct fixture *f, enum priv_type type) {
	struct priv_header *h;
	const void *body;
	int fd;
	struct err err;
	if (priv_receive(f->helper, f->buffer, &h, &body, &fd, &err))
		fail_msg("%s", err.msg);
	assert_int_equal(h->type, type);
	return h->seq;
}

static void answer(struct fixture *f, enum priv_type type, uint64_t seq, const void *body, int fd) {
	struct err err;
	if (priv_send(f->helper, type, seq, body, fd, &err))
		fail_msg("%s", err.msg);
}

static void answer_op(struct fixture *f, uint64_t seq, enum rc rc, bool more, int power_state) {
	struct priv_drive_reply r = {.rc = (int32_t)rc,
		.verb = PRIV_VERB_POWER_GET,
		.more = more,
		.power_state = power_state};
	answer(f, PRIV_DRIVE_REPLY, seq, &r, -1);
}

static void hang_up(struct fixture *f) {
	close(f->helper);
	f->helper = -1;
}

/* --- hearing --- */

struct wish {
	struct fixture *f;
	const int *count;
	int wanted;
};

static bool has_count(void *arg) {
	const struct wish *w = arg;
	bool has;
	COUNT(w->f, has = *w->count >= w->wanted);
	return has;
}

static void wait_for(struct fixture *f, const int *count, int wanted) {
	struct wish w = {f, count, wanted};
	assert_true(eventually(has_count, &w));
}

static void on_found(void *arg, const struct priv_found *found) {
	struct fixture *f = arg;
	assert_string_equal(found->drive.name, "nvme0");
	COUNT(f, f->found++);
}

static void on_done(void *arg, enum rc rc, const struct priv_enumerated *e unused_arg) {
	struct fixture *f = arg;
	COUNT(f, (f->rc = rc, f->done++));
}

static void on_reply(void *arg, const struct priv_drive_reply *r, bool late) {
	struct fixture *f = arg;
	COUNT(f, {
		f->rc = (enum rc)r->rc;
		f->power_state = r->power_state;
		f->late += late;
		f->replies++;
	});
}

static void on_started(void *arg, const struct priv_run_started *s, int dir_fd) {
	struct fixture *f = arg;
	COUNT(f, {
		f->rc = (enum rc)s->rc;
		f->dir_fd = dir_fd;
		f->started++;
	});
}

static void on_exited(void *arg, const struct priv_run_exited *x) {
	struct fixture *f = arg;
	COUNT(f, {
		f->exit_code = x->exit_code;
		f->exited++;
	});
}

static uint64_t ask(struct fixture *f) {
	const struct priv_drive_op op = {
		.drive = {.kind = DRIVE_NVME, .name = "nvme0", .serial = "S"},
		.verb = PRIV_VERB_POWER_GET};
	struct err err;
	assert_int_equal(privc_drive_op(f->privc, &op, on_reply, f, &err), RC_OK);
	return receive(f, PRIV_DRIVE_OP);
}

/* --- tests --- */

static void answers_find_their_questions(void **state) {
	struct fixture *f = *state;
	const uint64_t first = ask(f), second = ask(f);
	assert_true(second > first);
	answer_op(f, second, RC_OK, false, 2);
	wait_for(f, &f->replies, 1);
	assert_int_equal(f->power_state, 2);
	answer_op(f, first, RC_OK, false, 1);
	wait_for(f, &f->replies, 2);
	assert_int_equal(f->power_state, 1);
	/* Said twice, or to nobody: dropped. */
	answer_op(f, first, RC_OK, false, 1);
	answer_op(f, 4711, RC_OK, false, 1);
	answer_op(f, ask(f), RC_OK, false, 0);
	wait_for(f, &f->replies, 3);
	assert_int_equal(f->replies, 3);
}

static void enumeration_tells_each_and_the_end(void **state) {
	struct fixture *f = *state;
	struct priv_found found = {.drive = {.kind = DRIVE_NVME, .name = "nvme0", .serial = "S"}};
	struct priv_enumerated e = {.count = 2};
	struct err err;
	assert_int_equal(privc_enumerate(f->privc, on_found, on_done, f, &err), RC_OK);
	const uint64_t seq = receive(f, PRIV_ENUMERATE);
	answer(f, PRIV_FOUND, seq, &found, -1);
	answer(f, PRIV_FOUND, seq, &found, -1);
	answer(f, PRIV_ENUMERATED, seq, &e, -1);
	wait_for(f, &f->done, 1);
	assert_int_equal(f->found, 2);
	assert_int_equal(f->rc, RC_OK);
}

static void a_late_answer_comes_when_more_was_said(void **state) {
	struct fixture *f = *state;
	const uint64_t seq = ask(f);
	answer_op(f, seq, RC_TIMEOUT, true, -1);
	wait_for(f, &f->replies, 1);
	assert_int_equal(f->late, 0);
	answer_op(f, seq, RC_OK, false, 3);
	wait_for(f, &f->late, 1);
	assert_int_equal(f->replies, 2);
	assert_int_equal(f->power_state, 3);
	answer_op(f, ask(f), RC_TIMEOUT, false, -1);
	wait_for(f, &f->replies, 3);
	hang_up(f);
	wait_for(f, &f->lost, 1);
	assert_int_equal(f->replies, 3);
}

static uint64_t start_run(struct fixture *f) {
	struct priv_run_start *r = calloc(1, sizeof(*r));
	struct err err;
	str_copy(r->run_id, sizeof(r->run_id), RUN);
	r->workload = *workload_builtin("rand-read-4k");
	r->runtime_s = 1;
	r->target_count = 1;
	r->targets[0] = (struct priv_run_target){
		.drive = {.kind = DRIVE_NVME, .name = "nvme0", .serial = "S"},
		.drive_id = "AAAAAAAAAAAAAAAAAAAAAA",
		.nsid = 1,
		.numa_node = -1};
	assert_int_equal(privc_run_start(f->privc, r, on_started, on_exited, f, &err), RC_OK);
	const uint64_t seq = receive(f, PRIV_RUN_START);
	const struct priv_run_started s = {.pid = 42, .start_ticks = 1};
	auto_close int dir = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	answer(f, PRIV_RUN_STARTED, seq, &s, dir);
	wait_for(f, &f->started, 1);
	assert_true(f->dir_fd >= 0);
	free(r);
	return seq;
}

static void a_run_starts_and_ends_under_one_number(void **state) {
	struct fixture *f = *state;
	const struct priv_run_exited x = {.run_id = RUN, .exit_code = 3};
	answer(f, PRIV_RUN_EXITED, start_run(f), &x, -1);
	wait_for(f, &f->exited, 1);
	assert_int_equal(f->exit_code, 3);
}

static void a_fio_left_behind_is_counted_until_it_dies(void **state) {
	struct fixture *f = *state;
	struct priv_run_exited x = {.run_id = RUN, .asked = 1, .abandoned = 1};
	const uint64_t seq = start_run(f);
	answer(f, PRIV_RUN_EXITED, seq, &x, -1);
	wait_for(f, &f->exited, 1);
	assert_int_equal(metric_get(METRIC_FIO_ABANDONED), 1);
	x.abandoned = 0;
	x.exit_code = 137;
	answer(f, PRIV_RUN_EXITED, seq, &x, -1);
	/* Nobody hears of it again. */
	answer_op(f, ask(f), RC_OK, false, 0);
	wait_for(f, &f->replies, 1);
	assert_int_equal(metric_get(METRIC_FIO_ABANDONED), 0);
	assert_int_equal(f->exited, 1);
}

static void when_the_helper_is_lost_all_are_answered_first(void **state) {
	struct fixture *f = *state;
	struct err err;
	ask(f);
	answer_op(f, ask(f), RC_TIMEOUT, true, -1);
	wait_for(f, &f->replies, 1);
	assert_int_equal(privc_enumerate(f->privc, on_found, on_done, f, &err), RC_OK);
	hang_up(f);
	wait_for(f, &f->lost, 1);
	assert_int_equal(f->replies, 3);
	assert_int_equal(f->late, 1);
	assert_int_equal(f->done, 1);
	assert_int_equal(f->rc, RC_UNAVAILABLE);
	assert_int_equal(privc_enumerate(f->privc, on_found, on_done, f, &err), RC_UNAVAILABLE);
	bool was_alive;
	assert_int_equal(privc_reap(f->privc, 1, 1, &was_alive, &err), RC_UNAVAILABLE);
}

static void ending_it_oneself_is_no_loss(void **state) {
	struct fixture *f = *state;
	ask(f);
	privc_free(f->privc);
	f->privc = NULL;
	assert_int_equal(f->replies, 1);
	assert_int_equal(f->lost, 0);
}

static void nonsense_is_a_broken_helper(void **state) {
	struct fixture *f = *state;
	assert_int_equal(send(f->helper, "nonsense", 8, 0), 8);
	wait_for(f, &f->lost, 1);
}

static void *play_reaper(void *arg) {
	struct fixture *f = arg;
	const struct priv_reaped r = {.was_alive = 1};
	answer(f, PRIV_REAPED, receive(f, PRIV_REAP), &r, -1);
	return NULL;
}

static void reaping_waits_for_the_answer(void **state) {
	struct fixture *f = *state;
	pthread_t t;
	bool was_alive = false;
	struct err err;
	assert_int_equal(thread_start(&t, "helper", play_reaper, f, &err), RC_OK);
	assert_int_equal(privc_reap(f->privc, 42, 1, &was_alive, &err), RC_OK);
	assert_true(was_alive);
	pthread_join(t, NULL);
}

static void *play_opener(void *arg) {
	struct fixture *f = arg;
	const struct priv_opened good = {.rc = RC_OK};
	const struct priv_opened bad = {.rc = RC_FORBIDDEN, .msg = "no"};
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	answer(f, PRIV_OPENED, receive(f, PRIV_OPEN), &good, fd);
	close(fd);
	answer(f, PRIV_OPENED, receive(f, PRIV_OPEN), &bad, -1);
	receive(f, PRIV_OPEN);
	close(f->helper);
	f->helper = -1;
	return NULL;
}

static void opening_waits_for_the_file(void **state) {
	struct fixture *f = *state;
	pthread_t t;
	struct err err;
	int fd = -1;
	assert_int_equal(thread_start(&t, "helper", play_opener, f, &err), RC_OK);
	assert_int_equal(privc_open(f->privc, PRIV_FILE_TLS_KEY, &fd, &err), RC_OK);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(privc_open(f->privc, PRIV_FILE_TLS_KEY, &fd, &err), RC_FORBIDDEN);
	assert_string_equal(err.msg, "no");
	assert_int_equal(privc_open(f->privc, PRIV_FILE_TLS_KEY, &fd, &err), RC_UNAVAILABLE);
	pthread_join(t, NULL);
}

static void on_hint(void *arg, const struct priv_hint *hint) {
	struct fixture *f = arg;
	assert_string_equal(hint->name, "nvme3");
	COUNT(f, f->hints += 1 + hint->reset);
}

static void hints_come_unasked(void **state) {
	struct fixture *f = *state;
	struct priv_hint hint = {.name = "nvme3"};
	privc_watch(f->privc, on_hint, f);
	answer(f, PRIV_HINT, 0, &hint, -1);
	wait_for(f, &f->hints, 1);
	hint.reset = 1;
	answer(f, PRIV_HINT, 0, &hint, -1);
	wait_for(f, &f->hints, 3);
	assert_false(privc_lost(f->privc));
}

static void *swallow(void *arg) {
	const struct fixture *f = arg;
	char byte[PRIV_MESSAGE_MAX];
	while (recv(f->helper, byte, sizeof(byte), 0) > 0)
		;
	return NULL;
}

static void pending_requests_are_limited(void **state) {
	struct fixture *f = *state;
	const struct priv_drive_op op = {
		.drive = {.kind = DRIVE_NVME, .name = "nvme0", .serial = "S"},
		.verb = PRIV_VERB_SMART};
	pthread_t t;
	struct err err;
	assert_int_equal(thread_start(&t, "helper", swallow, f, &err), RC_OK);
	for (int i = 0; i < PRIVC_MAX_PENDING; i++)
		assert_int_equal(privc_drive_op(f->privc, &op, on_reply, f, &err), RC_OK);
	assert_int_equal(privc_drive_op(f->privc, &op, on_reply, f, &err), RC_FULL);
	privc_free(f->privc);
	f->privc = NULL;
	pthread_join(t, NULL);
	assert_int_equal(f->replies, PRIVC_MAX_PENDING);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
	const struct CMUnitTest tests[] = {
		TEST(answers_find_their_questions),
		TEST(enumeration_tells_each_and_the_end),
		TEST(a_late_answer_comes_when_more_was_said),
		TEST(a_run_starts_and_ends_under_one_number),
		TEST(a_fio_left_behind_is_counted_until_it_dies),
		TEST(when_the_helper_is_lost_all_are_answered_first),
		TEST(ending_it_oneself_is_no_loss),
		TEST(nonsense_is_a_broken_helper),
		TEST(reaping_waits_for_the_answer),
		TEST(opening_waits_for_the_file),
		TEST(hints_come_unasked),
		TEST(pending_requests_are_limited),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
