/* Tasks and their targets as they are kept. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "db/tasks.h"
#include "model/quality.h"
#include "tests/support/temp_db.h"

static struct task task_of(const char *id, enum task_state s) {
	struct task t = {.kind = "power.change",
		.state = (uint8_t)s,
		.who = {.account_id = "a",
			.name = "admin",
			.role = ROLE_OPERATOR,
			.address = "::1",
			.request_id = "r"},
		.created_ms = 1,
		.started_ms = NONE,
		.ended_ms = NONE};
	snprintf(t.id, sizeof(t.id), "%s", id);
	return t;
}

static void insert(struct db_conn *c, const char *id, enum task_state s) {
	const struct task t = task_of(id, s);
	assert_int_equal(db_task_insert(c, &t, NULL), RC_OK);
}

static void put_target(struct db_conn *c, const char *id, unsigned at, enum target_state s) {
	struct task_target t = {.object = "/drives/x",
		.state = (uint8_t)s,
		.outcome = RC_REFUSED,
		.nvme_status = 0x4002,
		.reason = "no",
		.result = "{}",
		.started_ms = 5,
		.ended_ms = NONE};
	assert_int_equal(db_task_target_put(c, id, at, &t, NULL), RC_OK);
}

static void a_task_comes_back_with_its_counts(void **state) {
	struct db_conn *c = temp_db_conn(state);
	struct task t = task_of("t1", TASK_QUEUED), back;
	assert_int_equal(db_task_insert(c, &t, NULL), RC_OK);
	put_target(c, "t1", 0, TARGET_WAITING);
	put_target(c, "t1", 1, TARGET_RUNNING);
	put_target(c, "t1", 1, TARGET_FAILED);
	t.state = TASK_RUNNING;
	t.cancelling = true;
	t.started_ms = 7;
	assert_int_equal(db_task_update(c, &t, NULL), RC_OK);
	assert_int_equal(db_task_get(c, "t1", &back, NULL), RC_OK);
	assert_string_equal(back.kind, "power.change");
	assert_string_equal(back.who.name, "admin");
	assert_string_equal(back.who.address, "::1");
	assert_string_equal(back.who.request_id, "r");
	assert_int_equal(back.who.role, ROLE_OPERATOR);
	assert_int_equal(back.state, TASK_RUNNING);
	assert_true(back.cancelling);
	assert_int_equal(back.started_ms, 7);
	assert_int_equal(back.total, 2);
	assert_int_equal(back.counts[TARGET_WAITING], 1);
	assert_int_equal(back.counts[TARGET_FAILED], 1);
	assert_int_equal(db_task_get(c, "t2", &back, NULL), RC_NOT_FOUND);
	t = task_of("t2", TASK_QUEUED);
	assert_int_equal(db_task_update(c, &t, NULL), RC_NOT_FOUND);
}

static bool keep_target(void *arg, unsigned position, const struct task_target *t) {
	struct task_target *all = arg;
	all[position] = *t;
	return position < 2;
}

static void targets_come_in_order(void **state) {
	struct db_conn *c = temp_db_conn(state);
	struct task_target all[4] = {0};
	insert(c, "t1", TASK_RUNNING);
	for (unsigned i = 0; i < 4; i++)
		put_target(c, "t1", 3 - i, TARGET_FAILED);
	assert_int_equal(db_task_target_each(c, "t1", 1, 10, keep_target, all, NULL), RC_OK);
	assert_string_equal(all[0].object, "");
	assert_string_equal(all[1].object, "/drives/x");
	assert_int_equal(all[1].outcome, RC_REFUSED);
	assert_int_equal(all[1].nvme_status, 0x4002);
	assert_string_equal(all[1].reason, "no");
	assert_string_equal(all[1].result, "{}");
	assert_int_equal(all[2].started_ms, 5);
	assert_int_equal(all[2].ended_ms, NONE);
	/* The visitor had enough. */
	assert_string_equal(all[3].object, "");
}

