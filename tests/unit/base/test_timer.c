#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "base/latch.h"
#include "base/thread.h"
#include "base/timer.h"

#define DEADLINE_MS 20000
#define FAR_MS 3600000

static void open_latch(void *arg) {
	latch_open(arg, NULL);
}

static void fires_once_and_not_early(void **state) {
	(void)state;
	struct timers *t = timers_new(4, NULL);
	struct latch *fired = latch_new(0);
	int64_t before = clock_mono_ms();
	assert_true(timer_start(t, 20, 0, open_latch, fired) != 0);
	assert_true(latch_wait(fired, DEADLINE_MS, NULL));
	assert_true(clock_mono_ms() - before >= 20);
	timers_free(t);
	timers_free(NULL);
	latch_unref(fired);
}

struct order {
	pthread_mutex_t lock;
	int seen[8];
	size_t count;
	struct latch *all;
};

struct step {
	struct order *order;
	int number;
};

static void note(void *arg) {
	struct step *s = arg;
	pthread_mutex_lock(&s->order->lock);
	s->order->seen[s->order->count++] = s->number;
	bool last = s->order->count == array_len(s->order->seen);
	pthread_mutex_unlock(&s->order->lock);
	if (last)
		latch_open(s->order->all, NULL);
}

static _Atomic int64_t fake_ns;

static int64_t fake_mono(void) {
	return fake_ns;
}

static void nothing(void *arg) {
	(void)arg;
}

/* The clock stands still until all are started; then it jumps past all of them. */
static void fire_in_order_of_time(void **state) {
	(void)state;
	static const int delays[8] = {700, 100, 800, 300, 600, 200, 500, 400};
	struct order order = {.lock = PTHREAD_MUTEX_INITIALIZER, .all = latch_new(0)};
	struct step steps[8];
	fake_ns = 1000;
	clock_replace(NULL, fake_mono);
	struct timers *t = timers_new(16, NULL);
	timer_id cancelled = timer_start(t, 50000, 0, nothing, NULL);
	for (size_t i = 0; i < array_len(steps); i++) {
		steps[i] = (struct step){&order, delays[i]};
		assert_true(timer_start(t, delays[i] * 1000, 0, note, &steps[i]) != 0);
	}
	timer_cancel(t, cancelled);
	assert_int_equal(order.count, 0);
	fake_ns = INT64_C(1000000) * FAR_MS;
	/* A timer that is due before all others makes the thread look at the clock. */
	assert_true(timer_start(t, -FAR_MS, 0, nothing, NULL) != 0);
	assert_true(latch_wait(order.all, DEADLINE_MS, NULL));
	for (size_t i = 0; i < array_len(steps); i++)
		assert_int_equal(order.seen[i], ((int)i + 1) * 100);
	timers_free(t);
	clock_replace(NULL, NULL);
	latch_unref(order.all);
}

static void full_table_refuses_and_recovers(void **state) {
	(void)state;
	struct timers *t = timers_new(3, NULL);
	timer_id ids[3];
	for (size_t i = 0; i < array_len(ids); i++) {
		ids[i] = timer_start(t, FAR_MS, 0, nothing, NULL);
		assert_true(ids[i] != 0);
	}
	assert_true(timer_start(t, FAR_MS, 0, nothing, NULL) == 0);
	timer_cancel(t, ids[1]);
	timer_id again = timer_start(t, FAR_MS, 0, nothing, NULL);
	assert_true(again != 0 && again != ids[1]);
	/* The old id of a slot with a new tenant means nothing. */
	timer_cancel(t, ids[1]);
	timer_cancel(t, 0);
	assert_true(timer_start(t, FAR_MS, 0, nothing, NULL) == 0);
	timers_free(t);
}

static void no_room_for_timers_is_an_error(void **state) {
	(void)state;
	struct err err = {0};
	assert_null(timers_new(0, &err));
	assert_int_equal(err.rc, RC_NOMEM);
}

struct periodic {
	struct timers *timers;
	_Atomic timer_id id;
	struct latch *started; /* id is set */
	atomic_int count;
	struct latch *third;
};

static void count_to_three(void *arg) {
	struct periodic *p = arg;
	latch_wait(p->started, DEADLINE_MS, NULL);
	if (++p->count < 3)
		return;
	/* From within its own callback: must not wait for itself. */
	timer_cancel(p->timers, p->id);
	latch_open(p->third, NULL);
}

static void periodic_runs_until_it_cancels_itself(void **state) {
	(void)state;
	struct periodic p = {.started = latch_new(0), .third = latch_new(0)};
	struct latch *later = latch_new(0);
	p.timers = timers_new(4, NULL);
	p.id = timer_start(p.timers, 1, 1, count_to_three, &p);
	latch_open(p.started, NULL);
	assert_true(latch_wait(p.third, DEADLINE_MS, NULL));
	/* Had it gone on, it would have run before this one. */
	assert_true(timer_start(p.timers, 20, 0, open_latch, later) != 0);
	assert_true(latch_wait(later, DEADLINE_MS, NULL));
	assert_int_equal(p.count, 3);
	timers_free(p.timers);
	latch_unref(p.started);
	latch_unref(p.third);
	latch_unref(later);
}

struct slow {
	struct latch *began;
	struct latch *may_end;
	atomic_bool ended;
};

static void run_slowly(void *arg) {
	struct slow *s = arg;
	latch_open(s->began, NULL);
	latch_wait(s->may_end, 50, NULL);
	s->ended = true;
}

static void cancel_waits_for_a_running_callback(void **state) {
	(void)state;
	struct slow s = {.began = latch_new(0), .may_end = latch_new(0)};
	struct timers *t = timers_new(4, NULL);
	timer_id id = timer_start(t, 0, 0, run_slowly, &s);
	assert_true(latch_wait(s.began, DEADLINE_MS, NULL));
	timer_cancel(t, id);
	assert_true(s.ended);
	timers_free(t);
	latch_unref(s.began);
	latch_unref(s.may_end);
}

static void cancelled_never_runs(void **state) {
	(void)state;
	struct timers *t = timers_new(64, NULL);
	for (int i = 0; i < 500; i++) {
		struct latch *fired = latch_new(0);
		timer_id id = timer_start(t, i % 2, 0, open_latch, fired);
		timer_cancel(t, id);
		/* Freed at once: a callback that still ran would touch it. */
		latch_unref(fired);
	}
	timers_free(t);
}

static void free_drops_what_is_pending(void **state) {
	(void)state;
	struct timers *t = timers_new(4, NULL);
	struct latch *fired = latch_new(0);
	assert_true(timer_start(t, FAR_MS, 0, open_latch, fired) != 0);
	timers_free(t);
	assert_false(latch_wait(fired, 0, NULL));
	latch_unref(fired);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fires_once_and_not_early),
		cmocka_unit_test(fire_in_order_of_time),
		cmocka_unit_test(full_table_refuses_and_recovers),
		cmocka_unit_test(no_room_for_timers_is_an_error),
		cmocka_unit_test(periodic_runs_until_it_cancels_itself),
		cmocka_unit_test(cancel_waits_for_a_running_callback),
		cmocka_unit_test(cancelled_never_runs),
		cmocka_unit_test(free_drops_what_is_pending),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
