#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <pthread.h>

#include "base/clock.h"
#include "base/queue.h"
#include "base/thread.h"

static void first_in_first_out(void **state) {
	(void)state;
	int items[5];
	struct queue *q = queue_new(3);
	/* Several rounds, so that the ring wraps. */
	for (int round = 0; round < 5; round++) {
		for (int i = 0; i < 3; i++)
			assert_true(queue_try_push(q, &items[i]));
		assert_false(queue_try_push(q, &items[3]));
		assert_int_equal(queue_len(q), 3);
		assert_ptr_equal(queue_pop(q, 0), &items[0]);
		assert_true(queue_try_push(q, &items[4]));
		assert_ptr_equal(queue_pop(q, 0), &items[1]);
		assert_ptr_equal(queue_pop(q, 0), &items[2]);
		assert_ptr_equal(queue_pop(q, 0), &items[4]);
		assert_null(queue_pop(q, 0));
	}
	queue_free(q);
	queue_free(NULL);
}

static void zero_capacity_takes_nothing(void **state) {
	(void)state;
	int item;
	struct queue *q = queue_new(0);
	assert_false(queue_try_push(q, &item));
	assert_null(queue_pop(q, 0));
	queue_free(q);
}

static void absurd_capacity_is_refused(void **state) {
	(void)state;
	assert_null(queue_new(SIZE_MAX / 2));
}

static int64_t frozen(void) {
	return 1;
}

/* The deadline is on the kernel's clock: a replaced one that stands still does not hang it. */
static void pop_times_out(void **state) {
	(void)state;
	struct queue *q = queue_new(1);
	int64_t before = clock_mono_ms();
	clock_replace(frozen, frozen);
	assert_null(queue_pop(q, 30));
	clock_replace(NULL, NULL);
	assert_true(clock_mono_ms() - before >= 29);
	queue_free(q);
}

static void closing_keeps_what_is_queued(void **state) {
	(void)state;
	int item;
	struct queue *q = queue_new(2);
	assert_true(queue_try_push(q, &item));
	queue_close(q);
	assert_false(queue_try_push(q, &item));
	assert_ptr_equal(queue_pop(q, -1), &item);
	assert_null(queue_pop(q, -1));
	queue_free(q);
}

static void *pop_for_ever(void *arg) {
	return queue_pop(arg, -1);
}

static void closing_wakes_all_waiters(void **state) {
	(void)state;
	struct queue *q = queue_new(2);
	pthread_t threads[4];
	for (size_t i = 0; i < array_len(threads); i++)
		assert_int_equal(thread_start(&threads[i], "pop", pop_for_ever, q, NULL), RC_OK);
	queue_close(q);
	for (size_t i = 0; i < array_len(threads); i++) {
		void *item = q;
		pthread_join(threads[i], &item);
		assert_null(item);
	}
	queue_free(q);
}

#define PER_PRODUCER 2000

struct traffic {
	struct queue *q;
	int64_t sum; /* of what this consumer got */
};

static void *produce(void *arg) {
	struct traffic *t = arg;
	for (uintptr_t i = 1; i <= PER_PRODUCER; i++) {
		while (!queue_try_push(t->q, (void *)i))
			sched_yield();
	}
	return NULL;
}

static void *consume(void *arg) {
	struct traffic *t = arg;
	void *item;
	while ((item = queue_pop(t->q, -1)))
		t->sum += (int64_t)(uintptr_t)item;
	return NULL;
}

static void nothing_is_lost_between_threads(void **state) {
	(void)state;
	struct queue *q = queue_new(16);
	struct traffic traffic[2] = {{.q = q}, {.q = q}};
	pthread_t producers[2], consumers[2];
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(
			thread_start(&consumers[i], "consume", consume, &traffic[i], NULL), RC_OK);
		assert_int_equal(
			thread_start(&producers[i], "produce", produce, &traffic[i], NULL), RC_OK);
	}
	for (size_t i = 0; i < 2; i++)
		pthread_join(producers[i], NULL);
	queue_close(q);
	for (size_t i = 0; i < 2; i++)
		pthread_join(consumers[i], NULL);
	assert_int_equal(
		traffic[0].sum + traffic[1].sum, 2 * (PER_PRODUCER * (PER_PRODUCER + 1) / 2));
	queue_free(q);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(first_in_first_out),
		cmocka_unit_test(zero_capacity_takes_nothing),
		cmocka_unit_test(absurd_capacity_is_refused),
		cmocka_unit_test(pop_times_out),
		cmocka_unit_test(closing_keeps_what_is_queued),
		cmocka_unit_test(closing_wakes_all_waiters),
		cmocka_unit_test(nothing_is_lost_between_threads),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
