/* The pool of connections, transactions, faults and what is told about them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include <sys/stat.h>
#include <sys/wait.h>

#include "base/metrics.h"
#include "db/events.h"
#include "db/sqlite.h"
#include "tests/support/temp_db.h"

static int set_up(void **state) {
	*state = temp_db_new(DB_CONTROL);
	return 0;
}

static int tear_down(void **state) {
	temp_db_free(*state);
	return 0;
}

static void set_value(struct temp_db *t, const char *value) {
	assert_int_equal(db_meta_set(temp_db_begin(t), "key", value, NULL), RC_OK);
	temp_db_commit(t);
}

static void check_value(struct db_conn *c, const char *want) {
	char value[16];
	assert_int_equal(db_meta_get(c, "key", value, sizeof(value), NULL), RC_OK);
	assert_string_equal(value, want);
}

static void check_stored(struct temp_db *t, const char *want) {
	struct db_conn *c;
	assert_int_equal(db_read_begin(t->db, &c, NULL), RC_OK);
	check_value(c, want);
	db_read_end(c);
}

static struct db *open_again(const struct temp_db *t, int64_t busy_ms) {
	const struct db_config config = {
		.path = t->path, .file = t->file, .readers = 1, .busy_ms = busy_ms};
	struct err err;
	struct db *db = db_open(&config, &err);
	if (!db)
		fail_msg("%s", err.msg);
	return db;
}

static void the_file_is_its_owners_alone(void **state) {
	const struct temp_db *t = *state;
	struct stat st;
	char wal[128];
	assert_int_equal(stat(t->path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	snprintf(wal, sizeof(wal), "%s-wal", t->path);
	assert_int_equal(stat(wal, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
}

static void what_cannot_be_opened_is_told(void **state) {
	(void)state;
	static const struct {
		const char *path;
		unsigned readers;
		enum rc want;
	} cases[] = {
		{"/nonexistent/control.db", 4, RC_NOT_FOUND},
		{"/proc", 4, RC_IO},
		{"/tmp/x.db", 0, RC_INVALID},
		{"/tmp/x.db", 17, RC_INVALID},
	};
	for (size_t i = 0; i < array_len(cases); i++) {
		const struct db_config config = {
			.path = cases[i].path, .readers = cases[i].readers, .busy_ms = 10};
		struct err err = {0};
		assert_null(db_open(&config, &err));
		assert_int_equal(err.rc, cases[i].want);
		assert_int_not_equal(err.msg[0], '\0');
	}
	db_close(NULL);
	db_read_end(NULL);
	db_write_abort(NULL);
}

static void what_was_committed_is_there_after_opening_again(void **state) {
	struct temp_db *t = *state;
	set_value(t, "kept");
	temp_db_close(t);
	temp_db_open(t);
	check_stored(t, "kept");
}

static void what_was_aborted_is_not(void **state) {
	struct temp_db *t = *state;
	struct db_status status;
	set_value(t, "kept");
	assert_int_equal(db_meta_set(temp_db_begin(t), "key", "lost", NULL), RC_OK);
	check_value(t->conn, "lost");
	temp_db_abort(t);
	check_stored(t, "kept");
	db_status_get(t->db, &status);
	assert_true(status.healthy);
	assert_int_equal(status.failures, 0);
}

static void what_a_dry_run_commits_is_not(void **state) {
	struct temp_db *t = *state;
	const struct actor trial = {.dry_run = true}, person = {.dry_run = false};
	struct db_conn *c;
	struct db_status status;
	set_value(t, "kept");
	assert_int_equal(db_write_begin_for(t->db, &trial, &c, NULL), RC_OK);
	assert_int_equal(db_meta_set(c, "key", "lost", NULL), RC_OK);
	check_value(c, "lost");
	assert_int_equal(db_write_commit(c, NULL), RC_OK);
	check_stored(t, "kept");
	/* What comes after is no trial any more. */
	set_value(t, "new");
	check_stored(t, "new");
	assert_int_equal(db_write_begin_for(t->db, &person, &c, NULL), RC_OK);
	assert_int_equal(db_meta_set(c, "key", "newest", NULL), RC_OK);
	assert_int_equal(db_write_commit(c, NULL), RC_OK);
	check_stored(t, "newest");
	/* A store that fails is told of all the same. */
	db_fail_nth(t->db, 1, RC_NO_SPACE);
	assert_int_equal(db_write_begin_for(t->db, &trial, &c, NULL), RC_OK);
	assert_int_equal(db_meta_set(c, "key", "lost", NULL), RC_NO_SPACE);
	assert_int_equal(db_write_commit(c, NULL), RC_NO_SPACE);
	db_fail_nth(t->db, 0, RC_OK);
	db_status_get(t->db, &status);
	assert_int_equal(status.failures, 1);
}

