#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#include "base/clock.h"
#include "base/metrics.h"
#include "tests/support/http_live.h"

static struct live live;

static int set_up(void **state) {
	(void)state;
	struct http_config config = live_config();
	config.workers = 2;
	config.queue = 4;
	live_start(&live, &config);
	return 0;
}

static int tear_down(void **state) {
	(void)state;
	if (live.server)
		live_stop(&live);
	return 0;
}

static void nap(void) {
	nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

static struct http_request *wait_pending(void) {
	struct http_request *q = NULL;
	for (int i = 0; i < 20000 && !(q = atomic_exchange(&live.pending, NULL)); i++)
		nap();
	assert_non_null(q);
	return q;
}

static void send_as(struct raw_conn *c, const char *target, const char *authorization) {
	char text[256];
	assert_true(raw_open(c, live.url));
	snprintf(text, sizeof(text), "GET %s HTTP/1.1\r\nHost: t\r\n%s\r\n", target, authorization);
	assert_true(raw_sends(c, text));
}

static void send_get(struct raw_conn *c, const char *target) {
	send_as(c, target, AS_READER);
}

static void expect(struct raw_conn *c, int status) {
	struct raw_answer a = raw_read(c, false);
	assert_int_equal(a.status, status);
	raw_answer_free(&a);
	raw_close(c);
}

static void resumed_later(void **state) {
	(void)state;
	struct raw_conn c;
	send_get(&c, "/t/pending");
	struct http_request *q = wait_pending();
	unsigned freed = live.freed;
	http_resume(q, live_finish);
	struct raw_answer a = raw_read(&c, false);
	assert_string_equal(a.body, "{\"pending\":true}");
	raw_answer_free(&a);
	raw_close(&c);
	live_wait(&live.freed, freed + 1);
}

static void resumed_before_the_handler_returns(void **state) {
	(void)state;
	struct raw_conn c;
	assert_true(raw_open(&c, live.url));
	for (int i = 0; i < 50; i++) {
		struct raw_answer a = raw_request(&c, "GET", "/t/early", AS_READER, NULL);
		assert_string_equal(a.body, "{\"pending\":true}");
		raw_answer_free(&a);
	}
	raw_close(&c);
}

static void *race(void *arg) {
	intptr_t good = 0;
	struct raw_conn c;
	(void)arg;
	for (int i = 0; i < 200 && raw_open(&c, live.url); i++) {
		struct raw_answer a = raw_request(&c, "GET", "/t/race", AS_READER, NULL);
		good += a.status == 200 && !strcmp(a.body, "{\"pending\":true}");
		raw_answer_free(&a);
		raw_close(&c);
	}
	return (void *)good;
}

static void resumed_while_the_handler_returns(void **state) {
	(void)state;
	pthread_t threads[3];
	for (int i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, race, NULL), 0);
	for (int i = 0; i < 3; i++) {
		void *good;
		pthread_join(threads[i], &good);
		assert_int_equal((intptr_t)good, 200);
	}
}

/* Two workers, and more requests waiting for drives than that: the rest goes on. */
static void pending_holds_no_worker(void **state) {
	(void)state;
	struct raw_conn waiting[4];
	struct http_request *q[4];
	for (int i = 0; i < 4; i++) {
		send_get(&waiting[i], "/t/pending");
		q[i] = wait_pending();
	}
	struct raw_answer a = raw_once(live.url, "GET", "/t/things/x", AS_READER, NULL);
	assert_int_equal(a.status, 200);
	raw_answer_free(&a);
	for (int i = 0; i < 4; i++)
		http_resume(q[i], live_finish);
	for (int i = 0; i < 4; i++)
		expect(&waiting[i], 200);
}

static void wait_refused(int64_t n) {
	for (int i = 0; i < 20000 && metric_get(METRIC_HTTP_REFUSED) < n; i++)
		nap();
	assert_true(metric_get(METRIC_HTTP_REFUSED) >= n);
}

/* Two workers and a queue of four: of twelve requests at least five are refused at once (both
 * loops may let one in at the same moment), while the loops still answer what they can. */
static void full_queue_refuses(void **state) {
	(void)state;
	enum { COUNT = 12 };
	struct raw_conn c[COUNT];
	struct raw_answer a = raw_once(live.url, "GET", "/t/things", AS_READER, NULL);
	raw_answer_free(&a);
	int64_t refused = metric_get(METRIC_HTTP_REFUSED);
	for (int i = 0; i < COUNT; i++) {
		send_get(&c[i], "/t/block");
		if (i < 2)
			live_wait(&live.blocked, (unsigned)i + 1);
	}
	wait_refused(refused + 5);
	a = raw_once(live.url, "GET", "/t/things", AS_READER, NULL);
	assert_int_equal(a.status, 200);
	raw_answer_free(&a);
	live.release = true;
	int answered = 0;
	for (int i = 0; i < COUNT; i++) {
		char value[512];
		a = raw_read(&c[i], false);
		assert_true(a.status == 200 || a.status == 503);
		if (a.status == 503)
			assert_string_equal(raw_header(&a, "Retry-After", value), "1");
		answered += a.status == 200;
		raw_answer_free(&a);
		raw_close(&c[i]);
	}
	assert_true(answered >= 6 && answered <= 7);
}

