#include "tests/support/temp_db.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>

static void check(enum rc rc, const struct err *err) {
	if (rc != RC_OK)
		fail_msg("%s: %s", rc_name(rc), err->msg);
}

struct temp_db *temp_db_new(enum db_file file) {
	struct temp_db *t = calloc(1, sizeof(*t));
	assert_non_null(t);
	snprintf(t->dir, sizeof(t->dir), "/tmp/drivewatt-db-XXXXXX");
	assert_non_null(mkdtemp(t->dir));
	snprintf(t->path, sizeof(t->path), "%s/test.db", t->dir);
	t->file = file;
	temp_db_open(t);
	return t;
}

void temp_db_free(struct temp_db *t) {
	static const char *const suffixes[] = {"", "-wal", "-shm", "-journal"};
	char name[128];
	temp_db_close(t);
	for (size_t i = 0; i < array_len(suffixes); i++) {
		snprintf(name, sizeof(name), "%s%s", t->path, suffixes[i]);
		unlink(name);
	}
	rmdir(t->dir);
	free(t);
}

void temp_db_open(struct temp_db *t) {
	const struct db_config config = {
		.path = t->path, .file = t->file, .readers = 4, .busy_ms = 5000};
	struct err err;
	t->db = db_open(&config, &err);
	if (!t->db)
		fail_msg("%s", err.msg);
}

void temp_db_close(struct temp_db *t) {
	temp_db_abort(t);
	db_close(t->db);
	t->db = NULL;
}

struct db_conn *temp_db_begin(struct temp_db *t) {
	struct err err;
	check(db_write_begin(t->db, &t->conn, &err), &err);
	return t->conn;
}

void temp_db_commit(struct temp_db *t) {
	struct err err;
	struct db_conn *c = t->conn;
	t->conn = NULL;
	check(db_write_commit(c, &err), &err);
}

void temp_db_abort(struct temp_db *t) {
	db_write_abort(t->conn);
	t->conn = NULL;
}

static int begin(void **state, enum db_file file) {
	struct temp_db *t = temp_db_new(file);
	temp_db_begin(t);
	*state = t;
	return 0;
}

int temp_control_begin(void **state) {
	return begin(state, DB_CONTROL);
}

int temp_samples_begin(void **state) {
	return begin(state, DB_SAMPLES);
}

int temp_db_end(void **state) {
	temp_db_free(*state);
	return 0;
}

struct db_conn *temp_db_conn(void **state) {
	return ((struct temp_db *)*state)->conn;
}
