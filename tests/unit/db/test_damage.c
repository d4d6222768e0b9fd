/* Damaged files, a log that grows, a full disk. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>

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

static void overwrite(const struct temp_db *t, off_t at, int byte, size_t len) {
	char bytes[4096];
	const int fd = open(t->path, O_WRONLY | O_CLOEXEC);
	memset(bytes, byte, sizeof(bytes));
	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, bytes, len, at), (ssize_t)len);
	close(fd);
}

static void add_events(struct temp_db *t, int n, size_t data_bytes) {
	auto_free char *data = calloc(1, data_bytes + 1);
	memset(data, 'x', data_bytes);
	for (int i = 0; i < n; i++) {
		struct event e = {.type = EVENT_SERVICE, .data = data};
		assert_int_equal(db_event_insert(temp_db_begin(t), &e, NULL), RC_OK);
		temp_db_commit(t);
	}
}

static void check_refused(const struct temp_db *t) {
	const struct db_config config = {
		.path = t->path, .file = t->file, .readers = 1, .busy_ms = 100};
	char begin[160];
	struct err err;
	snprintf(begin, sizeof(begin),
		"%s is damaged: restore a backup or move it away (test.db: ", t->path);
	assert_null(db_open(&config, &err));
	assert_int_equal(err.rc, RC_CORRUPT);
	assert_memory_equal(err.msg, begin, strlen(begin));
}

static void a_zeroed_header_is_refused(void **state) {
	struct temp_db *t = *state;
	temp_db_close(t);
	overwrite(t, 0, 0, 100);
	check_refused(t);
}

static void another_kind_of_file_is_refused(void **state) {
	struct temp_db *t = *state;
	temp_db_close(t);
	overwrite(t, 0, '#', 4096);
	check_refused(t);
}

/* One page of rows, which nothing but the check at opening would read. */
static void a_damaged_page_is_refused(void **state) {
	struct temp_db *t = *state;
	struct db_status status;
	add_events(t, 100, 500);
	temp_db_close(t);
	temp_db_open(t);
	db_status_get(t->db, &status);
	temp_db_close(t);
	overwrite(t, status.file_bytes - 4096, 0xa5, 4096);
	check_refused(t);
}

static void a_file_cut_short_is_refused(void **state) {
	struct temp_db *t = *state;
	add_events(t, 100, 500);
	temp_db_close(t);
	assert_int_equal(truncate(t->path, 3 * 4096), 0);
	check_refused(t);
}

#define LOG_BYTES (16 * 1024 * 1024) /* what the log may keep */
#define COMMIT_BYTES (1024 * 1024)   /* and a commit at its end */

static bool one_event(void *arg, const struct event *e) {
	(void)arg;
	(void)e;
	return false;
}

/* A reader that stays keeps the log from being emptied; the gauge shows it, and shows the end. */
static void an_open_reader_lets_the_log_grow(void **state) {
	struct temp_db *t = *state;
	struct db_conn *reader;
	struct db_status status;
	add_events(t, 1, 36000);
	assert_int_equal(db_read_begin(t->db, &reader, NULL), RC_OK);
	assert_int_equal(db_event_list(reader, 0, 10, one_event, NULL, NULL), RC_OK);
	add_events(t, 600, 36000);
	db_checkpoint(t->db);
	assert_in_range(
		metric_get(METRIC_DB_CONTROL_WAL), LOG_BYTES + COMMIT_BYTES, 10 * LOG_BYTES);
	db_status_get(t->db, &status);
	assert_int_equal(status.wal_bytes, metric_get(METRIC_DB_CONTROL_WAL));

	db_read_end(reader);
	db_checkpoint(t->db);
	add_events(t, 1, 100);
	db_checkpoint(t->db);
	assert_in_range(metric_get(METRIC_DB_CONTROL_WAL), 0, LOG_BYTES);
}

/* Without a reader it never gets far. */
static void the_log_stays_small(void **state) {
	struct temp_db *t = *state;
	add_events(t, 600, 36000);
	db_checkpoint(t->db);
	assert_in_range(metric_get(METRIC_DB_CONTROL_WAL), 0, LOG_BYTES + COMMIT_BYTES);
}

/* A visitor that stops leaves no statement behind that would hold the log. */
static void a_stopped_visitor_holds_nothing(void **state) {
	struct temp_db *t = *state;
	struct db_conn *reader;
	add_events(t, 3, 100);
	assert_int_equal(db_read_begin(t->db, &reader, NULL), RC_OK);
	assert_int_equal(db_event_list(reader, 0, 10, one_event, NULL, NULL), RC_OK);
	db_read_end(reader);
	add_events(t, 600, 36000);
	db_checkpoint(t->db);
	assert_in_range(metric_get(METRIC_DB_CONTROL_WAL), 0, LOG_BYTES + COMMIT_BYTES);
}