/* One thread for histories and a queue of four: who wants anything else goes on. */
static void histories_wait_in_nobodys_way(void **state) {
	(void)state;
	enum { COUNT = 8 };
	struct raw_conn c[COUNT];
	const int64_t refused = metric_get(METRIC_HTTP_REFUSED);
	for (int i = 0; i < COUNT; i++)
		send_get(&c[i], "/t/history");
	wait_refused(refused + 1);
	for (int i = 0; i < 10; i++) {
		struct raw_answer a = raw_once(live.url, "GET", "/t/things/x", AS_READER, NULL);
		assert_int_equal(a.status, 200);
		raw_answer_free(&a);
	}
	assert_int_equal(live.blocked, 1);
	live.release = true;
	for (int i = 0; i < COUNT; i++) {
		struct raw_answer a = raw_read(&c[i], false);
		assert_true(a.status == 200 || a.status == 503);
		raw_answer_free(&a);
		raw_close(&c[i]);
	}
}

/* Two threads for passwords and a queue of four: of eight at least one is refused at once, and
 * whoever shows something else is answered meanwhile, known or not. */
static void passwords_wait_in_nobodys_way(void **state) {
	(void)state;
	enum { COUNT = 8 };
	struct raw_conn c[COUNT];
	const int64_t refused = metric_get(METRIC_HTTP_REFUSED);
	live_accounts_slow(true);
	for (int i = 0; i < COUNT; i++)
		send_as(&c[i], "/t/things/x", AS_SLOW);
	wait_refused(refused + 1);
	for (int i = 0; i < 10; i++) {
		struct raw_answer a = raw_once(
			live.url, "GET", "/t/things/x", i % 2 ? AS_READER : AS_OPERATOR, NULL);
		assert_int_equal(a.status, 200);
		raw_answer_free(&a);
	}
	live_accounts_slow(false);
	int answered = 0;
	for (int i = 0; i < COUNT; i++) {
		struct raw_answer a = raw_read(&c[i], false);
		assert_true(a.status == 200 || a.status == 503);
		answered += a.status == 200;
		raw_answer_free(&a);
		raw_close(&c[i]);
	}
	assert_true(answered >= 4 && answered <= 7);
}

/* A connection that goes away while its request waits is found out afterwards. */
static void client_leaves_while_pending(void **state) {
	(void)state;
	struct raw_conn c;
	send_get(&c, "/t/pending");
	struct http_request *q = wait_pending();
	unsigned freed = live.freed;
	raw_close(&c);
	http_resume(q, live_finish);
	live_wait(&live.freed, freed + 1);
}

static void *stop(void *arg) {
	http_server_stop(live.server, *(int64_t *)arg);
	return NULL;
}

static void wait_not_ready(void) {
	for (int i = 0; i < 20000 && http_server_ready(live.server); i++)
		nap();
	assert_false(http_server_ready(live.server));
}

static void stop_lets_requests_end(void **state) {
	(void)state;
	struct raw_conn c, idle;
	pthread_t t;
	int64_t deadline_ms = 20000;
	assert_true(http_server_ready(live.server));
	assert_true(raw_open(&idle, live.url));
	send_get(&c, "/t/pending");
	struct http_request *q = wait_pending();
	pthread_create(&t, NULL, stop, &deadline_ms);
	wait_not_ready();
	struct raw_answer late = raw_request(&idle, "GET", "/t/hello", "", NULL);
	assert_int_equal(late.status, 503);
	raw_answer_free(&late);
	raw_close(&idle);
	http_resume(q, live_finish);
	struct raw_answer a = raw_read(&c, false);
	assert_int_equal(a.status, 200);
	char value[512];
	assert_string_equal(raw_header(&a, "Connection", value), "close");
	raw_answer_free(&a);
	raw_close(&c);
	pthread_join(t, NULL);
	assert_false(raw_open(&c, live.url));
}

/* The drive does not answer in time: the client is told, and the late answer finds memory. */
static void stop_does_not_wait_for_ever(void **state) {
	(void)state;
	struct raw_conn c;
	send_get(&c, "/t/pending");
	struct http_request *q = wait_pending();
	int64_t before_ms = clock_mono_ms();
	http_server_stop(live.server, 300);
	assert_true(clock_mono_ms() - before_ms < 10000);
	expect(&c, 503);
	live_stop(&live);
	live.server = NULL;
	assert_int_equal(live.freed, 0);
	http_resume(q, live_finish);
	assert_int_equal(live.freed, 1);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(resumed_later, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			resumed_before_the_handler_returns, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			resumed_while_the_handler_returns, set_up, tear_down),
		cmocka_unit_test_setup_teardown(pending_holds_no_worker, set_up, tear_down),
		cmocka_unit_test_setup_teardown(full_queue_refuses, set_up, tear_down),
		cmocka_unit_test_setup_teardown(histories_wait_in_nobodys_way, set_up, tear_down),
		cmocka_unit_test_setup_teardown(passwords_wait_in_nobodys_way, set_up, tear_down),
		cmocka_unit_test_setup_teardown(client_leaves_while_pending, set_up, tear_down),
		cmocka_unit_test_setup_teardown(stop_lets_requests_end, set_up, tear_down),
		cmocka_unit_test_setup_teardown(stop_does_not_wait_for_ever, set_up, tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