static bool note_id(void *arg, const struct task *t) {
	char *ids = arg;
	ids[strlen(ids)] = t->id[0];
	return true;
}

static void lists_and_open_ones(void **state) {
	struct db_conn *c = temp_db_conn(state);
	char ids[8] = "";
	insert(c, "a", TASK_COMPLETED);
	insert(c, "b", TASK_RUNNING);
	insert(c, "c", TASK_QUEUED);
	insert(c, "d", TASK_INTERRUPTED);
	assert_int_equal(db_task_list(c, -1, NULL, "", 3, note_id, ids, NULL), RC_OK);
	assert_string_equal(ids, "dcb");
	memset(ids, 0, sizeof(ids));
	assert_int_equal(
		db_task_list(c, TASK_RUNNING, "power.change", "d", 9, note_id, ids, NULL), RC_OK);
	assert_string_equal(ids, "b");
	memset(ids, 0, sizeof(ids));
	assert_int_equal(db_task_list(c, -1, "other", "", 9, note_id, ids, NULL), RC_OK);
	assert_string_equal(ids, "");
	assert_int_equal(db_task_each_open(c, note_id, ids, NULL), RC_OK);
	assert_string_equal(ids, "bc");
}

static void old_ones_go_with_all_they_have(void **state) {
	struct db_conn *c = temp_db_conn(state);
	struct task t = task_of("a", TASK_COMPLETED), back;
	const struct power_change change = {.wish = {.state = 2, .limit_mw = NONE}};
	struct power_change found;
	int removed;
	t.ended_ms = 10;
	assert_int_equal(db_task_insert(c, &t, NULL), RC_OK);
	put_target(c, "a", 0, TARGET_COMPLETED);
	assert_int_equal(db_power_change_put(c, "a", &change, NULL), RC_OK);
	insert(c, "b", TASK_RUNNING);
	assert_int_equal(db_task_prune(c, 10, 100, &removed, NULL), RC_OK);
	assert_int_equal(removed, 0);
	assert_int_equal(db_task_prune(c, 11, 100, &removed, NULL), RC_OK);
	assert_int_equal(removed, 1);
	assert_int_equal(db_task_get(c, "a", &back, NULL), RC_NOT_FOUND);
	assert_int_equal(db_power_change_get(c, "a", &found, NULL), RC_NOT_FOUND);
	assert_int_equal(db_task_get(c, "b", &back, NULL), RC_OK);
}

static void a_change_keeps_its_wish(void **state) {
	struct db_conn *c = temp_db_conn(state);
	const struct power_change limit = {
		.wish = {.state = -1, .limit_mw = 12500}, .expires_ms = 300};
	const struct power_change end = {
		.clear = true, .wish = {.state = -1, .limit_mw = NONE}, .expires_ms = NONE};
	struct power_change found;
	insert(c, "a", TASK_RUNNING);
	insert(c, "b", TASK_RUNNING);
	assert_int_equal(db_power_change_put(c, "a", &limit, NULL), RC_OK);
	assert_int_equal(db_power_change_put(c, "b", &end, NULL), RC_OK);
	assert_int_equal(db_power_change_get(c, "a", &found, NULL), RC_OK);
	assert_false(found.clear);
	assert_true(power_wish_is_same(&found.wish, &limit.wish));
	assert_int_equal(found.expires_ms, 300);
	assert_int_equal(db_power_change_get(c, "b", &found, NULL), RC_OK);
	assert_true(found.clear);
	assert_int_equal(found.expires_ms, NONE);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, temp_control_begin, temp_db_end)

int main(void) {
	const struct CMUnitTest tests[] = {
		TEST(a_task_comes_back_with_its_counts),
		TEST(targets_come_in_order),
		TEST(lists_and_open_ones),
		TEST(old_ones_go_with_all_they_have),
		TEST(a_change_keeps_its_wish),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
