#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <cmocka.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/metrics.h"
#include "tests/support/http_live.h"

static struct live live;

static void start(unsigned max_connections, unsigned max_per_address, unsigned idle_timeout_s) {
	struct http_config config = live_config();
	config.max_connections = max_connections;
	config.max_per_address = max_per_address;
	config.idle_timeout_s = config.stranger_timeout_s = idle_timeout_s;
	live_start(&live, &config);
}

static int tear_down(void **state) {
	(void)state;
	live_stop(&live);
	return 0;
}

static void allow_descriptors(rlim_t n) {
	struct rlimit limit;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	if (limit.rlim_cur >= n)
		return;
	limit.rlim_cur = n < limit.rlim_max ? n : limit.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	assert_true(limit.rlim_cur >= n);
}

static void get(struct raw_conn *c) {
	struct raw_answer a = raw_request(c, "GET", "/t/hello", "", NULL);
	assert_int_equal(a.status, 200);
	raw_answer_free(&a);
}

static void get_known(struct raw_conn *c) {
	struct raw_answer a = raw_request(c, "GET", "/t/things/x", AS_READER, NULL);
	assert_int_equal(a.status, 200);
	raw_answer_free(&a);
}

/* Keep-alive connections at and around the counts where the library's epoll loop stalls: each is
 * used again while all others are open. */
static void many_keep_alive_connections(void **state) {
	(void)state;
	static const unsigned counts[] = {127, 128, 129, 256, 512, 1024};
	start(1100, 0, 30);
	allow_descriptors(2 * 1024 + 200);
	struct raw_conn *c = calloc(1024, sizeof(*c));
	unsigned open = 0;
	for (size_t i = 0; i < array_len(counts); i++) {
		for (; open < counts[i]; open++) {
			assert_true(raw_open(&c[open], live.url));
			get_known(&c[open]);
		}
		int64_t before_ms = clock_mono_ms();
		for (unsigned k = 0; k < open; k++)
			get(&c[k]);
		/* a stall costs a whole time-out of 30 s */
		assert_true(clock_mono_ms() - before_ms < 20000);
	}
	for (unsigned k = 0; k < open; k++)
		raw_close(&c[k]);
	free(c);
}

static void connections_are_limited(void **state) {
	(void)state;
	start(3, 0, 30);
	struct raw_conn c[4];
	int64_t refused = metric_get(METRIC_HTTP_REFUSED);
	for (int i = 0; i < 3; i++) {
		assert_true(raw_open(&c[i], live.url));
		get_known(&c[i]);
	}
	assert_true(raw_open(&c[3], live.url));
	assert_true(raw_ends(&c[3], RAW_TIMEOUT_MS));
	raw_close(&c[3]);
	assert_int_equal(metric_get(METRIC_HTTP_REFUSED), refused + 1);
	get(&c[0]);
	for (int i = 0; i < 3; i++)
		raw_close(&c[i]);
}

static void connections_of_an_address_are_limited(void **state) {
	(void)state;
	start(100, 2, 30);
	struct raw_conn c[3];
	for (int i = 0; i < 2; i++) {
		assert_true(raw_open(&c[i], live.url));
		get_known(&c[i]);
	}
	assert_true(raw_open(&c[2], live.url));
	assert_true(raw_ends(&c[2], RAW_TIMEOUT_MS));
	for (int i = 0; i < 3; i++)
		raw_close(&c[i]);
}

static void the_address_of_a_trusted_proxy_is_not_limited(void **state) {
	(void)state;
	struct http_config config = live_config();
	config.max_per_address = 2;
	config.trusted_proxies[0] = "192.0.2.1";
	config.trusted_proxies[1] = "127.0.0.1";
	config.trusted_proxy_count = 2;
	live_start(&live, &config);
	struct raw_conn c[5];
	for (int i = 0; i < 5; i++) {
		assert_true(raw_open(&c[i], live.url));
		get_known(&c[i]);
	}
	for (int i = 0; i < 5; i++)
		raw_close(&c[i]);
}

static void assert_address(const char *headers, const char *address) {
	char want[80];
	snprintf(want, sizeof(want), "\"address\":\"%s\"", address);
	struct raw_answer a = raw_once(live.url, "GET", "/t/things/x", headers, NULL);
	assert_int_equal(a.status, 200);
	if (!strstr(a.body, want))
		fail_msg("%s: %s", headers, a.body);
	raw_answer_free(&a);
}

#define FORWARDED "X-Forwarded-For: "

static void a_trusted_proxy_names_the_client(void **state) {
	(void)state;
	struct http_config config = live_config();
	config.trusted_proxies[0] = "127.0.0.1";
	config.trusted_proxy_count = 1;
	live_start(&live, &config);
	assert_address(AS_READER, "127.0.0.1");
	assert_address(AS_READER FORWARDED "192.0.2.7\r\n", "192.0.2.7");
	assert_address(AS_READER FORWARDED "10.0.0.1, 2001:db8::7 \r\n", "2001:db8::7");
	assert_address(AS_READER FORWARDED "10.0.0.1\r\n" FORWARDED "10.0.0.2\r\n", "10.0.0.2");
	assert_address(AS_READER FORWARDED "10.0.0.1, unknown\r\n", "127.0.0.1");
	assert_address(AS_READER FORWARDED "\r\n", "127.0.0.1");
}

