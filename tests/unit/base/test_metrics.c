#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <pthread.h>

#include "base/metrics.h"

static void counters_and_gauges(void **state) {
	(void)state;
	int64_t before = metric_get(METRIC_EVENTS);
	metric_add(METRIC_EVENTS, 2);
	metric_add(METRIC_EVENTS, 3);
	assert_int_equal(metric_get(METRIC_EVENTS), before + 5);
	metric_set(METRIC_HTTP_STREAMS, 9);
	metric_add(METRIC_HTTP_STREAMS, -1);
	assert_int_equal(metric_get(METRIC_HTTP_STREAMS), 8);
}

static void rendering_follows_the_text_format(void **state) {
	(void)state;
	struct buf b;
	buf_init(&b, 65536);
	metric_set(METRIC_DB_CONTROL_WAL, 4096);
	metrics_render(&b);
	assert_int_equal(buf_status(&b, NULL), RC_OK);
	assert_non_null(strstr(buf_str(&b),
		"# HELP drivewatt_db_control_wal_bytes Size of control.db's WAL\n"
		"# TYPE drivewatt_db_control_wal_bytes gauge\n"
		"drivewatt_db_control_wal_bytes 4096\n"));
	size_t lines = 0;
	for (const char *p = buf_str(&b); (p = strchr(p, '\n')); p++)
		lines++;
	assert_int_equal(lines, METRIC_COUNT_ * 3);
	buf_release(&b);
}

static void *add_many(void *arg) {
	(void)arg;
	for (int i = 0; i < 10000; i++)
		metric_add(METRIC_SAMPLES_IN, 1);
	return NULL;
}

static void threads_lose_nothing(void **state) {
	(void)state;
	pthread_t threads[4];
	metric_set(METRIC_SAMPLES_IN, 0);
	for (size_t i = 0; i < array_len(threads); i++)
		assert_int_equal(pthread_create(&threads[i], NULL, add_many, NULL), 0);
	for (size_t i = 0; i < array_len(threads); i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(metric_get(METRIC_SAMPLES_IN), 40000);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counters_and_gauges),
		cmocka_unit_test(rendering_follows_the_text_format),
		cmocka_unit_test(threads_lose_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
