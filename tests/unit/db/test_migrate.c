/* Migrations, on schemas made up for the purpose. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "db/migrate.h"
#include "tests/support/temp_db.h"

#define FIRST "CREATE TABLE a (x INTEGER); INSERT INTO a VALUES (1)"
#define SECOND "ALTER TABLE a ADD COLUMN y INTEGER DEFAULT 7"

static const char *const texts[] = {FIRST, SECOND};
static const char *const changed[] = {FIRST " ", SECOND};
static const char *const broken[] = {FIRST, "CREATE TABLE b (x INTEGER)", "CREATE TABLE a (x)"};

static const struct schema version1 = {99, "test", texts, 1};
static const struct schema version2 = {99, "test", texts, 2};
static const struct schema other_text = {99, "test", changed, 2};
static const struct schema failing = {99, "test", broken, 3};
static const struct schema other_id = {98, "other", texts, 1};

static struct conn_fault no_fault;

/* A connection to a fresh file, or again to the one that is there. */
static struct db_conn *open_file(const struct temp_db *t) {
	char path[128];
	struct db_conn *c;
	snprintf(path, sizeof(path), "%s/migrate.db", t->dir);
	const struct conn_options o = {
		.path = path, .writer = true, .busy_ms = 1000, .fault = &no_fault};
	assert_int_equal(conn_open(&o, &c, NULL), RC_OK);
	return c;
}

static int set_up(void **state) {
	*state = temp_db_new(DB_CONTROL);
	return 0;
}

static int tear_down(void **state) {
	struct temp_db *t = *state;
	char path[128];
	snprintf(path, sizeof(path), "%s/migrate.db", t->dir);
	unlink(path);
	temp_db_free(t);
	return 0;
}

static int64_t number(struct db_conn *c, const char *sql) {
	auto_stmt struct stmt *st = stmt_get(c, sql);
	struct err err;
	if (stmt_one(st, "number", &err) != RC_OK)
		fail_msg("%s", err.msg);
	return col_int(st, 0);
}

static void each_migration_is_applied_once(void **state) {
	struct db_conn *c = open_file(*state);
	assert_int_equal(migrate(c, &version1, NULL), RC_OK);
	assert_int_equal(migrate(c, &version1, NULL), RC_OK);
	assert_int_equal(number(c, "SELECT count(*) FROM a"), 1);
	conn_close(c);

	c = open_file(*state);
	assert_int_equal(migrate(c, &version2, NULL), RC_OK);
	assert_int_equal(number(c, "SELECT y FROM a"), 7);
	assert_int_equal(number(c, "SELECT max(version) FROM migration"), 2);
	assert_int_equal(number(c, "PRAGMA application_id"), 99);
	conn_close(c);
}

static void a_newer_file_is_refused(void **state) {
	struct db_conn *c = open_file(*state);
	struct err err;
	assert_int_equal(migrate(c, &version2, NULL), RC_OK);
	assert_int_equal(migrate(c, &version1, &err), RC_UNSUPPORTED);
	assert_string_equal(err.msg,
		"the test database has schema version 2, made by a newer program; this one knows "
		"1");
	conn_close(c);
}

static void a_changed_migration_is_refused(void **state) {
	struct db_conn *c = open_file(*state);
	struct err err;
	assert_int_equal(migrate(c, &version1, NULL), RC_OK);
	assert_int_equal(migrate(c, &other_text, &err), RC_CORRUPT);
	assert_string_equal(
		err.msg, "migration 1 of the test database is not the one that this program knows");
	assert_int_equal(number(c, "SELECT max(version) FROM migration"), 1);
	conn_close(c);
}

static void a_missing_migration_is_refused(void **state) {
	struct db_conn *c = open_file(*state);
	assert_int_equal(migrate(c, &version2, NULL), RC_OK);
	assert_int_equal(conn_exec(c, "DELETE FROM migration WHERE version = 1", NULL), RC_OK);
	assert_int_equal(migrate(c, &version2, NULL), RC_CORRUPT);
	conn_close(c);
}

static void a_failing_migration_leaves_nothing_behind(void **state) {
	struct db_conn *c = open_file(*state);
	assert_int_equal(migrate(c, &failing, NULL), RC_INTERNAL);
	assert_int_equal(number(c, "SELECT count(*) FROM sqlite_schema"), 0);
	assert_int_equal(number(c, "PRAGMA application_id"), 0);
	assert_int_equal(migrate(c, &version1, NULL), RC_OK);
	conn_close(c);
}

static void other_files_are_refused(void **state) {
	struct db_conn *c = open_file(*state);
	struct err err;
	assert_int_equal(conn_exec(c, "CREATE TABLE theirs (x)", NULL), RC_OK);
	assert_int_equal(migrate(c, &version1, &err), RC_UNSUPPORTED);
	assert_string_equal(err.msg, "the file is not a test database");
	assert_int_equal(conn_exec(c, "DROP TABLE theirs", NULL), RC_OK);
	assert_int_equal(migrate(c, &version1, NULL), RC_OK);
	assert_int_equal(migrate(c, &other_id, &err), RC_UNSUPPORTED);
	assert_string_equal(err.msg, "the file is not a other database");
	conn_close(c);
}

static void the_two_files_are_not_mistaken_for_each_other(void **state) {
	struct temp_db *t = *state;
	struct err err;
	temp_db_close(t);
	const struct db_config config = {
		.path = t->path, .file = DB_SAMPLES, .readers = 1, .busy_ms = 1000};
	assert_null(db_open(&config, &err));
	assert_int_equal(err.rc, RC_UNSUPPORTED);
	char want[160];
	snprintf(want, sizeof(want), "%s: the file is not a samples database", t->path);
	assert_string_equal(err.msg, want);
}

#define WITH_DB(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void) {
	const struct CMUnitTest tests[] = {
		WITH_DB(each_migration_is_applied_once),
		WITH_DB(a_newer_file_is_refused),
		WITH_DB(a_changed_migration_is_refused),
		WITH_DB(a_missing_migration_is_refused),
		WITH_DB(a_failing_migration_leaves_nothing_behind),
		WITH_DB(other_files_are_refused),
		WITH_DB(the_two_files_are_not_mistaken_for_each_other),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
