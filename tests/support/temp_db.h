/* A store in a directory of its own, for tests. What should work and does not fails the test. */
#ifndef DRIVEWATT_TESTS_TEMP_DB_H
#define DRIVEWATT_TESTS_TEMP_DB_H

#include "db/db.h"

struct temp_db {
	char dir[64];
	char path[96];
	enum db_file file;
	struct db *db;
	struct db_conn *conn; /* a running write transaction, NULL none */
};

/* Makes the directory and opens a fresh file in it, with four readers. */
struct temp_db *temp_db_new(enum db_file file);
/* Closes what is open and removes the directory. */
void temp_db_free(struct temp_db *t);

void temp_db_open(struct temp_db *t);
void temp_db_close(struct temp_db *t);

struct db_conn *temp_db_begin(struct temp_db *t);
void temp_db_commit(struct temp_db *t);
void temp_db_abort(struct temp_db *t);

/* Set-up and tear-down of tests whose state is a temp_db in a write transaction. */
int temp_control_begin(void **state);
int temp_samples_begin(void **state);
int temp_db_end(void **state);
struct db_conn *temp_db_conn(void **state);

#endif
