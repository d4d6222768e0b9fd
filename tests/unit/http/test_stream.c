#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
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
	config.idle_timeout_s = 2;
	live_start(&live, &config);
	return 0;
}

static int tear_down(void **state) {
	(void)state;
	live_stop(&live);
	assert_int_equal(metric_get(METRIC_HTTP_STREAMS), 0);
	return 0;
}

static void publish(const char *text) {
	http_channel_publish(live.channel, text, strlen(text));
}

static void wait_streams(int64_t n) {
	for (int i = 0; i < 20000 && metric_get(METRIC_HTTP_STREAMS) != n; i++)
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	assert_int_equal(metric_get(METRIC_HTTP_STREAMS), n);
}

/* Opens a stream and reads its head and first comment. */
static void subscribe(struct raw_conn *c, const char *target) {
	char text[256];
	assert_true(raw_open(c, live.url));
	snprintf(text, sizeof(text), "GET %s HTTP/1.1\r\nHost: t\r\n" AS_READER "\r\n", target);
	assert_true(raw_sends(c, text));
	assert_true(raw_wait_for(c, "\r\n\r\n", RAW_TIMEOUT_MS));
}

static void events_arrive(void **state) {
	(void)state;
	struct raw_conn c[3];
	for (int i = 0; i < 3; i++) {
		subscribe(&c[i], "/t/events");
		assert_non_null(strstr(c[i].data, "HTTP/1.1 200"));
		assert_non_null(strstr(c[i].data, "Content-Type: text/event-stream"));
		assert_true(raw_wait_for(&c[i], ":\n\n", RAW_TIMEOUT_MS));
	}
	wait_streams(3);
	publish("data: one\n\n");
	publish("data: two\n\n");
	for (int i = 0; i < 3; i++) {
		assert_true(raw_wait_for(&c[i], "data: one\n\n", RAW_TIMEOUT_MS));
		assert_true(raw_wait_for(&c[i], "data: two\n\n", RAW_TIMEOUT_MS));
		raw_close(&c[i]);
	}
	/* closed sockets are noticed by the next beat */
	wait_streams(0);
}

static void replay_comes_first_and_once(void **state) {
	(void)state;
	struct raw_conn c;
	subscribe(&c, "/t/events?replay");
	assert_true(raw_wait_for(&c, "id: 1\ndata: old\n\n", RAW_TIMEOUT_MS));
	http_channel_publish_id(live.channel, 1, "id: 1\ndata: again\n\n", 19);
	http_channel_publish_id(live.channel, 2, "id: 2\ndata: new\n\n", 17);
	assert_true(raw_wait_for(&c, "data: new", RAW_TIMEOUT_MS));
	assert_null(strstr(c.data, "again"));
	raw_close(&c);
}

static void silence_has_heartbeats(void **state) {
	(void)state;
	struct raw_conn c;
	subscribe(&c, "/t/events");
	for (int i = 0; i < 3; i++) {
		assert_true(raw_wait_for(&c, ":\n\n", RAW_TIMEOUT_MS));
		c.len = 0;
	}
	raw_close(&c);
}

static void a_stream_ends_with_its_readers_rights(void **state) {
	(void)state;
	struct raw_conn reader, other;
	char text[] = "GET /t/events HTTP/1.1\r\nHost: t\r\n" AS_OPERATOR "\r\n";
	subscribe(&reader, "/t/events");
	assert_true(raw_open(&other, live.url));
	assert_true(raw_sends(&other, text));
	wait_streams(2);
	live_accounts_revoke("reader");
	assert_true(raw_wait_for(&reader, "0\r\n\r\n", RAW_TIMEOUT_MS));
	wait_streams(1);
	publish("data: later\n\n");
	assert_true(raw_wait_for(&other, "data: later\n\n", RAW_TIMEOUT_MS));
	assert_null(strstr(reader.data, "later"));
	raw_close(&reader);
	raw_close(&other);
}

/* One that outlives the idle time-out, since heartbeats and events are life. */
static void stream_outlives_the_idle_timeout(void **state) {
	(void)state;
	struct raw_conn c;
	subscribe(&c, "/t/events");
	int64_t until_ms = clock_mono_ms() + 5000;
	while (clock_mono_ms() < until_ms) {
		c.len = 0;
		assert_true(raw_wait_for(&c, ":\n\n", RAW_TIMEOUT_MS));
	}
	publish("data: still\n\n");
	assert_true(raw_wait_for(&c, "data: still\n\n", RAW_TIMEOUT_MS));
	raw_close(&c);
}

