/* Writers and readers at once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "db/events.h"
#include "tests/support/temp_db.h"

#define WRITERS 3
#define READERS 6 /* more than there are connections */
#define CHANGES 60

struct shared {
	struct db *db;
	atomic_int writers_left;
	atomic_int failures;
};

/* Reads the count of events, inserts one and writes the new count: lost updates would show. */
static enum rc change(struct db *db) {
	struct db_conn *c;
	struct event e = {.type = EVENT_SERVICE};
	char count[24] = "0";
	enum rc rc = db_write_begin(db, &c, NULL);
	if (rc != RC_OK)
		return rc;
	rc = db_meta_get(c, "count", count, sizeof(count), NULL);
	if (rc == RC_NOT_FOUND)
		rc = RC_OK;
	if (rc == RC_OK)
		rc = db_event_insert(c, &e, NULL);
	snprintf(count, sizeof(count), "%ld", strtol(count, NULL, 10) + 1);
	if (rc == RC_OK)
		rc = db_meta_set(c, "count", count, NULL);
	if (rc == RC_OK)
		return db_write_commit(c, NULL);
	db_write_abort(c);
	return rc;
}

static void *write_on(void *arg) {
	struct shared *s = arg;
	for (int i = 0; i < CHANGES; i++) {
		if (change(s->db) != RC_OK)
			atomic_fetch_add(&s->failures, 1);
	}
	atomic_fetch_sub(&s->writers_left, 1);
	return NULL;
}

/* Count and events are written together: a reader never sees one without the other. */
static bool read_once(struct db *db, long *seen) {
	struct db_conn *c;
	char count[24] = "0";
	int64_t first, last = 0;
	if (db_read_begin(db, &c, NULL) != RC_OK)
		return false;
	const enum rc rc = db_meta_get(c, "count", count, sizeof(count), NULL);
	const bool good = (rc == RC_OK || rc == RC_NOT_FOUND) &&
		db_event_range(c, &first, &last, NULL) == RC_OK &&
		last == strtol(count, NULL, 10) && last >= *seen;
	db_read_end(c);
	*seen = (long)last;
	return good;
}

static void *read_on(void *arg) {
	struct shared *s = arg;
	long seen = 0;
	while (atomic_load(&s->writers_left) > 0) {
		struct db_status status;
		if (!read_once(s->db, &seen))
			atomic_fetch_add(&s->failures, 1);
		db_status_get(s->db, &status);
		db_checkpoint(s->db);
	}
	return NULL;
}

static void changes_are_neither_lost_nor_seen_half(void **state) {
	struct temp_db *t = *state;
	struct shared s = {.db = t->db, .writers_left = WRITERS};
	pthread_t threads[WRITERS + READERS];
	struct db_status status;
	for (int i = 0; i < WRITERS + READERS; i++)
		assert_int_equal(
			pthread_create(&threads[i], NULL, i < WRITERS ? write_on : read_on, &s), 0);
	for (int i = 0; i < WRITERS + READERS; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(atomic_load(&s.failures), 0);
	db_status_get(t->db, &status);
	assert_int_equal(status.commits, WRITERS * CHANGES);
	long seen = WRITERS * CHANGES;
	assert_true(read_once(t->db, &seen));
	assert_int_equal(seen, WRITERS * CHANGES);
}

static int set_up(void **state) {
	*state = temp_db_new(DB_CONTROL);
	return 0;
}

static int tear_down(void **state) {
	temp_db_free(*state);
	return 0;
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			changes_are_neither_lost_nor_seen_half, set_up, tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
