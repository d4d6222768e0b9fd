/* Policies as they are kept. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "db/policies.h"
#include "tests/support/temp_db.h"

static const struct policy example = {
	.name = "slow",
	.priority = -5,
	.selector = {.model = "M", .host = "h", .slot = "7", .labels = "{\"a\":\"b\"}"},
	.wish = {.state = 2, .allow_non_operational = true, .limit_mw = NONE},
	.created_ms = 10,
	.changed_ms = 20,
	.config_version = 30,
};

static void a_policy_comes_back_as_it_was(void **state) {
	struct policy p;
	assert_int_equal(db_policy_put(temp_db_conn(state), &example, NULL), RC_OK);
	assert_int_equal(db_policy_get(temp_db_conn(state), "slow", &p, NULL), RC_OK);
	assert_true(policy_is_same(&p, &example));
	assert_int_equal(p.created_ms, 10);
	assert_int_equal(p.changed_ms, 20);
	assert_int_equal(p.config_version, 30);
}

static void a_second_put_replaces_all_but_the_birth(void **state) {
	struct policy changed = example, p;
	assert_int_equal(db_policy_put(temp_db_conn(state), &example, NULL), RC_OK);
	changed.wish = (struct power_wish){.state = -1, .limit_mw = 12500};
	changed.selector = (struct drive_selector){.model = "N"};
	changed.priority = 7;
	changed.created_ms = changed.changed_ms = 99;
	changed.config_version = 31;
	assert_int_equal(db_policy_put(temp_db_conn(state), &changed, NULL), RC_OK);
	assert_int_equal(db_policy_get(temp_db_conn(state), "slow", &p, NULL), RC_OK);
	assert_true(policy_is_same(&p, &changed));
	assert_int_equal(p.created_ms, 10);
	assert_int_equal(p.changed_ms, 99);
	assert_int_equal(p.config_version, 31);
}

static bool note_name(void *arg, const struct policy *p) {
	char *names = arg;
	names[strlen(names)] = p->name[0];
	return true;
}

static void all_come_by_name_and_can_go(void **state) {
	char names[8] = "";
	struct policy p = example;
	for (const char *name = "cab"; *name; name++) {
		p.name[0] = *name;
		p.name[1] = '\0';
		assert_int_equal(db_policy_put(temp_db_conn(state), &p, NULL), RC_OK);
	}
	assert_int_equal(db_policy_delete(temp_db_conn(state), "a", NULL), RC_OK);
	assert_int_equal(db_policy_delete(temp_db_conn(state), "a", NULL), RC_NOT_FOUND);
	assert_int_equal(db_policy_get(temp_db_conn(state), "a", &p, NULL), RC_NOT_FOUND);
	assert_int_equal(db_policy_each(temp_db_conn(state), note_name, names, NULL), RC_OK);
	assert_string_equal(names, "bc");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, temp_control_begin, temp_db_end)

int main(void) {
	const struct CMUnitTest tests[] = {
		TEST(a_policy_comes_back_as_it_was),
		TEST(a_second_put_replaces_all_but_the_birth),
		TEST(all_come_by_name_and_can_go),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
