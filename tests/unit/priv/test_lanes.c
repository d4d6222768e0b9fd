#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "base/clock.h"
#include "base/thread.h"
#include "priv/lanes.h"

#define WAIT_MS 20000

/* --- an op that waits until it is let go ------------------------------------------------------ */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed;

struct probe {
	struct lane_op op;
	bool held; /* run waits while this is set */
	bool running, finished, finished_late, overdue, begun, released;
};

static void set(bool *flag, bool value) {
	pthread_mutex_lock(&mutex);
	*flag = value;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&mutex);
}

static bool get(const bool *flag) {
	bool value;

	pthread_mutex_lock(&mutex);
	value = *flag;
	pthread_mutex_unlock(&mutex);
	return value;
}

static void await(const bool *flag, bool value) {
	struct timespec deadline = thread_deadline(WAIT_MS);

	pthread_mutex_lock(&mutex);
	while (*flag != value)
		assert_true(cond_wait_until(&changed, &mutex, &deadline) || *flag == value);
	pthread_mutex_unlock(&mutex);
}

/* In lanes' threads, where an assertion would not be caught. */
static void wait_until_let_go(const struct probe *p) {
	struct timespec deadline = thread_deadline(WAIT_MS);

	pthread_mutex_lock(&mutex);
	while (p->held && cond_wait_until(&changed, &mutex, &deadline))
		;
	pthread_mutex_unlock(&mutex);
}

static void probe_run(struct lane_op *op) {
	struct probe *p = (struct probe *)op;

	set(&p->running, true);
	wait_until_let_go(p);
}

static void probe_finish(struct lane_op *op, bool late) {
	struct probe *p = (struct probe *)op;

	set(&p->finished_late, late);
	set(&p->finished, true);
}

static void probe_overdue(struct lane_op *op, bool begun) {
	struct probe *p = (struct probe *)op;

	set(&p->begun, begun);
	set(&p->overdue, true);
}

static void probe_release(struct lane_op *op) {
	set(&((struct probe *)op)->released, true);
}

static const struct lane_op_kind probe_kind = {
	.run = probe_run,
	.finish = probe_finish,
	.overdue = probe_overdue,
	.release = probe_release,
};

#define HELD \
	{ .op.kind = &probe_kind, .held = true }
#define FREE \
	{ .op.kind = &probe_kind }

/* --- a clock that the test moves -------------------------------------------------------------- */

static int64_t now_ns;

static int64_t fake_mono_ns(void) {
	return __atomic_load_n(&now_ns, __ATOMIC_SEQ_CST);
}

static void advance_ms(int64_t ms) {
	__atomic_add_fetch(&now_ns, ms * 1000000, __ATOMIC_SEQ_CST);
}

static struct lanes *lanes;

static int open_lanes(void **state) {
	(void)state;
	clock_replace(NULL, fake_mono_ns);
	cond_init(&changed);
	lanes = lanes_new(2, 1000, NULL);
	return lanes ? 0 : -1;
}

static int close_lanes(void **state) {
	(void)state;
	assert_true(lanes_free(lanes, WAIT_MS));
	clock_replace(NULL, NULL);
	return 0;
}

static enum rc submit(const char *lane, struct probe *p) {
	return lanes_submit(lanes, lane, &p->op, NULL);
}

/* --- what lanes promise ----------------------------------------------------------------------- */

static void answers_in_time(void **state) {
	struct probe p = FREE;

	(void)state;
	assert_int_equal(submit("nvme0", &p), RC_OK);
	await(&p.released, true);
	assert_true(get(&p.finished));
	assert_false(get(&p.finished_late));
	assert_int_equal(lanes_tick(lanes), -1);
	assert_false(get(&p.overdue));
}

static void a_hung_drive_is_told_once_and_again_when_it_answers(void **state) {
	struct probe hung = HELD;

	(void)state;
	assert_int_equal(submit("nvme0", &hung), RC_OK);
	await(&hung.running, true);
	assert_int_equal(lanes_tick(lanes), 1000);
	advance_ms(999);
	assert_int_equal(lanes_tick(lanes), 1);
	assert_false(get(&hung.overdue));
	advance_ms(1);
	assert_int_equal(lanes_tick(lanes), -1);
	assert_true(get(&hung.overdue));
	assert_true(get(&hung.begun));
	assert_false(get(&hung.finished));
	set(&hung.overdue, false);
	advance_ms(5000);
	lanes_tick(lanes);
	assert_false(get(&hung.overdue));
	set(&hung.held, false);
	await(&hung.released, true);
	assert_true(get(&hung.finished_late));
}