static void nobody_else_names_the_client(void **state) {
	(void)state;
	struct http_config config = live_config();
	config.trusted_proxies[0] = "127.0.0.2";
	config.trusted_proxy_count = 1;
	live_start(&live, &config);
	assert_address(AS_READER FORWARDED "192.0.2.7\r\n", "127.0.0.1");
}

/* Half of the places are for strangers; there, the oldest goes when another comes. */
static void strangers_make_room_for_each_other(void **state) {
	(void)state;
	start(8, 0, 30);
	struct raw_conn c[20], known;
	assert_true(raw_open(&known, live.url));
	get_known(&known);
	for (int i = 0; i < 20; i++) {
		assert_true(raw_open(&c[i], live.url));
		get(&c[i]);
	}
	for (int i = 0; i < 16; i++)
		assert_true(raw_ends(&c[i], RAW_TIMEOUT_MS));
	get(&c[19]);
	get_known(&known);
	for (int i = 0; i < 20; i++)
		raw_close(&c[i]);
	raw_close(&known);
}

/* What is under way is not cut off for somebody new. */
static void a_stranger_that_waits_for_us_stays(void **state) {
	(void)state;
	start(2, 0, 30);
	struct raw_conn waits, other;
	live_accounts_slow(true);
	assert_true(raw_open(&waits, live.url));
	assert_true(raw_sends(&waits, "GET /t/things/x HTTP/1.1\r\nHost: t\r\n" AS_SLOW "\r\n"));
	live_wait_for_slow(1);
	assert_true(raw_open(&other, live.url));
	assert_true(raw_ends(&other, RAW_TIMEOUT_MS));
	live_accounts_slow(false);
	struct raw_answer a = raw_read(&waits, false);
	assert_int_equal(a.status, 200);
	raw_answer_free(&a);
	raw_close(&waits);
	raw_close(&other);
}

static void strangers_have_less_time(void **state) {
	(void)state;
	struct http_config config = live_config();
	config.stranger_timeout_s = 1;
	live_start(&live, &config);
	struct raw_conn silent, used, known;
	assert_true(raw_open(&silent, live.url));
	assert_true(raw_open(&used, live.url));
	assert_true(raw_open(&known, live.url));
	get(&used);
	get_known(&known);
	assert_true(raw_ends(&silent, RAW_TIMEOUT_MS));
	assert_true(raw_ends(&used, RAW_TIMEOUT_MS));
	get_known(&known);
	raw_close(&silent);
	raw_close(&used);
	raw_close(&known);
}

static void idle_connections_are_closed(void **state) {
	(void)state;
	start(100, 0, 1);
	struct raw_conn fresh, used;
	assert_true(raw_open(&fresh, live.url));
	assert_true(raw_open(&used, live.url));
	get_known(&used);
	assert_true(raw_ends(&fresh, RAW_TIMEOUT_MS));
	assert_true(raw_ends(&used, RAW_TIMEOUT_MS));
	raw_close(&fresh);
	raw_close(&used);
}

/* Sends a byte of text now and then: never idle, and cut off all the same. */
static void dribble(const char *head, char byte) {
	struct raw_conn c;
	assert_true(raw_open(&c, live.url));
	assert_true(raw_sends(&c, head));
	int64_t until_ms = clock_mono_ms() + 20000;
	bool ended = false;
	while (!ended && clock_mono_ms() < until_ms)
		ended = !raw_send(&c, &byte, 1) || raw_ends(&c, 200);
	assert_true(ended);
	raw_close(&c);
}

static void slow_senders_are_cut_off(void **state) {
	(void)state;
	start(100, 0, 1);
	dribble("GET /t/hello HTTP/1.1\r\nHost: t\r\nX: ", 'x');
	dribble("", 'G');
	dribble("POST /t/things HTTP/1.1\r\nHost: t\r\n" AS_ADMIN SENDS_JSON
		"Content-Length: 1000\r\n\r\n",
		' ');
}

static void pipelined_requests_are_answered_in_order(void **state) {
	(void)state;
	start(100, 0, 30);
	struct raw_conn c;
	char text[4096] = "";
	size_t len = 0;
	for (int i = 0; i < 10; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len,
			"GET /t/things/%d HTTP/1.1\r\nHost: t\r\n" AS_READER "\r\n", i);
	assert_true(raw_open(&c, live.url));
	assert_true(raw_send(&c, text, len));
	for (int i = 0; i < 10; i++) {
		struct raw_answer a = raw_read(&c, false);
		snprintf(text, sizeof(text), "\"id\":\"%d\"", i);
		assert_non_null(strstr(a.body, text));
		raw_answer_free(&a);
	}
	raw_close(&c);
}

