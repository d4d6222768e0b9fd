/* Events, the audit trail, named values and idempotency keys. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "db/events.h"
#include "tests/support/temp_db.h"

static int64_t add_event(struct db_conn *c, int64_t at_ms) {
	struct event e = {.at_ms = at_ms,
		.type = EVENT_POWER_APPLIED,
		.object = "/drives/d1",
		.actor = "ada",
		.data = (char[]){"{\"state\":1}"}};
	assert_int_equal(db_event_insert(c, &e, NULL), RC_OK);
	return e.id;
}

struct ids {
	int64_t at[8];
	int n, stop_after;
};

static bool keep(struct ids *all, int64_t id) {
	all->at[all->n++] = id;
	return all->n != all->stop_after;
}

static bool keep_event(void *arg, const struct event *e) {
	assert_int_equal(e->type, EVENT_POWER_APPLIED);
	assert_string_equal(e->object, "/drives/d1");
	assert_string_equal(e->actor, "ada");
	assert_string_equal(e->data, "{\"state\":1}");
	return keep(arg, e->id);
}

static void events_are_listed_from_an_id_on(void **state) {
	struct db_conn *c = temp_db_conn(state);
	int64_t first, last;
	assert_int_equal(db_event_range(c, &first, &last, NULL), RC_OK);
	assert_int_equal(first, 0);
	assert_int_equal(last, 0);
	for (int i = 0; i < 5; i++)
		assert_int_equal(add_event(c, 100 + i), i + 1);
	assert_int_equal(db_event_range(c, &first, &last, NULL), RC_OK);
	assert_int_equal(first, 1);
	assert_int_equal(last, 5);

	struct ids all = {.n = 0}, some = {.n = 0}, stopped = {.stop_after = 1};
	assert_int_equal(db_event_list(c, 0, 10, keep_event, &all, NULL), RC_OK);
	assert_int_equal(all.n, 5);
	assert_int_equal(db_event_list(c, 2, 2, keep_event, &some, NULL), RC_OK);
	assert_int_equal(some.n, 2);
	assert_int_equal(some.at[0], 3);
	assert_int_equal(some.at[1], 4);
	assert_int_equal(db_event_list(c, 0, 10, keep_event, &stopped, NULL), RC_OK);
	assert_int_equal(stopped.n, 1);
}

static bool no_data(void *arg, const struct event *e) {
	*(bool *)arg = e->data == NULL && e->object[0] == '\0';
	return true;
}

static void an_event_may_have_no_data(void **state) {
	struct event e = {.type = EVENT_SERVICE};
	bool none = false;
	assert_int_equal(db_event_insert(temp_db_conn(state), &e, NULL), RC_OK);
	assert_int_equal(db_event_list(temp_db_conn(state), 0, 1, no_data, &none, NULL), RC_OK);
	assert_true(none);
}

/* Not even when the newest one was pruned. */
static void ids_are_never_used_again(void **state) {
	struct db_conn *c = temp_db_conn(state);
	int removed;
	for (int i = 0; i < 3; i++)
		add_event(c, i);
	assert_int_equal(db_event_prune(c, INT64_MAX, 10, &removed, NULL), RC_OK);
	assert_int_equal(removed, 3);
	assert_int_equal(add_event(c, 0), 4);
}

static void events_are_pruned_from_the_oldest(void **state) {
	struct db_conn *c = temp_db_conn(state);
	struct ids left = {.n = 0};
	int removed;
	for (int i = 0; i < 6; i++)
		add_event(c, 100 + i);
	assert_int_equal(db_event_prune(c, 104, 3, &removed, NULL), RC_OK);
	assert_int_equal(removed, 3);
	assert_int_equal(db_event_prune(c, 104, 3, &removed, NULL), RC_OK);
	assert_int_equal(removed, 1);
	assert_int_equal(db_event_prune(c, 104, 3, &removed, NULL), RC_OK);
	assert_int_equal(removed, 0);
	assert_int_equal(db_event_list(c, 0, 10, keep_event, &left, NULL), RC_OK);
	assert_int_equal(left.n, 2);
	assert_int_equal(left.at[0], 5);
}

static int64_t add_audit(struct db_conn *c, int64_t at_ms, char *detail) {
	struct audit_entry a = {.at_ms = at_ms,
		.actor = "ada",
		.address = "10.0.0.1",
		.request_id = "r1",
		.action = "power.set_desired",
		.object = "/drives/d1",
		.outcome = "intent",
		.detail = detail};
	assert_int_equal(db_audit_insert(c, &a, NULL), RC_OK);
	return a.id;
}

static bool keep_audit(void *arg, const struct audit_entry *a) {
	assert_string_equal(a->actor, "ada");
	assert_string_equal(a->address, "10.0.0.1");
	assert_string_equal(a->request_id, "r1");
	assert_string_equal(a->action, "power.set_desired");
	assert_string_equal(a->object, "/drives/d1");
	assert_string_equal(a->outcome, "intent");
	assert_int_equal(a->at_ms, 100 + a->id);
	if (a->id == 1)
		assert_string_equal(a->detail, "{}");
	else
		assert_null(a->detail);
	return keep(arg, a->id);
}