static void a_reader_sees_one_moment(void **state) {
	struct temp_db *t = *state;
	struct db_conn *c;
	set_value(t, "old");
	assert_int_equal(db_read_begin(t->db, &c, NULL), RC_OK);
	check_value(c, "old");
	set_value(t, "new");
	check_value(c, "old");
	check_stored(t, "new");
	db_read_end(c);
	check_stored(t, "new");
}

static void readers_are_limited(void **state) {
	struct temp_db *t = *state;
	struct db *db = open_again(t, 20);
	struct db_conn *c, *none;
	struct err err;
	assert_int_equal(db_read_begin(db, &c, NULL), RC_OK);
	assert_int_equal(db_read_begin(db, &none, &err), RC_FULL);
	assert_null(none);
	assert_string_equal(err.msg, "all 1 readers of the store are busy");
	db_read_end(c);
	assert_int_equal(db_read_begin(db, &c, NULL), RC_OK);
	db_read_end(c);
	db_close(db);
}

static void the_status_follows_the_writes(void **state) {
	struct temp_db *t = *state;
	struct db_status status;
	const int64_t commits = metric_get(METRIC_DB_COMMITS);
	db_status_get(t->db, &status);
	assert_true(status.healthy);
	assert_int_equal(status.commits, 0);
	assert_in_range(status.schema_version, 1, 1000);
	assert_in_range(status.file_bytes + status.wal_bytes, 4096, 1000000);
	set_value(t, "a");
	set_value(t, "b");
	db_status_get(t->db, &status);
	assert_int_equal(status.commits, 2);
	assert_int_equal(metric_get(METRIC_DB_COMMITS), commits + 2);
	db_checkpoint(t->db);
	assert_int_equal(metric_get(METRIC_DB_CONTROL_WAL), status.wal_bytes);
}

/* One change: two writes and a commit, each of which can fail. */
static enum rc change(struct temp_db *t, struct err *err) {
	struct db_conn *c;
	struct event e = {.type = EVENT_SERVICE};
	enum rc rc = db_write_begin(t->db, &c, err);
	if (rc != RC_OK)
		return rc;
	rc = db_meta_set(c, "key", "changed", err);
	if (rc == RC_OK)
		rc = db_event_insert(c, &e, err);
	if (rc == RC_OK)
		return db_write_commit(c, err);
	db_write_abort(c);
	return rc;
}

static void a_change_is_whole_or_not_at_all(void **state) {
	struct temp_db *t = *state;
	static const enum rc faults[] = {RC_NO_SPACE, RC_STORE};
	struct db_status status;
	struct err err;
	set_value(t, "before");
	for (size_t f = 0; f < array_len(faults); f++) {
		for (int n = 1; n <= 3; n++) {
			db_fail_nth(t->db, n, faults[f]);
			assert_int_equal(change(t, &err), faults[f]);
			assert_int_equal(err.rc, faults[f]);
			check_stored(t, "before");
			db_status_get(t->db, &status);
			assert_false(status.healthy);
			assert_string_equal(status.last_error, "test.db: injected fault");
			assert_int_equal(status.failures, ((int64_t)f * 3 + n) * 2 - 1);
			/* It stays so until switched off. */
			assert_int_equal(change(t, &err), faults[f]);
			db_fail_nth(t->db, 0, RC_OK);
			assert_int_equal(status.commits, 1);
		}
	}
	db_fail_nth(t->db, 4, RC_STORE);
	assert_int_equal(change(t, &err), RC_OK);
	db_fail_nth(t->db, 0, RC_OK);
	check_stored(t, "changed");
	db_status_get(t->db, &status);
	assert_true(status.healthy);
	assert_string_equal(status.last_error, "");
}

/* A writer in another process, which goes on step by step. */
struct elsewhere {
	pid_t pid;
	int done, go_on;
};

static no_return void write_elsewhere(const struct temp_db *t, int done, int go_on) {
	const struct db_config config = {
		.path = t->path, .file = t->file, .readers = 1, .busy_ms = 5000};
	struct db *db = db_open(&config, NULL);
	struct db_conn *c;
	char byte = 0;
	if (!db || write(done, &byte, 1) != 1 || read(go_on, &byte, 1) != 1 ||
		db_write_begin(db, &c, NULL) != RC_OK || write(done, &byte, 1) != 1 ||
		read(go_on, &byte, 1) != 1 || db_meta_set(c, "key", "theirs", NULL) != RC_OK ||
		db_write_commit(c, NULL) != RC_OK)
		_exit(1);
	db_close(db);
	_exit(0);
}