static void what_waits_behind_it_is_dropped_unsent(void **state) {
	struct probe hung = HELD, behind = FREE, later = FREE;

	(void)state;
	assert_int_equal(submit("nvme0", &hung), RC_OK);
	await(&hung.running, true);
	advance_ms(400);
	assert_int_equal(submit("nvme0", &behind), RC_OK);
	advance_ms(600);
	assert_int_equal(lanes_tick(lanes), 400);
	advance_ms(400);
	lanes_tick(lanes);
	assert_true(get(&behind.overdue));
	assert_false(get(&behind.begun));
	assert_true(get(&behind.released));
	assert_false(get(&behind.running));
	assert_int_equal(submit("nvme0", &later), RC_OK);
	set(&hung.held, false);
	await(&later.released, true);
	assert_false(get(&later.finished_late));
	assert_false(get(&behind.running));
	await(&hung.released, true);
}

static void another_lane_is_not_held_up(void **state) {
	struct probe hung = HELD, other = FREE;

	(void)state;
	assert_int_equal(submit("nvme0", &hung), RC_OK);
	assert_int_equal(submit("nvme1", &other), RC_OK);
	await(&other.released, true);
	assert_false(get(&hung.finished));
	set(&hung.held, false);
	await(&hung.released, true);
}

static void queues_and_threads_are_bounded(void **state) {
	struct probe hung[2] = {HELD, HELD}, third = FREE;
	struct probe queued[LANE_QUEUE_MAX + 1] = {0};

	(void)state;
	for (size_t i = 0; i < array_len(queued); i++)
		queued[i].op.kind = &probe_kind;
	assert_int_equal(submit("nvme0", &hung[0]), RC_OK);
	assert_int_equal(submit("nvme1", &hung[1]), RC_OK);
	await(&hung[0].running, true);
	assert_int_equal(submit("nvme2", &third), RC_FULL);
	for (size_t i = 0; i < LANE_QUEUE_MAX; i++)
		assert_int_equal(submit("nvme0", &queued[i]), RC_OK);
	assert_int_equal(submit("nvme0", &queued[LANE_QUEUE_MAX]), RC_FULL);
	set(&hung[0].held, false);
	set(&hung[1].held, false);
	await(&queued[LANE_QUEUE_MAX - 1].released, true);
	await(&hung[1].released, true);
}

/* A thread that ended has given its place back. */
static void places_come_back(void **state) {
	char name[16];

	(void)state;
	for (int i = 0; i < 200; i++) {
		struct probe p = FREE;
		struct timespec deadline = thread_deadline(WAIT_MS);
		enum rc rc = RC_FULL;

		snprintf(name, sizeof(name), "nvme%d", i);
		while (rc == RC_FULL) {
			struct timespec now = thread_deadline(0);

			rc = submit(name, &p);
			assert_true(now.tv_sec <= deadline.tv_sec);
		}
		assert_int_equal(rc, RC_OK);
		await(&p.released, true);
	}
}

static void freeing_drops_what_waits_and_leaves_what_hangs(void **state) {
	struct probe hung = HELD, behind = FREE;
	struct lanes *own;

	(void)state;
	own = lanes_new(1, 1000, NULL);
	assert_int_equal(lanes_submit(own, "nvme0", &hung.op, NULL), RC_OK);
	await(&hung.running, true);
	assert_int_equal(lanes_submit(own, "nvme0", &behind.op, NULL), RC_OK);
	assert_false(lanes_free(own, 0));
	assert_true(get(&behind.released));
	assert_false(get(&behind.running));
	set(&hung.held, false);
	await(&hung.released, true);
	assert_true(lanes_free(own, WAIT_MS));
	assert_true(lanes_free(NULL, 0));
}

static void a_senseless_number_of_lanes_is_refused(void **state) {
	(void)state;
	assert_null(lanes_new(0, 1000, NULL));
	assert_null(lanes_new(LANES_MAX + 1, 1000, NULL));
}

#define ON_LANES(test) cmocka_unit_test_setup_teardown(test, open_lanes, close_lanes)

int main(void) {
	const struct CMUnitTest tests[] = {
		ON_LANES(answers_in_time),
		ON_LANES(a_hung_drive_is_told_once_and_again_when_it_answers),
		ON_LANES(what_waits_behind_it_is_dropped_unsent),
		ON_LANES(another_lane_is_not_held_up),
		ON_LANES(queues_and_threads_are_bounded),
		ON_LANES(places_come_back),
		ON_LANES(freeing_drops_what_waits_and_leaves_what_hangs),
		cmocka_unit_test(a_senseless_number_of_lanes_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