static void the_trail_is_read_backwards(void **state) {
	struct db_conn *c = temp_db_conn(state);
	char detail[] = "{}";
	struct ids newest = {.n = 0}, older = {.n = 0}, stopped = {.stop_after = 1};
	int removed;
	assert_int_equal(add_audit(c, 101, detail), 1);
	assert_int_equal(add_audit(c, 102, NULL), 2);
	assert_int_equal(add_audit(c, 103, NULL), 3);
	assert_int_equal(db_audit_list(c, INT64_MAX, 2, keep_audit, &newest, NULL), RC_OK);
	assert_int_equal(newest.n, 2);
	assert_int_equal(newest.at[0], 3);
	assert_int_equal(newest.at[1], 2);
	assert_int_equal(db_audit_list(c, 2, 2, keep_audit, &older, NULL), RC_OK);
	assert_int_equal(older.n, 1);
	assert_int_equal(older.at[0], 1);
	assert_int_equal(db_audit_list(c, INT64_MAX, 9, keep_audit, &stopped, NULL), RC_OK);
	assert_int_equal(stopped.n, 1);
	assert_int_equal(db_audit_prune(c, 103, 1, &removed, NULL), RC_OK);
	assert_int_equal(removed, 1);
	assert_int_equal(db_audit_prune(c, INT64_MAX, 9, &removed, NULL), RC_OK);
	assert_int_equal(removed, 2);
	assert_int_equal(add_audit(c, 104, NULL), 4);
}

static void values_are_named(void **state) {
	struct db_conn *c = temp_db_conn(state);
	char value[16];
	assert_int_equal(db_meta_get(c, "uuid", value, sizeof(value), NULL), RC_NOT_FOUND);
	assert_int_equal(db_meta_set(c, "uuid", "one", NULL), RC_OK);
	assert_int_equal(db_meta_set(c, "uuid", "two", NULL), RC_OK);
	assert_int_equal(db_meta_set(c, "other", "three", NULL), RC_OK);
	assert_int_equal(db_meta_get(c, "uuid", value, sizeof(value), NULL), RC_OK);
	assert_string_equal(value, "two");
}

static const struct idempotency answer = {
	.account_id = "a1",
	.method = "POST",
	.path = "/api/v1/hosts",
	.key = "k1",
	.fingerprint = "f1",
	.location = "/api/v1/hosts/h1",
	.created_ms = 100,
};

static void answers_are_kept_under_their_key(void **state) {
	struct db_conn *c = temp_db_conn(state);
	struct idempotency got = answer;
	assert_int_equal(db_idempotency_insert(c, &answer, NULL), RC_OK);
	assert_int_equal(db_idempotency_insert(c, &answer, NULL), RC_EXISTS);
	got = (struct idempotency){
		.account_id = "a1", .method = "POST", .path = "/api/v1/hosts", .key = "k1"};
	assert_int_equal(db_idempotency_get(c, &got, NULL), RC_OK);
	assert_string_equal(got.fingerprint, "f1");
	assert_string_equal(got.location, "/api/v1/hosts/h1");
	assert_int_equal(got.created_ms, 100);
}

static void another_scope_is_another_key(void **state) {
	struct db_conn *c = temp_db_conn(state);
	struct idempotency others[] = {answer, answer, answer, answer};
	memcpy(others[0].account_id, "a2", 3);
	memcpy(others[1].method, "PUT", 4);
	memcpy(others[2].path, "/api/v1/runs", 13);
	memcpy(others[3].key, "k2", 3);
	assert_int_equal(db_idempotency_insert(c, &answer, NULL), RC_OK);
	for (size_t i = 0; i < array_len(others); i++) {
		assert_int_equal(db_idempotency_get(c, &others[i], NULL), RC_NOT_FOUND);
		assert_int_equal(db_idempotency_insert(c, &others[i], NULL), RC_OK);
		assert_int_equal(db_idempotency_get(c, &others[i], NULL), RC_OK);
	}
}

static void kept_answers_are_pruned(void **state) {
	struct db_conn *c = temp_db_conn(state);
	struct idempotency got = answer;
	int removed;
	assert_int_equal(db_idempotency_insert(c, &answer, NULL), RC_OK);
	assert_int_equal(db_idempotency_prune(c, 100, 10, &removed, NULL), RC_OK);
	assert_int_equal(removed, 0);
	assert_int_equal(db_idempotency_prune(c, 101, 10, &removed, NULL), RC_OK);
	assert_int_equal(removed, 1);
	assert_int_equal(db_idempotency_get(c, &got, NULL), RC_NOT_FOUND);
}

#define WITH_DB(f) cmocka_unit_test_setup_teardown(f, temp_control_begin, temp_db_end)

int main(void) {
	const struct CMUnitTest tests[] = {
		WITH_DB(events_are_listed_from_an_id_on),
		WITH_DB(an_event_may_have_no_data),
		WITH_DB(ids_are_never_used_again),
		WITH_DB(events_are_pruned_from_the_oldest),
		WITH_DB(the_trail_is_read_backwards),
		WITH_DB(values_are_named),
		WITH_DB(answers_are_kept_under_their_key),
		WITH_DB(another_scope_is_another_key),
		WITH_DB(kept_answers_are_pruned),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
