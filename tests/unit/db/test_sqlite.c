/* Statements: the cache, errors, and what an error leaves of a transaction. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "db/sqlite.h"
#include "tests/support/temp_db.h"

static int set_up(void **state) {
	struct temp_db *t = temp_db_new(DB_CONTROL);
	struct db_conn *c = temp_db_begin(t);
	assert_int_equal(
		conn_exec(c,
			"CREATE TABLE parent (id INTEGER PRIMARY KEY, name TEXT UNIQUE);"
			"CREATE TABLE child (id INTEGER PRIMARY KEY REFERENCES parent (id),"
			" name TEXT NOT NULL CHECK (name <> ''));"
			"INSERT INTO parent VALUES (1, 'a'), (2, 'b'), (3, 'c')",
			NULL),
		RC_OK);
	*state = t;
	return 0;
}

static int tear_down(void **state) {
	temp_db_free(*state);
	return 0;
}

static struct db_conn *conn(void **state) {
	return ((struct temp_db *)*state)->conn;
}

static int64_t count_parents(struct db_conn *c) {
	auto_stmt struct stmt *st = stmt_get(c, "SELECT count(*) FROM parent");
	assert_int_equal(stmt_one(st, "count", NULL), RC_OK);
	return col_int(st, 0);
}

static void a_statement_may_be_used_within_itself(void **state) {
	struct db_conn *c = conn(state);
	static const char sql[] = "SELECT id FROM parent ORDER BY id";
	int pairs = 0;
	bool row, inner_row;
	auto_stmt struct stmt *st = stmt_get(c, sql);
	while (stmt_next(st, &row, NULL) == RC_OK && row) {
		auto_stmt struct stmt *inner = stmt_get(c, sql);
		assert_ptr_not_equal(inner, st);
		while (stmt_next(inner, &inner_row, NULL) == RC_OK && inner_row)
			pairs += (int)(col_int(st, 0) * col_int(inner, 0));
	}
	assert_int_equal(pairs, 36);
}

static void a_statement_is_prepared_once(void **state) {
	static const char sql[] = "SELECT 1";
	struct stmt *first = stmt_get(conn(state), sql);
	stmt_put(first);
	struct stmt *second = stmt_get(conn(state), sql);
	stmt_put(second);
	assert_ptr_equal(first, second);
}

static void more_statements_than_places_take_turns(void **state) {
	static char sql[200][32];
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < 200; i++) {
			snprintf(sql[i], sizeof(sql[i]), "SELECT %d", i);
			auto_stmt struct stmt *st = stmt_get(conn(state), sql[i]);
			assert_int_equal(stmt_one(st, "number", NULL), RC_OK);
			assert_int_equal(col_int(st, 0), i);
		}
	}
}

static void too_many_statements_at_once_are_refused(void **state) {
	static const char sql[] = "SELECT 1";
	struct stmt *all[64];
	struct err err;
	size_t good = 0;
	for (size_t i = 0; i < array_len(all); i++) {
		all[i] = stmt_get(conn(state), sql);
		if (stmt_one(all[i], "number", &err) == RC_OK)
			good++;
		else
			assert_int_equal(err.rc, RC_FULL);
	}
	assert_int_equal(good, 48);
	for (size_t i = 0; i < array_len(all); i++)
		stmt_put(all[i]);
	auto_stmt struct stmt *st = stmt_get(conn(state), sql);
	assert_int_equal(stmt_one(st, "number", NULL), RC_OK);
}

static void a_statement_forgets_what_was_bound(void **state) {
	static const char sql[] = "SELECT $1 IS NULL";
	struct stmt *st = stmt_get(conn(state), sql);
	stmt_text(st, 1, "x");
	assert_int_equal(stmt_one(st, "row", NULL), RC_OK);
	assert_int_equal(col_int(st, 0), 0);
	stmt_put(st);
	st = stmt_get(conn(state), sql);
	assert_int_equal(stmt_one(st, "row", NULL), RC_OK);
	assert_int_equal(col_int(st, 0), 1);
	stmt_put(st);
}

static enum rc run(struct db_conn *c, const char *sql, struct err *err) {
	auto_stmt struct stmt *st = stmt_get(c, sql);
	return stmt_run(st, NULL, err);
}

static void broken_rules_are_told_and_survived(void **state) {
	struct db_conn *c = conn(state);
	static const struct {
		const char *sql;
		enum rc want;
	} cases[] = {
		{"INSERT INTO parent VALUES (1, 'd')", RC_EXISTS},
		{"INSERT INTO parent VALUES (4, 'a')", RC_EXISTS},
		{"INSERT INTO child VALUES (9, 'x')", RC_NOT_FOUND},
		{"INSERT INTO child VALUES (1, NULL)", RC_INVALID},
		{"INSERT INTO child VALUES (1, '')", RC_INVALID},
	};
	for (size_t i = 0; i < array_len(cases); i++)
		assert_int_equal(run(c, cases[i].sql, NULL), cases[i].want);
	assert_int_equal(run(c, "INSERT INTO parent VALUES (4, 'd')", NULL), RC_OK);
	temp_db_commit(*state);
	assert_int_equal(count_parents(temp_db_begin(*state)), 4);
}

static void a_wrong_statement_is_told_by_its_first_step(void **state) {
	struct db_conn *c = conn(state);
	struct err err;
	auto_stmt struct stmt *st = stmt_get(c, "SELECT x FROM nowhere WHERE y = $1");
	stmt_int(st, 1, 5);
	stmt_text(st, 2, "x");
	assert_int_equal(stmt_one(st, "row", &err), RC_INTERNAL);
	assert_string_equal(err.msg, "test.db: no such table: nowhere");
}

static void a_reader_cannot_write(void **state) {
	struct temp_db *t = *state;
	struct db_conn *c;
	temp_db_commit(t);
	assert_int_equal(db_read_begin(t->db, &c, NULL), RC_OK);
	assert_false(conn_is_writer(c));
	assert_int_equal(run(c, "INSERT INTO parent VALUES (4, 'd')", NULL), RC_FORBIDDEN);
	db_read_end(c);
	assert_int_equal(count_parents(temp_db_begin(t)), 3);
}

/* After a failure that rolled the transaction back, a write would stand alone. */
static void nothing_is_written_after_a_lost_transaction(void **state) {
	struct temp_db *t = *state;
	struct db_conn *c = t->conn;
	struct err err;
	temp_db_commit(t);
	c = temp_db_begin(t);
	db_fail_nth(t->db, 2, RC_STORE);
	assert_int_equal(run(c, "INSERT INTO parent VALUES (4, 'd')", NULL), RC_OK);
	assert_int_equal(run(c, "INSERT INTO parent VALUES (5, 'e')", NULL), RC_STORE);
	db_fail_nth(t->db, 0, RC_OK);
	assert_int_equal(run(c, "INSERT INTO parent VALUES (6, 'f')", NULL), RC_STORE);
	t->conn = NULL;
	assert_int_equal(db_write_commit(c, &err), RC_STORE);
	assert_string_equal(err.msg, "test.db: injected fault");
	assert_int_equal(count_parents(temp_db_begin(t)), 3);
}

#define WITH_DB(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void) {
	const struct CMUnitTest tests[] = {
		WITH_DB(a_statement_may_be_used_within_itself),
		WITH_DB(a_statement_is_prepared_once),
		WITH_DB(more_statements_than_places_take_turns),
		WITH_DB(too_many_statements_at_once_are_refused),
		WITH_DB(a_statement_forgets_what_was_bound),
		WITH_DB(broken_rules_are_told_and_survived),
		WITH_DB(a_wrong_statement_is_told_by_its_first_step),
		WITH_DB(a_reader_cannot_write),
		WITH_DB(nothing_is_written_after_a_lost_transaction),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
