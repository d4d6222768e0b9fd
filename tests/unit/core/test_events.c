/* Events: in id order, each once, whoever writes them and when. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/thread.h"
#include "core/events.h"
#include "db/events.h"
#include "tests/support/eventually.h"
#include "tests/support/temp_db.h"

#define WRITERS 4
#define PER_WRITER 100
#define MAX_SEEN 4096

struct seen {
	pthread_mutex_t lock;
	size_t count, wanted;
	int64_t ids[MAX_SEEN];
};

struct fixture {
	struct temp_db *store;
	struct events *events;
	struct seen seen;
};

static void on_event(void *arg, const struct event *e) {
	struct seen *s = arg;
	pthread_mutex_lock(&s->lock);
	if (s->count < MAX_SEEN)
		s->ids[s->count++] = e->id;
	pthread_mutex_unlock(&s->lock);
}

static bool has_all(void *arg) {
	struct seen *s = arg;
	pthread_mutex_lock(&s->lock);
	const bool all = s->count >= s->wanted;
	pthread_mutex_unlock(&s->lock);
	return all;
}

static void wait_for(struct fixture *f, size_t count) {
	f->seen.wanted = count;
	assert_true(eventually(has_all, &f->seen));
}

static void begin(struct fixture *f) {
	struct err err;
	f->events = events_new(f->store->db, &err);
	assert_non_null(f->events);
	assert_int_equal(events_subscribe(f->events, on_event, &f->seen, &err), RC_OK);
}

static int setup(void **state) {
	struct fixture *f = calloc(1, sizeof(*f));
	pthread_mutex_init(&f->seen.lock, NULL);
	f->store = temp_db_new(DB_CONTROL);
	begin(f);
	*state = f;
	return 0;
}

static int teardown(void **state) {
	struct fixture *f = *state;
	events_free(f->events);
	temp_db_free(f->store);
	pthread_mutex_destroy(&f->seen.lock);
	free(f);
	return 0;
}

static void *write_many(void *arg) {
	struct fixture *f = arg;
	for (int i = 0; i < PER_WRITER; i++)
		events_record(f->events, EVENT_SERVICE, &actor_system, "/system", "{\"n\":1}");
	return NULL;
}

static void concurrent_writers_are_heard_in_order_and_once(void **state) {
	struct fixture *f = *state;
	pthread_t threads[WRITERS];
	for (int i = 0; i < WRITERS; i++)
		assert_int_equal(thread_start(&threads[i], "writer", write_many, f, NULL), RC_OK);
	for (int i = 0; i < WRITERS; i++)
		pthread_join(threads[i], NULL);
	wait_for(f, WRITERS * PER_WRITER);
	assert_int_equal(f->seen.count, WRITERS * PER_WRITER);
	for (size_t i = 1; i < f->seen.count; i++)
		assert_true(f->seen.ids[i] > f->seen.ids[i - 1]);
}

static void an_event_is_as_durable_as_its_change(void **state) {
	struct fixture *f = *state;
	struct err err;
	struct db_conn *c = temp_db_begin(f->store);
	assert_int_equal(
		events_add(f->events, c, EVENT_SERVICE, &actor_system, "/a", NULL, &err), RC_OK);
	temp_db_abort(f->store);
	c = temp_db_begin(f->store);
	assert_int_equal(
		events_add(f->events, c, EVENT_SERVICE, &actor_system, "/b", NULL, &err), RC_OK);
	temp_db_commit(f->store);
	events_publish(f->events);
	wait_for(f, 1);
	events_record(f->events, EVENT_SERVICE, &actor_system, "/c", NULL);
	wait_for(f, 2);
	assert_int_equal(f->seen.count, 2);
}

static void a_restart_does_not_repeat_what_was_said(void **state) {
	struct fixture *f = *state;
	events_record(f->events, EVENT_SERVICE, &actor_system, "/a", NULL);
	wait_for(f, 1);
	const int64_t first = f->seen.ids[0];
	events_free(f->events);
	f->seen.count = 0;
	begin(f);
	events_record(f->events, EVENT_SERVICE, &actor_system, "/b", NULL);
	wait_for(f, 1);
	assert_int_equal(f->seen.count, 1);
	assert_true(f->seen.ids[0] > first);
}

static void a_failing_store_loses_the_event_but_nothing_else(void **state) {
	struct fixture *f = *state;
	db_fail_nth(f->store->db, 1, RC_NO_SPACE);
	events_record(f->events, EVENT_SERVICE, &actor_system, "/lost", NULL);
	db_fail_nth(f->store->db, 0, RC_OK);
	events_record(f->events, EVENT_SERVICE, &actor_system, "/kept", NULL);
	wait_for(f, 1);
	assert_int_equal(f->seen.count, 1);
}

static void subscribers_are_limited(void **state) {
	struct fixture *f = *state;
	struct err err;
	for (int i = 1; i < EVENTS_MAX_SUBSCRIBERS; i++)
		assert_int_equal(events_subscribe(f->events, on_event, &f->seen, &err), RC_OK);
	assert_int_equal(events_subscribe(f->events, on_event, &f->seen, &err), RC_FULL);
}

static bool keep_entry(void *arg, const struct audit_entry *a) {
	struct audit_entry *out = arg;
	*out = *a;
	out->detail = NULL;
	return false;
}

static void an_audit_row_names_who_and_how(void **state) {
	struct fixture *f = *state;
	struct err err;
	struct audit_entry a = {0};
	const struct actor who = {.name = "eve", .address = "127.0.0.1", .request_id = "r1"};
	struct db_conn *c = temp_db_begin(f->store);
	assert_int_equal(
		events_audit(c, &who, "drive.set_labels", "/drives/x", "ok", NULL, &err), RC_OK);
	assert_int_equal(db_audit_list(c, INT64_MAX, 1, keep_entry, &a, &err), RC_OK);
	assert_string_equal(a.actor, "eve");
	assert_string_equal(a.address, "127.0.0.1");
	assert_string_equal(a.request_id, "r1");
	assert_string_equal(a.action, "drive.set_labels");
	assert_string_equal(a.outcome, "ok");
	temp_db_abort(f->store);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
	const struct CMUnitTest tests[] = {
		TEST(concurrent_writers_are_heard_in_order_and_once),
		TEST(an_event_is_as_durable_as_its_change),
		TEST(a_restart_does_not_repeat_what_was_said),
		TEST(a_failing_store_loses_the_event_but_nothing_else),
		TEST(subscribers_are_limited),
		TEST(an_audit_row_names_who_and_how),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