static void headers_are_limited(void **state) {
	(void)state;
	start(100, 0, 30);
	char headers[7000] = "X-Long: ";
	memset(headers + 8, 'x', 6000);
	memcpy(headers + 6008, "\r\n", 3);
	struct raw_conn c;
	struct raw_answer a = raw_once(live.url, "GET", "/t/hello", headers, NULL);
	assert_int_equal(a.status, 200);
	raw_answer_free(&a);
	assert_true(raw_open(&c, live.url));
	raw_sends(&c, "GET /t/hello HTTP/1.1\r\nHost: t\r\n");
	for (int i = 0; i < 4; i++)
		raw_sends(&c, headers);
	raw_sends(&c, "\r\n");
	a = raw_read(&c, false);
	assert_true(a.status == 431 || a.status == 413);
	raw_answer_free(&a);
	raw_close(&c);
}

static void noise_is_survived(void **state) {
	(void)state;
	static const char *const noise[] = {"\r\n\r\n\r\n", "\x16\x03\x01\x02\x00\x01",
		"GET\r\n\r\n", "GET /t/hello HTTP/9.9\r\n\r\n", "GET /t/hello HTTP/1.1\r\n\r\n",
		"GET  HTTP/1.1\r\nHost: t\r\n\r\n", "GET * HTTP/1.1\r\nHost: t\r\n\r\n"};
	start(100, 0, 30);
	for (size_t i = 0; i < array_len(noise); i++) {
		struct raw_conn c;
		assert_true(raw_open(&c, live.url));
		raw_sends(&c, noise[i]);
		raw_close(&c);
		assert_true(raw_open(&c, live.url));
		get(&c);
		raw_close(&c);
	}
}

static void two_listeners(void **state) {
	(void)state;
	struct http_config config = live_config();
	config.listen[1] = "[::1]:0";
	config.listen_count = 2;
	live_start(&live, &config);
	assert_null(http_server_url(live.server, 2));
	struct raw_answer a =
		raw_once(http_server_url(live.server, 1), "GET", "/t/things/x", AS_READER, NULL);
	assert_int_equal(a.status, 200);
	assert_non_null(strstr(a.body, "\"address\":\"::1\""));
	raw_answer_free(&a);
}

static enum rc start_fails(const struct http_config *config, struct err *err) {
	struct http_server *s = http_server_new(config, NULL, err);
	assert_non_null(s);
	enum rc rc = http_server_start(s, err);
	assert_false(http_server_ready(s) && rc);
	http_server_free(s);
	return rc;
}

static void plaintext_stays_on_loopback(void **state) {
	(void)state;
	start(100, 0, 30);
	struct err err;
	struct http_config config = live_config();
	config.listen[0] = "0.0.0.0:0";
	assert_int_equal(start_fails(&config, &err), RC_FORBIDDEN);
	config.listen[0] = "[::]:0";
	assert_int_equal(start_fails(&config, &err), RC_FORBIDDEN);
	config.listen[0] = "nowhere";
	assert_int_equal(start_fails(&config, &err), RC_INVALID);
	assert_string_equal(err.field, "listen");
	config.listen[0] = strchr(live.url, '/') + 2;
	assert_int_equal(start_fails(&config, &err), RC_CONFLICT);
	config.listen[0] = "127.0.0.1:0";
	config.tls_cert_pem = config.tls_key_pem = "not PEM";
	assert_int_equal(start_fails(&config, &err), RC_INVALID);
}

static void trees_are_checked(void **state) {
	(void)state;
	start(100, 0, 30);
	struct err err;
	struct http_tree tree = {"/t", NULL, 0, NULL, NULL};
	assert_int_equal(http_server_add_tree(live.server, &tree, &err), RC_INVALID);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(many_keep_alive_connections, tear_down),
		cmocka_unit_test_teardown(connections_are_limited, tear_down),
		cmocka_unit_test_teardown(connections_of_an_address_are_limited, tear_down),
		cmocka_unit_test_teardown(the_address_of_a_trusted_proxy_is_not_limited, tear_down),
		cmocka_unit_test_teardown(a_trusted_proxy_names_the_client, tear_down),
		cmocka_unit_test_teardown(nobody_else_names_the_client, tear_down),
		cmocka_unit_test_teardown(strangers_make_room_for_each_other, tear_down),
		cmocka_unit_test_teardown(a_stranger_that_waits_for_us_stays, tear_down),
		cmocka_unit_test_teardown(strangers_have_less_time, tear_down),
		cmocka_unit_test_teardown(idle_connections_are_closed, tear_down),
		cmocka_unit_test_teardown(slow_senders_are_cut_off, tear_down),
		cmocka_unit_test_teardown(pipelined_requests_are_answered_in_order, tear_down),
		cmocka_unit_test_teardown(headers_are_limited, tear_down),
		cmocka_unit_test_teardown(noise_is_survived, tear_down),
		cmocka_unit_test_teardown(two_listeners, tear_down),
		cmocka_unit_test_teardown(plaintext_stays_on_loopback, tear_down),
		cmocka_unit_test_teardown(trees_are_checked, tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
