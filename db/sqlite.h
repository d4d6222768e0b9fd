/*
 * The only face of SQLite: one connection and its prepared statements, of one thread at a time.
 *
 * A repository function takes a statement, binds, steps and reads; binding and preparing never
 * fail aloud, the first step tells. auto_stmt puts the statement back on every way out. The text
 * of a statement is its identity in the cache: always a literal.
 */
#ifndef DRIVEWATT_DB_SQLITE_H
#define DRIVEWATT_DB_SQLITE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/rc.h"

struct db_conn;
struct stmt;

/* Injected faults, shared by the connections of a file. */
struct conn_fault {
	atomic_int countdown; /* write statements until all fail, 1: the next; 0: off */
	atomic_int rc;        /* enum rc */
};

struct conn_options {
	const char *path; /* copied */
	bool writer;      /* may write; makes the file */
	bool full_sync;   /* a commit survives a power cut */
	int64_t busy_ms;
	struct conn_fault *fault; /* borrowed */
	void *owner;              /* handed back by conn_owner */
};

/* RC_CORRUPT when the file is no database. */
enum rc must_check conn_open(const struct conn_options *o, struct db_conn **out, struct err *err);
void conn_close(struct db_conn *c);
void *conn_owner(const struct db_conn *c);
bool conn_is_writer(const struct db_conn *c);
/* The file is open and good: from now on what keeps a writer from it is RC_STORE. */
void conn_serve(struct db_conn *c);

/* RC_CORRUPT when pages or indexes are damaged. Reads the whole file. */
enum rc must_check conn_check(struct db_conn *c, struct err *err);
/* Any statements without parameters; rows are dropped. */
enum rc must_check conn_exec(struct db_conn *c, const char *sql, struct err *err);

/* BEGIN IMMEDIATE for a writer. */
enum rc must_check conn_begin(struct db_conn *c, struct err *err);
/* Rolls back when it fails, and when a statement failed such that the transaction is lost. */
enum rc must_check conn_commit(struct db_conn *c, struct err *err);
void conn_rollback(struct db_conn *c);
/* What lost the running transaction, RC_OK nothing did. */
const struct err *conn_failure(const struct db_conn *c);
/* Moves what it can from the WAL into the file, waiting for nobody. */
void conn_checkpoint(struct db_conn *c);

/* Never NULL. */
struct stmt *stmt_get(struct db_conn *c, const char *sql);
void stmt_put(struct stmt *st);

static inline void stmt_cleanup_(struct stmt **st) {
	stmt_put(*st);
}
#define auto_stmt __attribute__((cleanup(stmt_cleanup_)))

/* Parameters count from 1. Texts and blobs are borrowed until the statement is put back. */
void stmt_int(struct stmt *st, int i, int64_t v);
void stmt_opt(struct stmt *st, int i, int64_t v); /* NONE is NULL */
void stmt_real(struct stmt *st, int i, double v);
void stmt_text(struct stmt *st, int i, const char *v); /* NULL is NULL */
void stmt_blob(struct stmt *st, int i, const void *v, size_t len);

/* The next row, or RC_OK with *row false after the last. */
enum rc must_check stmt_next(struct stmt *st, bool *row, struct err *err);
/* A row that must be there: else RC_NOT_FOUND, "no such <what>". */
enum rc must_check stmt_one(struct stmt *st, const char *what, struct err *err);
/* To the end; *changed (may be NULL) tells how many rows it wrote. */
enum rc must_check stmt_run(struct stmt *st, int *changed, struct err *err);
/* As stmt_run, RC_NOT_FOUND when nothing was changed. */
enum rc must_check stmt_change(struct stmt *st, const char *what, struct err *err);
/* RC_CORRUPT: the row that was read makes no sense. */
enum rc must_check stmt_damaged(struct stmt *st, struct err *err);

/* Columns count from 0. What is returned is borrowed until the next step. */
int64_t col_int(struct stmt *st, int i);
int64_t col_opt(struct stmt *st, int i); /* NULL is NONE */
double col_real(struct stmt *st, int i);
const char *col_text(struct stmt *st, int i); /* NULL is NULL */
char *col_lend(struct stmt *st, int i);       /* the same, for structs that could own it */
void col_copy(struct stmt *st, int i, char *dst, size_t size); /* NULL is "" */
const void *col_blob(struct stmt *st, int i, size_t *len);

#endif
