#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

#include "base/latch.h"
#include "base/pool.h"

#define DEADLINE_MS 20000

/* A job that says it began and waits until it may end. */
struct gate {
	struct latch *began;
	struct latch *may_end;
	atomic_int ran;
};

static void gate_init(struct gate *g) {
	g->began = latch_new(0);
	g->may_end = latch_new(0);
	g->ran = 0;
}

static void gate_release(struct gate *g) {
	latch_unref(g->began);
	latch_unref(g->may_end);
}

static void pass_gate(void *arg) {
	struct gate *g = arg;
	latch_open(g->began, NULL);
	latch_wait(g->may_end, DEADLINE_MS, NULL);
	g->ran++;
}

static void count(void *arg) {
	atomic_fetch_add((atomic_int *)arg, 1);
}

static void full_queue_refuses(void **state) {
	(void)state;
	struct gate g;
	atomic_int counted = 0;
	gate_init(&g);
	struct pool *p = pool_new("test", 1, 2, NULL);
	assert_true(pool_submit(p, pass_gate, &g));
	assert_true(latch_wait(g.began, DEADLINE_MS, NULL));
	assert_true(pool_submit(p, count, &counted));
	assert_true(pool_submit(p, count, &counted));
	assert_false(pool_submit(p, count, &counted));
	assert_int_equal(pool_queued(p), 2);
	latch_open(g.may_end, NULL);
	pool_free(p);
	assert_int_equal(counted, 2);
	assert_int_equal(g.ran, 1);
	gate_release(&g);
}

static void close_refuses_but_ends_what_is_queued(void **state) {
	(void)state;
	struct gate g;
	atomic_int counted = 0;
	gate_init(&g);
	struct pool *p = pool_new("test", 1, 8, NULL);
	assert_true(pool_submit(p, pass_gate, &g));
	assert_true(pool_submit(p, count, &counted));
	pool_close(p);
	assert_false(pool_submit(p, count, &counted));
	latch_open(g.may_end, NULL);
	pool_free(p);
	assert_int_equal(counted, 1);
	gate_release(&g);
}

/* Two gates on two workers: the second begins although the first has not ended. */
static void workers_run_side_by_side(void **state) {
	(void)state;
	struct gate a, b;
	gate_init(&a);
	gate_init(&b);
	struct pool *p = pool_new("test", 2, 8, NULL);
	assert_true(pool_submit(p, pass_gate, &a));
	assert_true(pool_submit(p, pass_gate, &b));
	assert_true(latch_wait(a.began, DEADLINE_MS, NULL));
	assert_true(latch_wait(b.began, DEADLINE_MS, NULL));
	latch_open(a.may_end, NULL);
	latch_open(b.may_end, NULL);
	pool_free(p);
	assert_int_equal(a.ran + b.ran, 2);
	gate_release(&a);
	gate_release(&b);
}

static void look_at_thread(void *arg) {
	struct latch *seen = arg;
	sigset_t blocked;
	pthread_sigmask(SIG_SETMASK, NULL, &blocked);
	bool term_blocked = sigismember(&blocked, SIGTERM) == 1;
	latch_open(seen, &term_blocked);
}

static void workers_take_no_signals(void **state) {
	(void)state;
	struct latch *seen = latch_new(sizeof(bool));
	struct pool *p = pool_new("test", 1, 1, NULL);
	bool term_blocked = false;
	assert_true(pool_submit(p, look_at_thread, seen));
	assert_true(latch_wait(seen, DEADLINE_MS, &term_blocked));
	assert_true(term_blocked);
	pool_free(p);
	latch_unref(seen);
	pool_free(NULL);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(full_queue_refuses),
		cmocka_unit_test(close_refuses_but_ends_what_is_queued),
		cmocka_unit_test(workers_run_side_by_side),
		cmocka_unit_test(workers_take_no_signals),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
