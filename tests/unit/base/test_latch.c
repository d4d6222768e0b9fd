#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <pthread.h>

#include "base/clock.h"
#include "base/latch.h"
#include "base/thread.h"

struct answer {
	int code;
	char text[16];
};

static void open_latch_answers_at_once(void **state) {
	(void)state;
	struct latch *l = latch_new(sizeof(struct answer));
	struct answer in = {7, "seven"}, second = {8, "eight"}, out = {0};
	assert_false(latch_wait(l, 0, &out));
	latch_open(l, &in);
	latch_open(l, &second);
	assert_true(latch_wait(l, 0, &out));
	assert_int_equal(out.code, 7);
	assert_string_equal(out.text, "seven");
	assert_true(latch_wait(l, -1, &out));
	latch_unref(l);
	latch_unref(NULL);
}

static int64_t frozen(void) {
	return 1;
}

static void waiting_ends_at_the_deadline(void **state) {
	(void)state;
	struct latch *l = latch_new(sizeof(int));
	int out = 5;
	int64_t before = clock_mono_ms();
	clock_replace(frozen, frozen);
	assert_false(latch_wait(l, 30, &out));
	clock_replace(NULL, NULL);
	assert_true(clock_mono_ms() - before >= 29);
	assert_int_equal(out, 5);
	latch_unref(l);
}

struct late {
	struct latch *answer;  /* the answerer's reference */
	struct latch *gave_up; /* opened once the waiter is gone */
};

static void *answer_late(void *arg) {
	struct late *late = arg;
	int value = 1;
	latch_wait(late->gave_up, -1, NULL);
	latch_open(late->answer, &value);
	latch_unref(late->answer);
	return NULL;
}

/* The waiter gives up and drops its reference; the answer still finds memory. */
static void late_answer_finds_its_memory(void **state) {
	(void)state;
	struct latch *l = latch_new(sizeof(int));
	struct late late = {latch_ref(l), latch_new(0)};
	pthread_t thread;
	int out;
	assert_int_equal(thread_start(&thread, "late", answer_late, &late, NULL), RC_OK);
	assert_false(latch_wait(l, 1, &out));
	latch_unref(l);
	latch_open(late.gave_up, NULL);
	pthread_join(thread, NULL);
	latch_unref(late.gave_up);
}

static void *answer_now(void *arg) {
	int value = 42;
	latch_open(arg, &value);
	latch_unref(arg);
	return NULL;
}

static void answer_wakes_the_waiter(void **state) {
	(void)state;
	for (int i = 0; i < 200; i++) {
		struct latch *l = latch_new(sizeof(int));
		pthread_t thread;
		int out = 0;
		assert_int_equal(
			thread_start(&thread, "now", answer_now, latch_ref(l), NULL), RC_OK);
		assert_true(latch_wait(l, -1, &out));
		latch_unref(l);
		assert_int_equal(out, 42);
		pthread_join(thread, NULL);
	}
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(open_latch_answers_at_once),
		cmocka_unit_test(waiting_ends_at_the_deadline),
		cmocka_unit_test(late_answer_finds_its_memory),
		cmocka_unit_test(answer_wakes_the_waiter),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