/* Reads to the end of the connection; is text among the last bytes? */
static bool ends_with(struct raw_conn *c, const char *text) {
	const size_t kept = 1024;
	while (raw_fill(c, RAW_TIMEOUT_MS)) {
		if (c->len <= kept)
			continue;
		memmove(c->data, c->data + c->len - kept, kept);
		c->len = kept;
	}
	return memmem(c->data, c->len, text, strlen(text));
}

static void slow_reader_is_dropped(void **state) {
	(void)state;
	struct raw_conn slow;
	char big[32768];
	memset(big, 'x', sizeof(big));
	int64_t dropped = metric_get(METRIC_HTTP_STREAMS_DROPPED);
	subscribe(&slow, "/t/events");
	wait_streams(1);
	/* more than ring and socket buffers hold, while nobody reads; reading then ends it */
	for (int i = 0; i < 1000; i++)
		http_channel_publish(live.channel, big, sizeof(big));
	assert_true(ends_with(
		&slow, "event: dropped\ndata: {\"reason\":\"the reader is too slow\"}\n\n"));
	raw_close(&slow);
	wait_streams(0);
	assert_int_equal(metric_get(METRIC_HTTP_STREAMS_DROPPED), dropped + 1);
}

static void readers_are_limited(void **state) {
	(void)state;
	struct raw_conn c[8];
	for (int i = 0; i < 8; i++)
		subscribe(&c[i], "/t/events");
	struct raw_answer a = raw_once(live.url, "GET", "/t/events", AS_READER, NULL);
	assert_int_equal(a.status, 503);
	raw_answer_free(&a);
	raw_close(&c[0]);
	wait_streams(7);
	subscribe(&c[0], "/t/events");
	for (int i = 0; i < 8; i++)
		raw_close(&c[i]);
}

static void head_has_no_stream(void **state) {
	(void)state;
	struct raw_conn c;
	assert_true(raw_open(&c, live.url));
	struct raw_answer a = raw_request(&c, "HEAD", "/t/events", AS_READER, NULL);
	assert_int_equal(a.status, 200);
	raw_answer_free(&a);
	raw_close(&c);
	wait_streams(0);
}

static void stop_ends_streams(void **state) {
	(void)state;
	struct raw_conn c;
	subscribe(&c, "/t/events");
	wait_streams(1);
	int64_t before_ms = clock_mono_ms();
	http_server_stop(live.server, 20000);
	assert_true(clock_mono_ms() - before_ms < 10000);
	/* the last chunk, so that the client sees an end and no break */
	assert_true(raw_wait_for(&c, "\r\n0\r\n\r\n", RAW_TIMEOUT_MS));
	raw_close(&c);
}

static void a_replay_is_whole_or_refused(void **state) {
	(void)state;
	struct err err;
	char *text = malloc(HTTP_REPLAY_MAX_BYTES + 1);
	memset(text, 'x', HTTP_REPLAY_MAX_BYTES + 1);
	struct http_stream *s = http_stream_new(live.channel, &err);
	assert_int_equal(
		http_stream_replay(s, text, HTTP_REPLAY_MAX_BYTES + 1, 1, &err), RC_TOO_LARGE);
	assert_int_equal(http_stream_replay(s, text, HTTP_REPLAY_MAX_BYTES, 1, &err), RC_OK);
	http_stream_free(s);
	free(text);
}

static void *publish_many(void *arg) {
	(void)arg;
	for (int i = 0; i < 500; i++)
		publish("data: x\n\n");
	return NULL;
}

static void readers_come_and_go_while_others_publish(void **state) {
	(void)state;
	pthread_t threads[2];
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, publish_many, NULL), 0);
	for (int i = 0; i < 20; i++) {
		struct raw_conn c;
		subscribe(&c, "/t/events");
		raw_close(&c);
		wait_streams(0);
	}
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(events_arrive, set_up, tear_down),
		cmocka_unit_test_setup_teardown(replay_comes_first_and_once, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_replay_is_whole_or_refused, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			a_stream_ends_with_its_readers_rights, set_up, tear_down),
		cmocka_unit_test_setup_teardown(silence_has_heartbeats, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			stream_outlives_the_idle_timeout, set_up, tear_down),
		cmocka_unit_test_setup_teardown(slow_reader_is_dropped, set_up, tear_down),
		cmocka_unit_test_setup_teardown(readers_are_limited, set_up, tear_down),
		cmocka_unit_test_setup_teardown(head_has_no_stream, set_up, tear_down),
		cmocka_unit_test_setup_teardown(stop_ends_streams, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			readers_come_and_go_while_others_publish, set_up, tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