static enum rc add_event(struct temp_db *t, char *data, int64_t *id, struct err *err) {
	struct db_conn *c;
	struct event e = {.type = EVENT_SERVICE, .data = data};
	enum rc rc = db_write_begin(t->db, &c, err);
	if (rc != RC_OK)
		return rc;
	rc = db_event_insert(c, &e, err);
	if (rc != RC_OK) {
		db_write_abort(c);
		return rc;
	}
	*id = e.id;
	return db_write_commit(c, err);
}

/* Writes until the disk is full; returns the last event that was kept. */
static int64_t fill(struct temp_db *t) {
	char data[8192];
	int64_t id, last = 0;
	struct err err;
	enum rc rc;
	memset(data, 'x', sizeof(data) - 1);
	data[sizeof(data) - 1] = '\0';
	while ((rc = add_event(t, data, &id, &err)) == RC_OK)
		last = id;
	if (rc != RC_NO_SPACE)
		fail_msg("%s: %s", rc_name(rc), err.msg);
	assert_in_range(last, 1, 100000);
	return last;
}

static void check_last(struct temp_db *t, int64_t want) {
	struct db_conn *c;
	int64_t first, last;
	assert_int_equal(db_read_begin(t->db, &c, NULL), RC_OK);
	assert_int_equal(db_event_range(c, &first, &last, NULL), RC_OK);
	db_read_end(c);
	assert_int_equal(first, 1);
	assert_int_equal(last, want);
}

static void set_page_limit(struct temp_db *t, const char *sql) {
	assert_int_equal(conn_exec(temp_db_begin(t), sql, NULL), RC_OK);
	temp_db_abort(t);
}

static void a_full_file_takes_no_writes_and_recovers(void **state) {
	struct temp_db *t = *state;
	struct db_status status;
	int64_t id;
	set_page_limit(t, "PRAGMA max_page_count = 100");
	const int64_t last = fill(t);
	db_status_get(t->db, &status);
	assert_false(status.healthy);
	check_last(t, last);
	assert_int_equal(add_event(t, NULL, &id, NULL), RC_OK);
	set_page_limit(t, "PRAGMA max_page_count = 100000");
	for (int i = 0; i < 10; i++)
		assert_int_equal(add_event(t, (char[]){"{}"}, &id, NULL), RC_OK);
	db_status_get(t->db, &status);
	assert_true(status.healthy);
	check_last(t, id);
}

/* The same on a disk that is really full. Needs root, for a mount of its own. */
static void a_full_disk_takes_no_writes_and_recovers(void **state) {
	struct temp_db *t = *state;
	struct db_status status;
	int64_t id, last;
	temp_db_close(t);
	if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
		mount("tmpfs", t->dir, "tmpfs", 0, "size=2m") != 0)
		fail_msg("this test mounts a small file system: it needs root");
	temp_db_open(t);
	last = fill(t);
	check_last(t, last);
	assert_int_not_equal(add_event(t, NULL, &id, NULL), RC_STORE);
	db_status_get(t->db, &status);

	assert_int_equal(mount("tmpfs", t->dir, "tmpfs", MS_REMOUNT, "size=16m"), 0);
	assert_int_equal(add_event(t, (char[]){"{}"}, &id, NULL), RC_OK);
	assert_true(id > last);
	db_status_get(t->db, &status);
	assert_true(status.healthy);
	check_last(t, id);
	temp_db_close(t);
	temp_db_open(t);
	check_last(t, id);
	temp_db_close(t);
	assert_int_equal(umount2(t->dir, MNT_DETACH), 0);
}

#define WITH_DB(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void) {
	const struct CMUnitTest tests[] = {
		WITH_DB(a_zeroed_header_is_refused),
		WITH_DB(another_kind_of_file_is_refused),
		WITH_DB(a_damaged_page_is_refused),
		WITH_DB(a_file_cut_short_is_refused),
		WITH_DB(an_open_reader_lets_the_log_grow),
		WITH_DB(the_log_stays_small),
		WITH_DB(a_stopped_visitor_holds_nothing),
		WITH_DB(a_full_file_takes_no_writes_and_recovers),
		WITH_DB(a_full_disk_takes_no_writes_and_recovers),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
