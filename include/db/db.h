/*
 * The store: two SQLite files, one writer and a few readers each, migrations. All SQL of the
 * program is in db/. control.db is FULL-synchronous: what was committed survives a power cut;
 * samples.db is NORMAL and may lose the last moments.
 *
 * A repository function takes a struct db_conn: one from db_read_begin() or db_write_begin() of
 * the file that the repository belongs to (db_control or db_samples).
 */
#ifndef DRIVEWATT_DB_DB_H
#define DRIVEWATT_DB_DB_H

#include <stdbool.h>
#include <stdint.h>

#include "base/rc.h"
#include "model/account.h"
#include "model/store.h"

struct db;      /* one file */
struct db_conn; /* one connection, lent to one thread for one short transaction */

enum db_file { DB_CONTROL, DB_SAMPLES };

struct db_config {
	const char *path; /* absolute, or relative to the current directory */
	enum db_file file;
	unsigned readers; /* 1 … 16 */
	int64_t busy_ms;  /* how long a writer of another process may hold us up */
};

/* Opens or makes the file, checks it (RC_CORRUPT with one clear sentence), migrates it
 * (RC_UNSUPPORTED when a newer program made it). */
struct db *db_open(const struct db_config *config, struct err *err);
/* Checkpoints and closes; all connections must have been given back. NULL is fine. */
void db_close(struct db *db);

/* A short read transaction (a snapshot). Waits for a free reader, at most busy_ms: RC_FULL. */
enum rc must_check db_read_begin(struct db *db, struct db_conn **out, struct err *err);
void db_read_end(struct db_conn *c); /* NULL is fine */

/* BEGIN IMMEDIATE on the one writer; waits for its turn. A reader's functions work on it too. */
enum rc must_check db_write_begin(struct db *db, struct db_conn **out, struct err *err);
/* The same for a change of who's: when that is a dry run, the commit rolls everything back. */
enum rc must_check db_write_begin_for(
	struct db *db, const struct actor *who, struct db_conn **out, struct err *err);
/* Durable on RC_OK (control). Else everything was rolled back. Ends the loan either way.
 * RC_NO_SPACE when the disk is full, RC_STORE when the file cannot be written for another reason
 * (damaged, read-only, an I/O error, held by another process): so for the writer's statements and
 * db_write_begin too. */
enum rc must_check db_write_commit(struct db_conn *c, struct err *err);
void db_write_abort(struct db_conn *c); /* NULL is fine */

/* Any thread, does not wait for the writer. */
void db_status_get(struct db *db, struct db_status *out);
/* PASSIVE checkpoint; also sets the WAL gauge. Called by a timer's job. */
void db_checkpoint(struct db *db);

/* Tests only: the n-th write statement from now on and all after it fail with rc (RC_NO_SPACE or
 * RC_STORE) until n = 0 switches it off. A commit counts as one. */
void db_fail_nth(struct db *db, int n, enum rc rc);

#endif
