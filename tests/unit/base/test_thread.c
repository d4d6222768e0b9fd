#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/thread.h"

static int64_t ms_until(struct timespec t) {
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (t.tv_sec - now.tv_sec) * 1000 + (t.tv_nsec - now.tv_nsec) / 1000000;
}

static void deadlines_are_well_formed(void **state) {
	(void)state;
	static const int64_t timeouts_ms[] = {0, 1, 999, 1000, 1999, 60000};
	for (size_t i = 0; i < array_len(timeouts_ms); i++) {
		struct timespec t = thread_deadline(timeouts_ms[i]);
		assert_true(t.tv_nsec >= 0 && t.tv_nsec < 1000000000);
		int64_t left = ms_until(t);
		assert_true(left <= timeouts_ms[i] && left > timeouts_ms[i] - 10000);
	}
}

static void never_is_far_away(void **state) {
	(void)state;
	const int64_t thousand_years_ms = INT64_C(31536000000) * 1000;
	assert_true(ms_until(thread_deadline(-1)) > thousand_years_ms);
	assert_true(ms_until(thread_deadline(INT64_MAX)) > thousand_years_ms);
}

static void *give_back(void *arg) {
	return arg;
}

static void thread_runs_and_joins(void **state) {
	(void)state;
	pthread_t thread;
	int here;
	void *result = NULL;
	assert_int_equal(thread_start(&thread, "test", give_back, &here, NULL), RC_OK);
	pthread_join(thread, &result);
	assert_ptr_equal(result, &here);
}

static void starting_leaves_the_callers_signals_alone(void **state) {
	(void)state;
	sigset_t before, after;
	pthread_t thread;
	pthread_sigmask(SIG_SETMASK, NULL, &before);
	assert_int_equal(thread_start(&thread, "test", give_back, NULL, NULL), RC_OK);
	pthread_sigmask(SIG_SETMASK, NULL, &after);
	pthread_join(thread, NULL);
	for (int sig = 1; sig < 32; sig++)
		assert_int_equal(sigismember(&before, sig), sigismember(&after, sig));
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(deadlines_are_well_formed),
		cmocka_unit_test(never_is_far_away),
		cmocka_unit_test(thread_runs_and_joins),
		cmocka_unit_test(starting_leaves_the_callers_signals_alone),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