static struct elsewhere start_elsewhere(const struct temp_db *t) {
	int done[2], go_on[2];
	assert_int_equal(pipe(done), 0);
	assert_int_equal(pipe(go_on), 0);
	const pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		write_elsewhere(t, done[1], go_on[0]);
	close(done[1]);
	close(go_on[0]);
	return (struct elsewhere){pid, done[0], go_on[1]};
}

static void wait_step(const struct elsewhere *e) {
	char byte;
	assert_int_equal(read(e->done, &byte, 1), 1);
}

static void allow_step(const struct elsewhere *e) {
	assert_int_equal(write(e->go_on, "", 1), 1);
}

static void wait_end(const struct elsewhere *e) {
	int status;
	assert_int_equal(waitpid(e->pid, &status, 0), e->pid);
	assert_int_equal(status, 0);
	close(e->done);
	close(e->go_on);
}

static void a_writer_of_another_process_is_waited_for(void **state) {
	struct temp_db *t = *state;
	struct db_conn *c;
	struct db_status status;
	set_value(t, "ours");
	temp_db_close(t);
	const struct elsewhere e = start_elsewhere(t);
	wait_step(&e);
	temp_db_open(t);
	struct db *impatient = open_again(t, 0);
	allow_step(&e);
	wait_step(&e);

	check_stored(t, "ours");
	assert_int_equal(db_write_begin(impatient, &c, NULL), RC_STORE);
	assert_null(c);
	db_status_get(impatient, &status);
	assert_false(status.healthy);
	db_close(impatient);

	allow_step(&e);
	temp_db_begin(t);
	check_value(t->conn, "theirs");
	temp_db_commit(t);
	wait_end(&e);
}

/* Reading first and writing later cannot fail at once for another's write in between: a writer
 * holds the lock from its beginning. */
static void a_writer_that_reads_first_keeps_its_turn(void **state) {
	struct temp_db *t = *state;
	struct db *other = open_again(t, 0);
	struct db_conn *c;
	set_value(t, "a");
	check_value(temp_db_begin(t), "a");
	assert_int_equal(db_write_begin(other, &c, NULL), RC_STORE);
	assert_int_equal(db_meta_set(t->conn, "key", "b", NULL), RC_OK);
	temp_db_commit(t);
	assert_int_equal(db_write_begin(other, &c, NULL), RC_OK);
	assert_int_equal(db_write_commit(c, NULL), RC_OK);
	db_close(other);
	check_stored(t, "b");
}

/* Were a deferred transaction ever to write, the caller would be told to repeat it. */
static void a_snapshot_that_is_too_old_is_a_conflict(void **state) {
	struct temp_db *t = *state;
	struct db *other = open_again(t, 1000);
	struct db_conn *c;
	struct db_conn *mine = temp_db_begin(t);
	assert_int_equal(conn_exec(mine, "ROLLBACK; BEGIN; SELECT * FROM meta", NULL), RC_OK);
	assert_int_equal(db_write_begin(other, &c, NULL), RC_OK);
	assert_int_equal(db_meta_set(c, "key", "theirs", NULL), RC_OK);
	assert_int_equal(db_write_commit(c, NULL), RC_OK);
	assert_int_equal(db_meta_set(mine, "key", "mine", NULL), RC_CONFLICT);
	t->conn = NULL;
	assert_int_equal(db_write_commit(mine, NULL), RC_CONFLICT);
	set_value(t, "again");
	check_stored(t, "again");
	db_close(other);
}

#define WITH_DB(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void) {
	const struct CMUnitTest tests[] = {
		WITH_DB(the_file_is_its_owners_alone),
		WITH_DB(what_cannot_be_opened_is_told),
		WITH_DB(what_was_committed_is_there_after_opening_again),
		WITH_DB(what_was_aborted_is_not),
		WITH_DB(what_a_dry_run_commits_is_not),
		WITH_DB(a_reader_sees_one_moment),
		WITH_DB(readers_are_limited),
		WITH_DB(the_status_follows_the_writes),
		WITH_DB(a_change_is_whole_or_not_at_all),
		WITH_DB(a_writer_of_another_process_is_waited_for),
		WITH_DB(a_writer_that_reads_first_keeps_its_turn),
		WITH_DB(a_snapshot_that_is_too_old_is_a_conflict),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
